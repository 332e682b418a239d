/* codegen/lower/passes.h: the functions of lower_passes.def and what they share. A pass replaces kernel->body. */
#ifndef TL_CODEGEN_LOWER_PASSES_H
#define TL_CODEGEN_LOWER_PASSES_H
#include "codegen/lower/lower_program.h"

#define PASS(name, when, leaves, holds) tl_pass_function tl_##name;
#include "codegen/lower/lower_passes.def"
#undef PASS

/* statement_questions.c: questions that several passes ask. */
/* Reads, writes or prefetches it. */
bool tl_stmt_touches(const tl_stmt *stmt, const tl_buffer *buffer);
/* The variables of all loops inside, the statement itself included. */
typedef struct {
    int count, capacity;
    const tl_var **vars;
} tl_var_set;
tl_var_set tl_stmt_loop_vars(tl_arena *arena, const tl_stmt *stmt);
bool tl_var_set_has(const tl_var_set *set, const tl_var *var);
void tl_var_set_add(tl_arena *arena, tl_var_set *set, const tl_var *var);
bool tl_expr_uses_any(const tl_expr *e, const tl_var_set *set);
/* Every index array of an access of `buffer` (loads, stores, prefetches); false from `visit` ends the walk. */
typedef bool tl_access_visitor(const tl_expr *const *indices, void *context);
void tl_visit_accesses(const tl_stmt *stmt, const tl_buffer *buffer, tl_access_visitor *visit,
                       void *context);
/* Accesses of `from` become accesses of `to` with the indices that `map` gives (an arena array). */
typedef const tl_expr *const *tl_index_mapper(tl_arena *arena, const tl_expr *const *indices,
                                              void *context);
const tl_stmt *tl_remap_accesses(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *from,
                                 const tl_buffer *to, tl_index_mapper *map, void *context);
/* Every region of it that an intrinsic takes. */
typedef bool tl_region_visitor(const tl_region *region, void *context);
void tl_visit_regions(const tl_stmt *stmt, const tl_buffer *buffer, tl_region_visitor *visit,
                      void *context);
bool tl_stmt_calls_with(const tl_stmt *stmt,
                        const tl_buffer *buffer); /* an intrinsic has a region of it */
/* await_bulk_copies.c. Where in the threads of a block a statement stands: how many of them along y and z run it, each of which
 * the first along x stands for, the axes of the loops around it, and whether it runs again. */
typedef struct {
    int64_t rows;
    unsigned axes;
    bool repeats;
} tl_thread_place;
tl_thread_place tl_thread_enter(tl_thread_place place, const tl_stmt *loop);
/* Whether it has bulk copies into shared memory. */
bool tl_has_bulk_loads(const tl_stmt *stmt);
/* The bytes that these bring, of one of the rows that stand there; TL_UNSUPPORTED: no number says so. */
tl_status tl_bulk_bytes(const tl_lowered_kernel *kernel, const tl_stmt *stmt, tl_thread_place place,
                        int64_t *bytes, tl_diag *diag);
/* The statement with its bulk copies into shared memory begun, which `mbarrier` hears of. */
const tl_stmt *tl_bulk_begin(tl_arena *arena, const tl_stmt *stmt, const tl_expr *mbarrier);
/* A statement of those rows, with copies that stand alone begun and waited for. */
const tl_stmt *tl_await_copies(tl_lowered_kernel *kernel, const tl_stmt *stmt,
                               tl_thread_place place, tl_status *status, tl_diag *diag);
/* `call NAME(a, b)` of what orders threads. */
const tl_stmt *tl_sync_call2(tl_arena *arena, const char *name, const tl_expr *a, const tl_expr *b);
/* Until phase number `turn` of the mbarriers `first`.. that take turns in `stages` has ended; which of them it is. */
const tl_stmt *tl_mbarrier_wait(tl_arena *arena, int first, int64_t stages, const tl_expr *turn);
const tl_expr *tl_mbarrier_of(tl_arena *arena, int first, int64_t stages, const tl_expr *turn);
/* A call of what orders threads and what goes on by itself (intrinsics.def): its name and its numbers. */
const tl_stmt *tl_sync_call(tl_arena *arena, const char *name, const int64_t *numbers, int count);
bool tl_is_call(const tl_stmt *stmt, const char *name);
/* await_products.c: whether it is products of a warpgroup and nothing else; these, begun and closed as a group; behind a
 * wait, the calls that make their sums known. */
bool tl_has_products_only(const tl_stmt *stmt);
const tl_stmt *tl_products_group(tl_arena *arena, const tl_stmt *products);
const tl_stmt *tl_products_done(tl_arena *arena, const tl_stmt *products);
/* The lanes of a chunk of that vectorized loop on the target. */
int tl_vector_lanes(const tl_stmt *loop, const tl_target *target);
/* The lanes of the chunk that takes what is left of a loop, fewer iterations than that: all in one vector, of which a mask lets
 * through the first ones; a GPU's thread takes as many as a power of two has. */
int tl_rest_lanes(const tl_target *target, int64_t rest);

#endif
