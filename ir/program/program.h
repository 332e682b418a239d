/* ir/program/program.h: one kernel as a loop tree.
 *
 * A Program has parameters, dims, an optional `prepare` part that runs once when the model is loaded
 * (it computes the PREPARED buffers from constants), and a body. The top-level statements of the body
 * are the kernel's phases: between two of them every thread waits for the others.
 *
 * Statements are immutable, tagged, and live in the arena of their compile. Loops and allocs own a
 * body; a SEQ is a list. Execution order is textual order; an `alloc` gives a fresh, uninitialised
 * buffer each time control reaches it, visible in its body. Loop variables start at 0.
 *
 * A block is the unit that schedules move. An instance of it is one assignment of its iters, each
 * bound to an expression of the enclosing loops' variables:
 *   spatial  instances with different values are independent
 *   reduce   instances combine into the same element by the block's combiner, in any order; in a strict program
 *            float sums and products in the order in which they are written
 *   ordered  instances must run in increasing order of the iter (scan, the time of an LSTM)
 * A block that has a combiner and `init` writes the initial value before the first instance that
 * reaches an element: the instance in which every reduce iter is 0. Without init
 * (after decompose_reduction) it only updates. */
#ifndef TL_IR_PROGRAM_PROGRAM_H
#define TL_IR_PROGRAM_PROGRAM_H
#include "ir/expr/buffer.h"
#include "runtime/base/status.h"

typedef enum {
#define LOOP(kind, text, gpu) TL_LOOP_##kind,
#include "ir/program/loop_kinds.def"
#undef LOOP
    TL_LOOP_KIND_COUNT
} tl_loop_kind;
typedef struct {
    const char *text;
    bool gpu;
} tl_loop_kind_info;
extern const tl_loop_kind_info tl_loop_kind_infos[TL_LOOP_KIND_COUNT];
/* Whether iterations of a loop of that kind share a buffer of that scope that is allocated outside of it: every thread
 * has a stack and registers of its own, every GPU block its shared memory. */
bool tl_loop_kind_shares(tl_loop_kind kind, tl_scope scope);
/* Whether iterations of such a loop may drive a reduce iter, whose combiner then joins them: lanes of a vector, and the
 * threads of a GPU block that lie beside each other. */
bool tl_loop_kind_joins(tl_loop_kind kind);

typedef enum { TL_ITER_SPATIAL, TL_ITER_REDUCE, TL_ITER_ORDERED } tl_iter_kind;

typedef enum {
#define COMBINER(name, text, values) TL_COMBINER_##name,
#include "ir/program/combiners.def"
#undef COMBINER
    TL_COMBINER_COUNT
} tl_combiner;
typedef struct {
    const char *text;
    int values;
} tl_combiner_info;
extern const tl_combiner_info tl_combiner_infos[TL_COMBINER_COUNT];
/* The value (index 0, or 1 of an arg pair) a reduction starts from by default. */
const tl_expr *tl_combiner_identity(tl_arena *arena, tl_combiner c, tl_dtype dtype, int index);

typedef enum {
    TL_STMT_LOOP,
    TL_STMT_SEQ,
    TL_STMT_BLOCK,
    TL_STMT_ALLOC,
    TL_STMT_BARRIER, /* the threads of a GPU block meet; on a CPU phases do this */
    TL_STMT_PREFETCH,
    TL_STMT_IF,    /* only after lower_blocks */
    TL_STMT_STORE, /* only after lower_blocks */
    TL_STMT_CALL,  /* only after lower_blocks: an opaque block's call */
    TL_STMT_KIND_COUNT
} tl_stmt_kind;

typedef struct {
    const tl_var *var; /* its range is 0..extent-1 */
    tl_iter_kind kind;
    const tl_expr *extent;  /* of the iter's domain */
    const tl_expr *binding; /* over enclosing loop variables and dims */
} tl_iter;

/* A box: begin[i] .. begin[i]+extent[i] on every axis. */
typedef struct {
    const tl_buffer *buffer;
    const tl_expr *const *begin; /* rank of them */
    const tl_expr *const *extent;
} tl_region;

typedef struct {
    const tl_buffer *buffer;
    const tl_expr *const *indices; /* rank of them */
    const tl_expr *value;
} tl_store;

/* A call of an intrinsic of ir/program/intrinsics.def on regions (tensorized products, sort, ...). */
typedef struct {
    const char *name;
    int read_count, write_count;
    const tl_region *reads, *writes;
    int scalar_count;
    const tl_expr *const *scalars; /* further i64 arguments */
} tl_intrinsic_call;

typedef struct {
    const char *name; /* unique in its program */
    int iter_count;
    const tl_iter *iters;
    const tl_expr *predicate; /* over loop variables and iters; NULL: always */
    tl_combiner combiner;     /* NONE: the stores assign */
    bool has_init;
    const tl_expr *const *init;    /* one a store, over the iters; NULL: the combiner's identity */
    int store_count;               /* of a reduction: the combiner's values */
    const tl_store *stores;        /* over the iters only; in order, values read before any store */
    const tl_intrinsic_call *call; /* opaque or tensorized: instead of stores */
} tl_block;

typedef struct tl_stmt tl_stmt;

/* Free-form "key = value" remarks on a loop, for code generation and the tuner. */
typedef struct {
    const char *key;
    int64_t value;
} tl_annotation;

struct tl_stmt {
    tl_stmt_kind kind; /* says which member of u is meant */
    union {
        struct {
            const tl_var *var;
            const tl_expr *extent;
            tl_loop_kind kind;
            const tl_stmt *body;
            int annotation_count;
            const tl_annotation *annotations;
        } loop;
        struct {
            int count;
            const tl_stmt *const *items;
        } seq;
        const tl_block *block;
        struct {
            const tl_buffer *buffer;
            const tl_stmt *body;
        } alloc;
        struct {
            const tl_buffer *buffer;
            const tl_expr *const *indices; /* may lie outside: a prefetch never faults */
            int level;                     /* 1 or 2: into L1 or L2 */
        } prefetch;
        struct {
            const tl_expr *condition;
            const tl_stmt *then, *otherwise; /* otherwise may be NULL */
        } branch;
        tl_store store;
        const tl_intrinsic_call *call;
    } u;
};

typedef struct {
    const char *name;
    /* Every float operation rounds once, in the order written: no schedule and no code reorders a sum. */
    bool strict;
    /* Products of f32 that are summed up may round their operands to tf32 (numerics.h). Not where it is strict. */
    bool tf32;
    int dim_count;
    const tl_var *const *dims;
    int param_count;
    const tl_buffer *const *params; /* in the order of the kernel's arguments */
    int prepared_count;
    const tl_buffer *const *prepared;
    const tl_stmt *prepare; /* NULL when nothing is prepared */
    const tl_stmt *body;
} tl_program;

/* Constructors. A SEQ of one is that one; nested SEQs are flattened; NULL items are dropped. */
const tl_stmt *tl_stmt_loop(tl_arena *arena, const tl_var *var, const tl_expr *extent,
                            tl_loop_kind kind, const tl_stmt *body);
const tl_stmt *tl_stmt_seq(tl_arena *arena, const tl_stmt *const *items, int count);
const tl_stmt *tl_stmt_seq2(tl_arena *arena, const tl_stmt *a, const tl_stmt *b);
const tl_stmt *tl_stmt_block(tl_arena *arena, const tl_block *block);
const tl_stmt *tl_stmt_alloc(tl_arena *arena, const tl_buffer *buffer, const tl_stmt *body);
const tl_stmt *tl_stmt_barrier(tl_arena *arena);
const tl_stmt *tl_stmt_prefetch(tl_arena *arena, const tl_buffer *buffer,
                                const tl_expr *const *indices, int level);
const tl_stmt *tl_stmt_if(tl_arena *arena, const tl_expr *condition, const tl_stmt *then,
                          const tl_stmt *otherwise);
const tl_stmt *tl_stmt_store(tl_arena *arena, const tl_buffer *buffer,
                             const tl_expr *const *indices, const tl_expr *value);
const tl_stmt *tl_stmt_call(tl_arena *arena, const tl_intrinsic_call *call);
/* The same loop with another body (the same pointer when it is the same body). */
const tl_stmt *tl_stmt_with_body(tl_arena *arena, const tl_stmt *loop_or_alloc,
                                 const tl_stmt *body);

/* A copy to change some fields of. */
tl_stmt *tl_stmt_copy(tl_arena *arena, const tl_stmt *stmt);
tl_block *tl_block_copy(tl_arena *arena, const tl_block *block);
tl_program *tl_program_copy(tl_arena *arena, const tl_program *program);

/* Whether another order of its instances rounds otherwise: a sum or product of floats. */
bool tl_block_rounds(const tl_block *block);

/* Rewriting bottom-up: `visit` sees a statement whose children are already rewritten and returns its
 * replacement, itself to keep it, or NULL to drop it. Unchanged trees come back as the same pointer. */
typedef const tl_stmt *tl_stmt_rewriter(tl_arena *arena, const tl_stmt *stmt, void *context);
const tl_stmt *tl_stmt_rewrite(tl_arena *arena, const tl_stmt *stmt, tl_stmt_rewriter *visit,
                               void *context);
/* Top-down walk; `visit` returns false to skip the children. */
typedef bool tl_stmt_visitor(const tl_stmt *stmt, void *context);
void tl_stmt_visit(const tl_stmt *stmt, tl_stmt_visitor *visit, void *context);
/* Every expression of a statement (extents, bindings, predicates, indices, values), one level. */
typedef const tl_expr *tl_stmt_expr_mapper(tl_arena *arena, const tl_expr *e, void *context);
const tl_stmt *tl_stmt_map_exprs(tl_arena *arena, const tl_stmt *stmt, tl_stmt_expr_mapper *map,
                                 void *context);
const tl_stmt *tl_stmt_substitute(tl_arena *arena, const tl_stmt *stmt, const tl_binding *bindings,
                                  int count);
/* Every access of `from` becomes one of `to`, same indices (allocs of `from` are left alone). */
const tl_stmt *tl_stmt_replace_buffer(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *from,
                                      const tl_buffer *to);
/* A block with its iters replaced by their bindings in stores, init and predicate. */
const tl_expr *tl_block_bind(tl_arena *arena, const tl_block *block, const tl_expr *over_iters);

/* Looked for in the body, then in prepare. */
const tl_block *tl_program_find_block(const tl_program *program, const char *name);
const tl_stmt *tl_program_find_loop(const tl_program *program, const tl_var *var);
/* Looked for among params, prepared and allocs. */
const tl_buffer *tl_program_find_buffer(const tl_program *program, const char *name);

/* ir/text/print.c, ir/text/parse.c: the text (grammar in ir/README.md). Names are made unique when printed. */
void tl_program_print(const tl_program *program, tl_text *out);
const char *tl_program_text(tl_arena *arena, const tl_program *program);
void tl_program_dump(const tl_program *program); /* to stderr, for gdb */
/* `file` names the text in messages ("gemm.tk:3:7: ..."). TL_BAD_TEXT with line and column. */
tl_status tl_program_parse(tl_arena *arena, const char *text, const char *file, tl_program **out,
                           tl_diag *diag);

/* ir/program/verify.c: TL_BAD_IR and the broken invariant. Checks scoping of variables and buffers, dtypes, ranks,
 * that bindings stay in iter domains (or the predicate says so), that accesses stay in bounds where that can be
 * proven false, that data-parallel iters only are under parallel, vectorized and bound loops, vector loops are
 * constant, register buffers have constant shapes, block names are unique, phases are well-formed. */
tl_status tl_program_verify(const tl_program *program, tl_diag *diag);
/* The same between two passes of code generation, where a part of a loop keeps the variable's range that it had as a whole,
 * although nothing is known of its extent any more. */
tl_status tl_program_verify_lowered(const tl_program *program, tl_diag *diag);

/* ir/program/region.c: what one instance of a block touches, in terms of its iters: one box for each distinct buffer. An
 * index that contains a load covers the whole axis. Reads are the loads of the text: that an update reads what it
 * writes is not listed. */
int tl_block_reads(tl_arena *arena, const tl_block *block, const tl_region **out);
int tl_block_writes(tl_arena *arena, const tl_block *block, const tl_region **out);
/* Whether it loads the element that the store writes; whether the value stored is made from that element, be it one of many
 * terms. */
bool tl_is_own_element(const tl_expr *e, const tl_store *store);
bool tl_reads_own_element(const tl_store *store);
/* A box that contains `region` for all values of vars[i] in 0..extents[i]: in terms of all other variables. */
tl_region tl_region_relax(tl_arena *arena, const tl_region *region, const tl_var *const *vars,
                          const tl_expr *const *extents, int count);

/* ir/program/structure.c: names and structure. The structural hash ignores names of variables and buffers; class text
 * abstracts extents and layout blocks away as well (ARCHITECTURE.md, "Classes"). */
uint64_t tl_program_hash(const tl_program *program);
const char *tl_program_class_text(tl_arena *arena, const tl_program *program);

/* ir/program/error_bound.c: the error bound of a naive program's results, for rtol and ttol: grows with the root of the
 * longest chain of roundings; 0 where nothing rounds. */
double tl_program_error_bound(const tl_program *naive);

#endif
