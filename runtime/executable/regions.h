/* runtime/executable/regions.h: the tree of regions that an executable's steps are.
 *
 *     step  0  scale                    list
 *           1  loop, body 4             |-- scale
 *           2    add                    |-- loop
 *           3    choice, body 1, other 1|   |-- add
 *           4      mul                  |   `-- choice
 *           5      neg                  |       |-- mul
 *           6  copy                     |       `-- neg
 *                                       `-- copy
 *
 * A step of kind loop or choice owns the steps right behind it, and steps are numbered in this order, so that a flat list is
 * the tree that it always was: times, hooks and the memory plan go by the number. */
#ifndef TL_RUNTIME_EXECUTABLE_REGIONS_H
#define TL_RUNTIME_EXECUTABLE_REGIONS_H
#include "runtime/executable/executable.h"

enum { TL_REGION_DEPTH = 64 }; /* loops and choices inside one another, at most */

static inline bool tl_step_has_region(const tl_executable_step *step)
{
    return step->kernel == TL_STEP_LOOP || step->kernel == TL_STEP_CHOICE;
}

/* The step behind it and all that it owns. */
static inline int tl_step_end(const tl_executable_step *steps, int step)
{
    return step + 1 + steps[step].body + steps[step].other;
}

/* Whether the steps are a tree: what a step owns is there, and inside of what owns the step. */
tl_status tl_regions_check(const tl_executable_step *steps, int count, tl_diag *diag);
/* By step the one that owns it, -1: none. Of steps that are a tree. */
void tl_regions_owners(const tl_executable_step *steps, int count, int *owner);

#endif
