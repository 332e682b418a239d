/* schedule/prim/prim_sample_categorical.c: sample_categorical([a, b, ...], [wa, wb, ...], decision?) -> number
 *
 *     d = sample_categorical([4, 8, 16], [1, 2, 1], 1)     the second of the numbers, 8
 *     annotate(k, unroll, d)
 *
 * Without a decision one is drawn with those weights. The decision, the place of a number from 0 on, is recorded.
 *
 * Requires  as many weights as numbers, no _ among them; a decision that is one of their places.
 * Keeps     the program as it is.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

#define PRIM "sample_categorical"

static int64_t draw(tl_schedule *s, const tl_arg *weights)
{
    assert(weights->kind == TL_ARG_FACTORS && weights->count > 0);
    uint64_t total = 0;
    for (int i = 0; i < weights->count; i++)
        total += (uint64_t)weights->factors[i];
    uint64_t at = (uint64_t)tl_random_below(&s->random, total);
    for (int i = 0; i < weights->count; i++) {
        if (at < (uint64_t)weights->factors[i])
            return i;
        at -= (uint64_t)weights->factors[i];
    }
    return 0;
}

tl_status tl_apply_sample_categorical(tl_schedule *s, const tl_arg *args, int arg_count,
                                      tl_arg *out, int *out_count, tl_diag *diag)
{
    assert(arg_count >= 2 && args[0].kind == TL_ARG_FACTORS && args[1].kind == TL_ARG_FACTORS);
    const tl_arg *numbers = &args[0], *weights = &args[1];
    if (numbers->count != weights->count)
        return tl_refuse(diag, PRIM, "numbers", "%d numbers have %d weights", numbers->count,
                         weights->count);
    for (int i = 0; i < numbers->count; i++)
        if (numbers->factors[i] < 1 || weights->factors[i] < 1 || weights->factors[i] > INT32_MAX)
            return tl_refuse(diag, PRIM, "numbers", "number or weight %d is _ or too large", i + 1);
    int64_t place = arg_count > 2 ? args[2].value : draw(s, weights);
    if (place < 0 || place >= numbers->count)
        return tl_refuse(diag, PRIM, "decision", "%lld is not in 0..%d", (long long)place,
                         numbers->count - 1);
    if (arg_count == 2)
        tl_schedule_decide(s, (tl_arg){ .kind = TL_ARG_INT, .value = place });
    out[0] = (tl_arg){ .kind = TL_ARG_INT,
                       .value = numbers->factors[place],
                       .word = tl_schedule_name_value(s) };
    *out_count = 1;
    return TL_OK;
}
