/* codegen/emit/emit_private.h: the state of the emitter, which turns lowered statements into LLVM IR.
 *
 * The schedule says what is vectorized and unrolled; emission does it. Every loop variable in sight is bound to a
 * constant (an unrolled loop), an LLVM value (a serial loop), or a constant base plus the lane number (a vectorized
 * loop). Inside a vectorized loop, statements are emitted once a chunk of `lanes` iterations; what does not depend
 * on the lane stays scalar and is broadcast where it meets what does.
 *
 * Levels are the places where loop-invariant code goes: level 0 is the function's entry, level n the head of the
 * n-th serial loop around. A value that depends on the variables of levels <= n is built once, at the head of level n.
 *
 * A failure is recorded once (tl_emit_fail); emission then goes on with poison and its result is thrown away. */
#ifndef TL_CODEGEN_EMIT_EMIT_PRIVATE_H
#define TL_CODEGEN_EMIT_EMIT_PRIVATE_H
#include <llvm-c/Core.h>
#include "codegen/lower/lower_program.h"
#include "codegen/lower/kernel_plan.h"
#include "ir/expr/index.h"
#include "ir/program/intrinsics.h"

/* What an expression became: a scalar, or a vector of the current number of lanes. */
typedef struct {
    LLVMValueRef llvm;
    bool varies; /* with the lane: a vector */
} tl_emit_value;

typedef enum { TL_BOUND_CONSTANT, TL_BOUND_VALUE, TL_BOUND_LANE } tl_bound_kind;
typedef struct {
    const tl_var *var;
    tl_bound_kind kind;
    int64_t constant;   /* CONSTANT: its value; LANE: the value in lane 0 */
    LLVMValueRef value; /* VALUE */
    int level;          /* VALUE: where it is defined */
} tl_bound;

#define TL_MAX_LEVELS 64
#define TL_MAX_BOUND  128
typedef struct {
    LLVMBasicBlockRef block;
    LLVMValueRef marker; /* hoisted code goes behind it; NULL: to the start of the block */
    int cache_count;     /* entries of the hoist cache when the level was entered */
    /* of a loop: its variable, what that begins with, and the block that ends with the entry; NULL: the function's */
    LLVMValueRef variable, begin;
    LLVMBasicBlockRef before;
} tl_emit_level;

/* A pointer that a loop moves on by `coefficient` elements an iteration, from `base` where its variable is 0. */
typedef struct {
    LLVMValueRef pointer, base; /* pointer: a phi of the loop's head */
    int64_t coefficient;
    LLVMTypeRef element;
    int level;
} tl_moving;
#define TL_MAX_MOVING 8 /* in one loop: each takes a register */

/* Where a buffer's elements are. */
typedef struct {
    const tl_buffer *buffer;
    LLVMValueRef base;
    const tl_expr *const *strides; /* elements, one an axis */
    bool is_register;              /* constant indices only */
} tl_buffer_storage;

/* Flat index of one access, made once: constant + sum coefficient*term, in elements. */
typedef struct {
    const void *node; /* the LOAD, or the index array of a store */
    tl_linear flat;
    bool in_bounds; /* for every value of the variables */
} tl_flat;

/* A pure scalar built at a level: found again by expression, or by the parts of an address. */
typedef struct {
    const tl_expr *expr; /* or NULL: the address `base + coefficient*value` */
    LLVMValueRef base, index;
    int64_t coefficient;
    LLVMTypeRef element;
    LLVMValueRef result;
    int next; /* in its bucket */
} tl_hoisted;
#define TL_HOIST_BUCKETS 1021

#define TL_SAFE_BYTES 512

/* What only code for a GPU knows of: the launch that is being emitted. */
typedef struct {
    const tl_phase *phase;                                /* NULL: this is no GPU */
    LLVMValueRef shared;                                  /* the block's shared memory */
    LLVMValueRef thread[TL_GPU_AXES], block[TL_GPU_AXES]; /* i64 */
    const LLVMValueRef *maps;                             /* of tensors: the plan's */
    bool copies_ahead;                                    /* cp.async where it can be */
    unsigned loops;                                       /* thread axes whose loops are around */
    unsigned open;         /* those, and axes of which the first thread alone is here */
    const tl_stmt *partly; /* what not all threads of the block run: the outermost such statement */
} tl_emit_gpu;

typedef struct {
    tl_arena *arena;
    tl_lowered_kernel *kernel;
    const tl_kernel_plan *plan;
    const tl_target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    tl_status status; /* the first failure */
    tl_diag *diag;
    int64_t emitted; /* statements, against kernels that unroll without end */

    int bound_count;
    tl_bound bound[TL_MAX_BOUND];
    int level_count;
    tl_emit_level levels[TL_MAX_LEVELS];
    int moving_count, moving_capacity;
    tl_moving *moving;
    int storage_count, storage_capacity;
    tl_buffer_storage *storages;
    int flat_count, flat_capacity; /* open addressing over `node` */
    tl_flat *flats;
    int hoisted_count, hoisted_capacity;
    tl_hoisted *hoisted;
    int hoist_buckets[TL_HOIST_BUCKETS]; /* the latest entry, or -1 */
    LLVMValueRef hoist_next;

    int lanes; /* 1 outside of vectorized loops */
    const tl_var *lane_var;
    LLVMValueRef mask;  /* <lanes x i1> of active lanes, or NULL: all */
    bool is_tail;       /* some lanes lie beyond the loop's extent */
    LLVMValueRef guard; /* i1 that must hold where a select's arm may load, or NULL */

    LLVMValueRef scratch, thread_scratch;
    tl_emit_gpu gpu; /* of the launch */
    /* TL_SAFE_BYTES of zeroes to read instead of nothing; the entry's last alloca. */
    LLVMValueRef safe;
    bool safe_used;

    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, pointer, nothing;
} tl_emitter;

/* emit_llvm.c: a module for the plan's kernel. TL_OK, or the first failure. */
tl_status tl_emit_module(tl_emitter *em);
tl_status tl_emit_gpu_module(tl_emitter *em); /* emit_gpu_llvm.c: the same for a GPU */
/* emit_llvm.c, for both: the module and its types; a function; its start, at which an earlier one is forgotten; the
 * kernel's arguments. */
void tl_emit_start_module(tl_emitter *em);
LLVMValueRef tl_emit_add_function(tl_emitter *em, const char *name, LLVMTypeRef *params,
                                  unsigned count);
void tl_emit_add_attribute(tl_emitter *em, LLVMValueRef function, unsigned at, const char *name);
void tl_emit_add_text(tl_emitter *em, LLVMValueRef function, const char *name, const char *value);
void tl_emit_start_function(tl_emitter *em, LLVMValueRef function);
const tl_buffer *tl_emit_param(const tl_lowered_kernel *kernel, int index);
int tl_emit_param_count(const tl_lowered_kernel *kernel);
void tl_emit_bind_dims(tl_emitter *em, const LLVMValueRef *values);
LLVMValueRef tl_emit_fail(tl_emitter *em, LLVMTypeRef type, tl_status status, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));

/* emit_gpu_llvm.c: a loop over blocks or threads; a barrier; what only the first thread of some axes runs: whether the
 * statement is such, and was emitted. */
void tl_emit_bound_loop(tl_emitter *em, const tl_stmt *loop);
void tl_emit_barrier(tl_emitter *em);
bool tl_emit_once(tl_emitter *em, const tl_stmt *stmt);
/* Code between the two runs where the condition holds; `end` gets what `begin` gave. */
LLVMBasicBlockRef tl_emit_begin_where(tl_emitter *em, LLVMValueRef condition);
void tl_emit_end_where(tl_emitter *em, LLVMBasicBlockRef after);
/* emit_join_llvm.c: whether the threads along x all update one element, and the code that does it once. */
bool tl_emit_joins_threads(const tl_emitter *em, const tl_store *store);
void tl_emit_join(tl_emitter *em, const tl_store *store);
/* emit_mma_llvm.c, emit_wgmma_llvm.c: products of a warp and of a warpgroup. */
bool tl_emit_is_warp_product(const tl_intrinsic_call *call);
void tl_emit_mma(tl_emitter *em, const tl_intrinsic_call *call);
void tl_emit_group_product(tl_emitter *em, const tl_intrinsic_call *call);
/* emit_sync_llvm.c: what orders threads and what goes on by itself: false: it is no such call; whether every thread says it,
 * wherever it stands; the address of an mbarrier. */
bool tl_emit_sync(tl_emitter *em, tl_intrinsic which, const tl_intrinsic_call *call);
bool tl_emit_is_each_call(const tl_intrinsic_call *call);
LLVMValueRef tl_emit_mbarrier(tl_emitter *em, const tl_expr *number);
void tl_emit_bulk(tl_emitter *em, const tl_intrinsic_call *call); /* emit_bulk_llvm.c */
/* emit_gpu_number_llvm.c: of f32 numbers, NULL where the target has no such instruction: min or max; the words of bf16; exp that
 * is as exact as a result in f16 or bf16 shows. */
LLVMValueRef tl_emit_gpu_extreme(tl_emitter *em, bool is_max, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_emit_gpu_to_bf16(tl_emitter *em, LLVMValueRef v);
LLVMValueRef tl_emit_gpu_short_exp(tl_emitter *em, LLVMValueRef x);
/* emit_fragment_llvm.c: in a buffer that a warp or a warpgroup holds, the register of a thread's own element, or the first
 * one of a tile: false, and a failure, where there is none. What is read may be another thread's of the four of a row: *lane
 * says which, -1: its own. */
int64_t tl_warp_registers(const tl_buffer *buffer); /* of a thread */
bool tl_emit_warp_register(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *indices,
                           bool reads, int64_t *out, int *lane);
LLVMValueRef tl_emit_from_row(tl_emitter *em, LLVMValueRef v, int lane);
bool tl_emit_warp_tile(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *begin,
                       LLVMValueRef *base, int64_t *first);
LLVMValueRef tl_emit_convergent(tl_emitter *em,
                                LLVMValueRef call); /* a call that stays where it is */
/* emit_async_llvm.c: whether what the loop copies into shared memory goes on by itself; such a copy, and whether it is one;
 * waiting for them. */
bool tl_emit_copies_ahead(const tl_emitter *em, const tl_stmt *loop);
bool tl_emit_async_copy(tl_emitter *em, const tl_store *store);
/* emit_swizzle_llvm.c: whether it is; elements until its pattern begins anew; where an offset below that lies. */
bool tl_emit_is_swizzled(const tl_emitter *em, const tl_buffer *buffer);
int64_t tl_emit_swizzle_period(const tl_buffer *buffer);
LLVMValueRef tl_emit_swizzled(tl_emitter *em, const tl_buffer *buffer, LLVMValueRef inner);
/* Before a loop or an if: notes that not all threads of a block may run what is inside; what was noted around it. */
const tl_stmt *tl_emit_note_partly(tl_emitter *em, const tl_stmt *stmt);

/* emit_stmt_llvm.c, emit_loop_llvm.c */
void tl_emit_stmt(tl_emitter *em, const tl_stmt *stmt);
void tl_emit_loop(tl_emitter *em, const tl_stmt *loop);
/* A loop from `begin` to `end` over `loop`'s body, entered only when begin < end (or `runs`: known to). */
void tl_emit_range(tl_emitter *em, const tl_var *var, LLVMValueRef begin, LLVMValueRef end,
                   bool runs, const tl_stmt *body);
/* emit_moving_llvm.c: base + coefficient*index elements as a pointer that the loop of `level` moves on, `base` being defined
 * outside of it; NULL: it is computed in each iteration. At the end of the loop's body: moves its pointers on. */
LLVMValueRef tl_emit_moving(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            LLVMValueRef index, int64_t coefficient, int level);
void tl_emit_move_on(tl_emitter *em, int level);

/* emit_transpose_llvm.c: an unrolled loop around a vectorized one that copy a rectangle which is contiguous along the one
 * where it is read and along the other where it is written. False, and nothing emitted, for any other loop. */
bool tl_emit_transposed(tl_emitter *em, const tl_stmt *loop, int64_t extent);
void tl_emit_call(tl_emitter *em, const tl_intrinsic_call *call); /* emit_call_llvm.c */
LLVMValueRef tl_emit_sort_function(tl_emitter *em); /* emit_sort_llvm.c, once a module */
/* emit_llvm.c: the address of a buffer in shared or thread scratch, at level 0. */
LLVMValueRef tl_emit_scratch(tl_emitter *em, const tl_placement *placement);
/* emit_stmt_llvm.c: makes a local buffer's slot or finds its place, once a function. */
void tl_emit_storage(tl_emitter *em, const tl_buffer *buffer);

/* emit_expr_llvm.c: value expressions. */
tl_emit_value tl_emit_expr(tl_emitter *em, const tl_expr *e);
LLVMValueRef tl_emit_spread(tl_emitter *em, tl_emit_value v); /* as a vector of the current lanes */
LLVMValueRef tl_emit_uniform(tl_emitter *em, const tl_expr *e); /* as a scalar, or fails */
/* One operation of a combiner or expression on two LLVM values of equal type. */
LLVMValueRef tl_emit_binary(tl_emitter *em, const tl_expr *e, tl_expr_kind kind, tl_dtype dtype,
                            LLVMValueRef a, LLVMValueRef b);

/* emit_index_llvm.c: i64 expressions over what is bound, built at the outermost level they allow. */
const tl_bound *tl_find_bound(const tl_emitter *em, const tl_var *var);
void tl_bind(tl_emitter *em, tl_bound bound);
void tl_unbind(tl_emitter *em);
/* With constants and lanes filled in. */
const tl_expr *tl_emit_substitute(tl_emitter *em, const tl_expr *e);
bool tl_emit_varies(const tl_emitter *em, const tl_expr *e); /* depends on the lane */
LLVMValueRef tl_emit_scalar_index(tl_emitter *em, const tl_expr *e, int *level);
LLVMValueRef tl_emit_floor(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, bool non_negative,
                           LLVMValueRef a, LLVMValueRef b);
/* i64 arithmetic that depends on the lane, as lanes of 32 bits, which is exact where every value of it fits; NULL: one does
 * not, or something else than arithmetic of loop variables is in it. */
LLVMValueRef tl_emit_words(tl_emitter *em, const tl_expr *e);
/* Moves the builder to the end of the level's hoisted code; `leave` with the block to go back to. */
LLVMBasicBlockRef tl_emit_hoist(tl_emitter *em, int level);
void tl_emit_leave(tl_emitter *em, int level, LLVMBasicBlockRef back);
void tl_emit_push_level(tl_emitter *em, tl_emit_level level);
void tl_emit_pop_level(tl_emitter *em);
LLVMValueRef tl_emit_recall(tl_emitter *em, const tl_hoisted *key); /* NULL: not there yet */
void tl_emit_remember(tl_emitter *em, tl_hoisted entry);

/* emit_address_llvm.c */
typedef enum { TL_STRIDE_NONE, TL_STRIDE_CONSTANT, TL_STRIDE_GENERAL } tl_stride_kind;
typedef struct {
    const tl_buffer_storage *storage;
    LLVMValueRef pointer; /* of lane 0's element; of the uniform part when GENERAL */
    tl_stride_kind kind;  /* NONE: the same element in every lane */
    int64_t stride;       /* CONSTANT: elements from lane to lane */
    LLVMValueRef offsets; /* GENERAL: <lanes x i64> elements behind `pointer` */
    int64_t constant;     /* register buffers: the element */
    int lane;             /* whose register it is, of the four threads of a row; -1: the own */
    bool in_bounds;
    bool in_pairs;  /* every second element, of pairs that lie in the buffer as a whole */
    bool is_odd;    /* of a load: the second of each, and the pointer is at the first */
    unsigned align; /* bytes that divide the pointer, of those that an access can use */
    /* Of a swizzled buffer: what `pointer` is made from, an address and elements behind it that are not swizzled yet. */
    LLVMValueRef outer, inner;
    LLVMValueRef
        moving; /* of one, too: the elements behind the storage's base, but for `constant` of them */
} tl_address;
const tl_buffer_storage *tl_emit_find_storage(tl_emitter *em,
                                              const tl_buffer *buffer); /* NULL: failed */
void tl_add_storage(tl_emitter *em, const tl_buffer *buffer, LLVMValueRef base, bool is_register);
/* `node` identifies the access; an out-of-bounds index is allowed only when `wild` (a prefetch). */
bool tl_emit_address(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *indices,
                     const void *node, bool wild, tl_address *out);
bool tl_emit_in_bounds(tl_emitter *em, const tl_expr *load); /* wherever its variables are */
/* base + coefficient*index elements, made where the builder is. */
LLVMValueRef tl_emit_scaled(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            LLVMValueRef index, int64_t coefficient);
LLVMValueRef tl_emit_offset(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            int64_t constant);

/* emit_access_llvm.c: loads and stores, and dtypes as they are in memory. */
tl_emit_value tl_emit_load(tl_emitter *em, const tl_expr *load);
tl_emit_value tl_emit_load_word(tl_emitter *em, const tl_expr *load); /* as it is in memory */
void tl_emit_store(tl_emitter *em, const tl_store *store);
/* The same with the value, a vector of the current lanes as it is in memory, given. */
void tl_emit_store_vector(tl_emitter *em, const tl_store *store, LLVMValueRef v);
/* tl_emit_store of a scalar, given. */
void tl_emit_store_scalar(tl_emitter *em, const tl_store *store, LLVMValueRef value);

/* ---- emit_access_llvm.c: without a mask; aligned as an element is ---- */

LLVMValueRef tl_emit_plain_load(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                LLVMValueRef pointer);
void tl_emit_plain_store(tl_emitter *em, const tl_buffer_storage *storage, LLVMValueRef v,
                         LLVMValueRef pointer);

/* ---- emit_first_llvm.c: the first lanes, side by side ---- */

enum { TL_MAX_NEAR_LANES = 64 }; /* of what is taken apart lane by lane */

/* How many lanes a constant mask lets through, when these are the first ones; 0: it is another. No mask: all. */
int tl_emit_first_lanes(const tl_emitter *em, LLVMValueRef mask);
/* Whether a load under a mask is one instruction. */
bool tl_emit_masks_loads(const tl_emitter *em, tl_dtype dtype);
/* The lanes that the mask lets through; the others are zero. */
LLVMValueRef tl_emit_load_masked(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                 LLVMValueRef pointer, LLVMValueRef mask);
/* The first `count` lanes from an element on; the others are zero. */
LLVMValueRef tl_emit_load_first(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                LLVMValueRef pointer, int count);
/* The first `count` lanes of `whole`, which has more, to where the address says. */
void tl_emit_store_first(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                         LLVMValueRef whole, int count);

/* ---- emit_apart_llvm.c: lanes whose elements do not lie side by side ---- */

/* Under the mask (NULL: all); `count`: how many lanes it lets through, when it is known that these are the first ones. */
LLVMValueRef tl_emit_load_apart(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                                LLVMValueRef mask, int count);
/* Under the current mask. */
void tl_emit_store_apart(tl_emitter *em, const tl_address *a, LLVMTypeRef element, LLVMValueRef v,
                         int count);
bool tl_emit_is_update(const tl_store *store); /* C[..] = C[..] op rest, op that of a combiner */
LLVMTypeRef tl_emit_memory_type(tl_emitter *em, tl_dtype dtype); /* of one element */
LLVMTypeRef tl_emit_value_type(tl_emitter *em, tl_dtype dtype); /* bool i1, f16 and bf16 as float */
LLVMTypeRef tl_emit_vector(LLVMTypeRef element, int lanes);     /* itself for one lane */
LLVMValueRef tl_emit_splat(tl_emitter *em, LLVMValueRef scalar, int lanes);

/* emit_cast_llvm.c */
/* The result of integer arithmetic as a number of the dtype, where that has fewer bits than what it is computed in. */
LLVMValueRef tl_emit_wrap(tl_emitter *em, tl_dtype dtype, LLVMValueRef v);
LLVMValueRef tl_emit_cast(tl_emitter *em, tl_dtype to, tl_dtype from, LLVMValueRef v);
LLVMValueRef tl_emit_round(tl_emitter *em, tl_dtype dtype,
                           LLVMValueRef v); /* float to f16/bf16 precision */
LLVMValueRef tl_emit_from_memory(tl_emitter *em, tl_dtype dtype, LLVMValueRef v);
LLVMValueRef tl_emit_to_memory(tl_emitter *em, tl_dtype dtype, LLVMValueRef v);

/* emit_reduce_llvm.c: lanes into one. */
LLVMValueRef tl_emit_reduce(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, LLVMValueRef v);
LLVMValueRef tl_emit_any(tl_emitter *em, LLVMValueRef mask);

/* An overloaded LLVM intrinsic. */
LLVMValueRef tl_emit_intrinsic(tl_emitter *em, const char *name, LLVMTypeRef *overloads,
                               int overload_count, LLVMValueRef *args, int arg_count);
/* A function dev_NAME, which only a GPU's hardware has (codegen/llvm/device_llvm.c): a call that stays where it is. */
LLVMValueRef tl_emit_device(tl_emitter *em, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, int arg_count);
int tl_emit_lanes_of(LLVMTypeRef type); /* 1 for a scalar */

#endif
