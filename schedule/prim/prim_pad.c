/* schedule/prim/prim_pad.c: pad(block, [a, b, ...]) -> copy
 *
 *                                            alloc C_pad: f32[16, 32]
 *     for i in 0..13                         for i in 0..16
 *       for j in 0..30                         for j in 0..32
 *         for k in 0..7                          for k in 0..8
 *           C: C[i, j] =             ->            C: C_pad[i, j] = sum(select(i < 13 and j < 30 and k < 7,
 *                sum(A[i, k]*B[k, j])                                          A[i, k]*B[k, j], 0))
 *                                            for i in 0..13
 *                                              for j in 0..30
 *                                                C_copy: C[i, j] = C_pad[i, j]
 *
 * Every iter's domain grows to the next multiple of its factor, and the loop of the iter with it, so that later splits
 * leave no tails. Outside of the old domain nothing is loaded: the value is the combiner's identity there, or 0. The
 * results go to a padded buffer, of which the old domain is copied to the old one.
 *
 * Requires  a block of the body that writes whole values (no update-only reduction, no intrinsic, no guards), does not
 *           read its own result, and whose stores are indexed by its spatial iters, each once; a factor of at least 1
 *           for every iter; iters bound to a serial loop each, over all of its domain; no ordered iter that is padded;
 *           no other block under its loops. When nothing is to be padded, the buffer and the copy are made all the same.
 * Keeps     every value.
 */
#include <assert.h>
#include "schedule/padding.h"

tl_status tl_apply_pad(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                       int *out_count, tl_diag *diag)
{
    assert(arg_count == 2);
    (void)arg_count;
    tl_padding p;
    TL_TRY(tl_padding_plan(s, "pad", args, &p, diag));
    tl_padding_settle(s, &p, tl_padded_nest(s, &p, true), out, out_count);
    return TL_OK;
}
