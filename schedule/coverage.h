/* schedule/coverage.h: what index expressions do to the instances of a nest of loops: whether they leave holes, and
 * whether two instances can meet. Both are proofs by digits in a mixed radix; "no" means "not known". */
#ifndef TL_SCHEDULE_COVERAGE_H
#define TL_SCHEDULE_COVERAGE_H
#include "schedule/region_at.h"

/* Whether the indices, as the free variables take all their values, reach every element of a box, whatever the other
 * variables are. */
bool tl_is_dense(tl_arena *arena, const tl_expr *const *indices, int count,
                 const tl_free_var *free_vars, int free_count);
/* Whether different values of the free variables give different indices, whatever the other variables are. */
bool tl_is_injective(tl_arena *arena, const tl_expr *const *indices, int count,
                     const tl_free_var *free_vars, int free_count);

#endif
