/* schedule/prim/prim_place_barriers.c: place_barriers()
 *
 *     for k in 0..4                              for k in 0..4
 *       for t in 0..32 threadIdx.x                 for t in 0..32 threadIdx.x
 *         T[t] = ..                                  T[t] = ..
 *       for t in 0..32 threadIdx.x       ->        barrier
 *         .. = T[31 - t]                           for t in 0..32 threadIdx.x
 *                                                    .. = T[31 - t]
 *                                                  barrier
 *
 * The threads of a GPU block meet wherever one of them may touch an element that another touched since they last met,
 * one of the two writing: read after write, write after read, write after write, also from one iteration of a serial
 * loop to the next. Accesses that only one and the same thread makes to an element need no barrier. Barriers that are
 * there already count.
 *
 * Requires  that every place where a barrier is wanted is reached by all threads: thread loops around it as long as the
 *           block is wide.
 * Keeps     what every thread computes, and makes what they hand to each other defined.
 */
#include "schedule/barriers.h"
#include "schedule/schedule_private.h"

tl_status tl_apply_place_barriers(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                  int *out_count, tl_diag *diag)
{
    (void)args;
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *body;
    TL_TRY(tl_place_barriers(s->arena, s->program->body, &body, diag));
    if (body != s->program->body)
        tl_schedule_set_body(s, body);
    return TL_OK;
}
