/* tuner/dataset/sample_points.h: which points of a task a data set has.
 *
 * Number i of a task and a seed is always the same point, whatever came of the others: a collection that was interrupted goes
 * on. Of five, two are walks and two are uniform in the plain space; the fifth is a search's, which decides itself
 * (collect.c). */
#ifndef TL_TUNER_DATASET_SAMPLE_POINTS_H
#define TL_TUNER_DATASET_SAMPLE_POINTS_H
#include "tuner/dataset/dataset.h"

tl_sampler tl_sampler_at(int number);

/* Of which space its points are. */
tl_space_kind tl_sampler_space(tl_sampler sampler);

/* Builds the point in `arena`; `space` is of the sampler's kind. `probability`: of what was drawn; of walks, of which several
 * may lead to one point, that of this one. TL_ILLEGAL_SCHEDULE: there is no such schedule. */
tl_status tl_sample_point(const tl_space *space, tl_arena *arena, tl_sampler sampler, int number,
                          uint64_t seed, tl_variant *out, double *probability, tl_diag *diag);

#endif
