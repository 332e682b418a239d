/* schedule/sketch/sketch.h: the schedule a kernel gets without tuning: a sketch whose decisions an analytic model of the
 * target fills (schedule/README.md). */
#ifndef TL_SCHEDULE_SKETCH_SKETCH_H
#define TL_SCHEDULE_SKETCH_SKETCH_H
#include "schedule/schedule.h"

/* Applies the default schedule of the program's kernel to `s` (made on that program), or, when `s` has a decider
 * (schedule/decide.h), another point of its space. The rule is chosen from block signatures (what is reduced, which accesses are
 * contiguous), never by an operator's name. */
tl_status tl_schedule_default(tl_schedule *s, tl_diag *diag);

/* The same without expert rules: the naive nest, its outer loop parallel, its contiguous loop in vectors; or, with a decider, a
 * point of the plain space (schedule/sketch/sketch_plain.c). */
tl_status tl_schedule_plain(tl_schedule *s, tl_diag *diag);

/* Applies to `s`, made on a naive program, what makes sums of so many terms quicker and leaves each its terms and their order
 * (schedule/sketch/sketch_reference.c). */
tl_status tl_schedule_reference(tl_schedule *s, int64_t least_terms, tl_diag *diag);

/* What an option of a decision BLOCK.sketch stands for: "expert", "tiling", ... NULL: there is none such. */
const char *tl_sketch_name(int64_t option);

#endif
