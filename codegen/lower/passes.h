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

#endif
