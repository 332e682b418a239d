/* ir/interpret/interpret_private.h: the interpreter's internal form. A Program is compiled for one call, with its dims
 * known, into flat instructions (loops, blocks, forks of GPU threads) over expression code: every variable is a
 * slot, every index a sum of slots, every node a function pointer.
 *
 *     tl_program --compile--> tl_insn[] + tl_interp_code trees --execute--> fibers over a tl_machine
 *
 * How races are found. Execution is sequential; a clock counts strands (iterations of concurrent loops, turns of
 * GPU threads, allocs). Each element remembers the clock of its last write and of one read. A concurrent loop that
 * is open knows when it began (S) and when its present iteration began (I): an access of time t with S <= t < I
 * belongs to another iteration of it, and whatever else is older is ordered before us. GPU threads take turns
 * between two barriers, so for them the rule is: same segment between barriers, another thread. */
#ifndef TL_IR_INTERPRET_INTERPRET_PRIVATE_H
#define TL_IR_INTERPRET_INTERPRET_PRIVATE_H
#include <setjmp.h>
#include "ir/interpret/interpret.h"
#include "ir/program/intrinsics.h"

typedef struct tl_machine tl_machine;
typedef struct tl_frame tl_frame;
typedef struct tl_insn tl_insn;
typedef struct tl_interp_code tl_interp_code;
typedef struct tl_block_code tl_block_code;

/* ---- storage -------------------------------------------------------------------------------- */

/* A stamp is clock << 16 | site, a site being the statement that made the access. */
typedef uint64_t tl_stamp;
#define TL_SITE_BITS 16
#define TL_SITE_MASK ((1u << TL_SITE_BITS) - 1)

/* What is remembered of an element, in checked mode. */
typedef struct {
    tl_stamp write, read;
    uint32_t write_thread, read_thread; /* packed position, see tl_thread_pack */
} tl_interp_cell;

/* One life of a buffer's memory. */
typedef struct tl_interp_storage tl_interp_storage;
struct tl_interp_storage {
    char *data;
    tl_interp_cell *cells;   /* NULL: not watched (plain mode, and parameters nobody may write) */
    tl_stamp birth;          /* older stamps belong to an earlier life */
    int64_t count;           /* elements */
    tl_interp_storage *next; /* in the free list of its buffer */
};

/* What does not change about a buffer during the call. */
typedef struct {
    const tl_buffer *buffer;
    const int64_t *shape, *strides; /* packed row-major */
    int64_t count;
    tl_interp_storage *free; /* lives that ended */
} tl_memory;

/* ---- expressions ---------------------------------------------------------------------------- */

/* constant + sum of factor * slot + sum of factor * atom */
typedef struct {
    int slot;
    int64_t factor;
} tl_term;
typedef struct {
    const tl_interp_code *code;
    int64_t factor;
} tl_atom;
typedef struct {
    int64_t constant;
    int term_count, atom_count;
    const tl_term *terms;
    const tl_atom *atoms;
} tl_interp_sum;

typedef struct {
    int memory; /* which buffer */
    tl_dtype dtype;
    int rank;
    const tl_interp_sum *axes;
    tl_interp_sum flat; /* the sum of axes times strides: all that plain mode needs */
} tl_interp_access;

typedef double tl_number_code(const tl_interp_code *c, tl_frame *f);
typedef int64_t tl_integer_code(const tl_interp_code *c, tl_frame *f);

struct tl_interp_code {
    tl_number_code *number;   /* of a float dtype */
    tl_integer_code *integer; /* of every other */
    const tl_interp_code *a, *b, *c;
    tl_dtype dtype, from; /* of the result, of the first operand */
    union {
        int64_t value;
        double constant;
        int slot;
        double (*function)(double);
        const tl_interp_sum *sum;
        const tl_interp_access *access;
    } u;
};

static inline double tl_code_number(const tl_interp_code *c, tl_frame *f)
{
    return c->number(c, f);
}
static inline int64_t tl_code_integer(const tl_interp_code *c, tl_frame *f)
{
    return c->integer(c, f);
}

/* ---- statements ----------------------------------------------------------------------------- */

typedef struct {
    tl_interp_access access;
    const tl_interp_code *value, *init; /* init: of a reduction */
} tl_store_code;

typedef struct {
    int memory;
    const tl_interp_code *const *begins, *const *extents;
} tl_region_code;

typedef struct {
    tl_intrinsic intrinsic;
    int read_count, write_count;
    const tl_region_code *reads, *writes;
    const tl_interp_code *const *scalars;
} tl_call_code;

typedef struct {
    int slot;
    bool is_alias; /* bound to a loop variable: its slot is that variable's */
    bool is_reduce;
    tl_interp_sum binding;
    const tl_interp_code *extent;
    const tl_iter *iter;
} tl_iter_code;

/* A block, or a bare store or call (no iters, no predicate). */
struct tl_block_code {
    const tl_block *block; /* NULL: a bare statement */
    int iter_count;
    const tl_iter_code *iters;
    const tl_interp_code *predicate;
    tl_combiner combiner;
    bool has_init;
    int store_count;
    const tl_store_code *stores;
    const tl_call_code *call;
    int lane_count; /* slots of vectorized loops that drive a reduce iter: their lanes combine */
    const int *lanes;
    bool joins_threads; /* a threadIdx.x loop does, too */
};

typedef enum {
    TL_INSN_LOOP,       /* serial: slot = 0, or to target when there is no iteration */
    TL_INSN_NEXT,       /* next iteration at target, or on */
    TL_INSN_CONCURRENT, /* the same for a loop whose iterations are checked against each other */
    TL_INSN_CONCURRENT_NEXT,
    TL_INSN_FORK, /* one fiber for each iteration; on at target when all are done */
    TL_INSN_JOIN, /* a fiber's end */
    TL_INSN_SAME, /* thread loop inside one of the same axis: this thread's iteration only */
    TL_INSN_BLOCK,
    TL_INSN_ALLOC,
    TL_INSN_FREE,
    TL_INSN_BARRIER,
    TL_INSN_BRANCH, /* to target when the condition is false */
    TL_INSN_JUMP,
    TL_INSN_PHASE, /* everything before is done */
    TL_INSN_END,
} tl_insn_op;

struct tl_insn {
    tl_insn_op op;
    int target;
    int slot, limit; /* of loops: the variable, its extent; SAME: limit is the outer loop's slot */
    int axis;        /* FORK: 0 x, 1 y, 2 z */
    int memory;      /* ALLOC, FREE */
    int site;        /* of the statement, for messages */
    const tl_interp_code *code; /* extent or condition */
    const tl_block_code *block;
    const tl_var *var;
    tl_loop_kind kind;
    bool new_segment; /* an iteration is a GPU block: shared memory starts anew */
    tl_stamp *starts; /* CONCURRENT: when each iteration of the present run began, for messages */
    int64_t capacity;
};

/* A statement as messages name it. */
typedef struct {
    const char *name; /* "block gemm", "store to Y" */
    int loop_count;
    const int *loops; /* instructions of the loops around it, outermost first */
    const tl_block_code *block;
} tl_site;

/* An open concurrent loop. */
typedef struct {
    const tl_insn *loop;
    tl_stamp first, iteration; /* when the loop, and its present iteration, began */
} tl_interp_level;

#define TL_THREAD_AXES 3
static const int tl_thread_shift[TL_THREAD_AXES] = { 0, 11, 22 };
static const uint32_t tl_thread_mask[TL_THREAD_AXES] = { 0x7ff, 0x7ff, 0x7f };
static inline uint32_t tl_thread_at(uint32_t thread,
                                    int axis) /* 0: all of them, else 1 + position */
{
    return thread >> tl_thread_shift[axis] & tl_thread_mask[axis];
}

/* What one strand of execution sees. */
struct tl_frame {
    tl_machine *machine;
    int64_t *slots;
    tl_interp_storage **storages; /* by memory index */
    tl_interp_level *levels;      /* open concurrent loops, outermost first */
    int level_count;
    uint32_t thread; /* position in the GPU block, 0: not in a thread loop */
    tl_stamp own;    /* whatever is not older than this was done by this very strand */
    tl_stamp resumed;
    int site;
    tl_stamp stamp; /* of accesses made now */
};

typedef enum { TL_FIBER_READY, TL_FIBER_FORKED, TL_FIBER_WAITING, TL_FIBER_DONE } tl_fiber_state;
typedef struct tl_fiber tl_fiber;
struct tl_fiber {
    tl_frame frame;
    tl_fiber_state state;
    int at; /* instruction */
    int child_count, child_capacity;
    tl_fiber **children;
    tl_fiber *next_free;
};

#define TL_SCRATCH_PIECES 32
#define TL_MAX_STORES     64 /* of one block */

struct tl_machine {
    tl_arena *arena;
    bool check, reads_unwritten;
    int slot_count, level_count;
    int memory_count;
    tl_memory *memories;
    int insn_count;
    tl_insn *insns;
    int site_count;
    tl_site *sites;
    uint64_t clock;
    tl_stamp segment; /* when the present segment between two barriers began */
    tl_stamp forked;  /* when the latest loop over threadIdx.x began */
    int64_t budget;   /* statement instances left */
    tl_fiber *free_fibers;
    int scratch_used; /* pieces of the call that runs */
    struct {
        void *data;
        size_t size;
    } scratch[TL_SCRATCH_PIECES];
    tl_status status;
    tl_diag *diag;
    jmp_buf escape;
    /* tl_interpret_points: elements are asked for and given here; NULL: they lie in memory */
    tl_number (*demand)(tl_frame *f, int memory, int64_t offset);
    void (*supply)(tl_frame *f, int memory, int64_t offset, tl_number value);
};

static inline tl_stamp tl_machine_tick(tl_machine *m)
{
    return ++m->clock << TL_SITE_BITS;
}
/* Ends the run with a sentence, to which the statement and its variables are added. */
_Noreturn void tl_machine_fail(tl_frame *f, tl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "i = 3, j = 0" of the statement at `site`, as this frame has them. */
void tl_machine_where(const tl_frame *f, int site, char *out, size_t size);

/* ---- ir/interpret/interpret_memory.c: storage and its checks -------------------------------------------- */

/* A life of memory `index` with its data at `data`, or its own when NULL. */
tl_interp_storage *tl_storage_make(tl_machine *m, int index, void *data, bool watched);
/* A fresh life of the buffer for an alloc; release gives it back. */
tl_interp_storage *tl_storage_take(tl_frame *f, int memory);
void tl_storage_release(tl_frame *f, int memory);
/* Offset of the element, bounds-checked. */
int64_t tl_access_locate(const tl_interp_access *access, tl_frame *f);
/* Checked mode: the access is allowed and remembered. `reduction` is the block when this is the
 * update of its target, whose vector lanes and threads may meet in one element. */
void tl_check_read(tl_frame *f, int memory, int64_t offset);
void tl_check_write(tl_frame *f, int memory, int64_t offset, const tl_block_code *reduction);
double tl_memory_number(tl_dtype dtype, const char *data, int64_t offset);
int64_t tl_memory_integer(tl_dtype dtype, const char *data, int64_t offset);
void tl_memory_put_number(tl_dtype dtype, char *data, int64_t offset, double value);
void tl_memory_put_integer(tl_dtype dtype, char *data, int64_t offset, int64_t value);
/* "Y[3, 0]" */
void tl_memory_element_text(const tl_memory *memory, int64_t offset, char *out, size_t size);

/* ir/interpret/race.c: fails when an earlier access conflicts with one made now. */
typedef enum { TL_ACCESS_READ, TL_ACCESS_WRITE } tl_access_kind;
bool tl_race_conflicts(const tl_frame *f, int memory, tl_stamp earlier, uint32_t thread,
                       const tl_block_code *reduction);
_Noreturn void tl_race_fail(tl_frame *f, int memory, int64_t offset, tl_access_kind earlier_kind,
                            tl_stamp earlier, uint32_t thread, tl_access_kind kind);

/* ---- ir/interpret/interpret_code.c, interpret_number.c: expressions --------------------------------------- */

static inline int64_t tl_sum_value(const tl_interp_sum *s, tl_frame *f)
{
    uint64_t value = (uint64_t)s->constant;
    for (int i = 0; i < s->term_count; i++)
        value += (uint64_t)s->terms[i].factor * (uint64_t)f->slots[s->terms[i].slot];
    for (int i = 0; i < s->atom_count; i++)
        value += (uint64_t)s->atoms[i].factor * (uint64_t)tl_code_integer(s->atoms[i].code, f);
    return (int64_t)value;
}

/* Names of variables and buffers during compilation. */
typedef struct tl_compiler tl_compiler;
int tl_compiler_slot(tl_compiler *c, const tl_var *var);
bool tl_compiler_dim(const tl_compiler *c, const tl_var *var, int64_t *value);
int tl_compiler_memory(tl_compiler *c, const tl_buffer *buffer);
tl_machine *tl_compiler_machine(tl_compiler *c);
bool tl_compiler_may_write(const tl_compiler *c, const tl_buffer *buffer);
/* Ends the compilation with a sentence. */
_Noreturn void tl_compiler_fail(tl_compiler *c, tl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const tl_interp_code *tl_code_compile(tl_compiler *c, const tl_expr *e);
tl_interp_sum tl_sum_compile(tl_compiler *c, const tl_expr *e);
tl_interp_access tl_access_compile(tl_compiler *c, const tl_buffer *buffer,
                                   const tl_expr *const *indices);

/* Arithmetic of a dtype. */
double tl_round_slow(tl_dtype dtype, double value);
int64_t tl_wrap_slow(tl_dtype dtype, int64_t value);
static inline double tl_round_to(tl_dtype dtype, double value)
{
    return dtype == TL_F32 ? (double)(float)value
                           : (dtype == TL_F64 ? value : tl_round_slow(dtype, value));
}
static inline int64_t tl_wrap_to(tl_dtype dtype, int64_t value)
{
    return dtype == TL_I64 ? value : tl_wrap_slow(dtype, value);
}
double tl_min_number(double a, double b); /* a NaN operand gives NaN */
double tl_max_number(double a, double b);
bool tl_less(tl_dtype dtype, tl_number a, tl_number b);
/* old combined with value; of single-valued combiners. */
double tl_combine_number(tl_combiner combiner, tl_dtype dtype, double old, double value);
int64_t tl_combine_integer(tl_combiner combiner, tl_dtype dtype, int64_t old, int64_t value);
/* Whether the pair (value, index) wins over the old one. */
bool tl_pair_wins(tl_combiner combiner, tl_dtype dtype, const tl_number old[2],
                  const tl_number value[2]);
/* What makes the code of FUNCTION nodes; false when the operands' dtype does not suit. */
bool tl_function_code(tl_interp_code *code, tl_function function);

/* ---- ir/interpret/interpret_compile.c, interpret_block.c, interpret_fiber.c --------------------------------- */

/* Fills a zeroed machine (arena, check, diag set, escape armed). `dims` in program order. */
void tl_machine_compile(tl_machine *m, const tl_program *program, const int64_t *dims,
                        bool with_prepare);
/* ir/interpret/interpret_compile_block.c. `loops` are the loops around it, outermost first. */
typedef struct {
    const tl_var *var;
    tl_loop_kind kind;
    int slot, insn;
    int64_t threads; /* extent of a thread loop */
} tl_open_loop;
const tl_block_code *tl_block_compile(tl_compiler *c, const tl_block *block);
const tl_block_code *tl_bare_compile(tl_compiler *c, const tl_store *store,
                                     const tl_intrinsic_call *call);
int tl_compiler_loops(const tl_compiler *c, const tl_open_loop **loops);
/* Opens a variable with a slot of its own, or as another name of a slot. */
int tl_compiler_open(tl_compiler *c, const tl_var *var);
void tl_compiler_alias(tl_compiler *c, const tl_var *var, int slot);
void tl_compiler_close(tl_compiler *c, const tl_var *var);
/* Slots opened after mark are free again. */
int tl_compiler_mark(const tl_compiler *c);
void tl_compiler_rewind(tl_compiler *c, int mark);
int tl_machine_memory(const tl_machine *m, const tl_buffer *buffer); /* -1: not in the program */
void tl_block_run(tl_frame *f, const tl_insn *insn);
void tl_call_run(tl_frame *f, const tl_call_code *call); /* ir/interpret/interpret_call.c */
tl_fiber *tl_fiber_create(tl_machine *m);
void tl_fiber_run_all(tl_machine *m, tl_fiber *root); /* from the first instruction to the end */

#endif
