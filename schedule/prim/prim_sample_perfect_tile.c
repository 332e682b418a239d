/* schedule/prim/prim_sample_perfect_tile.c: sample_perfect_tile(loop, parts, most, decision?) -> factors
 *
 *     t = sample_perfect_tile(i, 3, 16, [4, 2, 8])         factors whose product is the extent of i (64)
 *     i0, i1, i2 = split(i, t)
 *
 * Without a decision one is drawn: every prime factor of the extent goes to one of the parts, to the innermost one only
 * while that stays within `most`. The decision is recorded.
 *
 * Requires  a loop of constant extent; 1 to 8 parts; `most` at least 1; a decision with that many factors, none of them
 *           _, whose product is the extent and whose last is at most `most`.
 * Keeps     the program as it is.
 */
#include <assert.h>
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

#define PRIM "sample_perfect_tile"

enum { MOST_PARTS = 8 };

static void draw(tl_schedule *s, int64_t extent, int parts, int64_t most, int64_t *factors)
{
    assert(extent >= 1 && parts > 0);
    for (int i = 0; i < parts; i++)
        factors[i] = 1;
    for (int64_t prime = 2; extent > 1; prime++) {
        if (prime > extent / prime)
            prime = extent; /* what is left has no smaller divisor */
        while (extent % prime == 0) {
            int part = (int)tl_random_below(&s->random, (uint64_t)parts);
            if (part == parts - 1 && factors[part] > most / prime)
                part = 0;
            if (parts == 1 || part < parts - 1 || factors[part] <= most / prime)
                factors[part] *= prime;
            extent /= prime;
        }
    }
}

static tl_status check_decision(const char *name, const tl_arg *decision, int64_t extent, int parts,
                                int64_t most, tl_diag *diag)
{
    assert(parts > 0);
    int64_t product = 1;
    if (decision->count != parts)
        return tl_refuse(diag, PRIM, name, "the decision has %d factors for %d parts",
                         decision->count, parts);
    for (int i = 0; i < parts; i++)
        if (decision->factors[i] < 1 || tl_mul_overflows(product, decision->factors[i], &product))
            return tl_refuse(diag, PRIM, name, "factor %d of the decision is _ or too large",
                             i + 1);
    if (product != extent)
        return tl_refuse(diag, PRIM, name,
                         "the decision's product %lld is not the extent %lld; leave it out to draw "
                         "another",
                         (long long)product, (long long)extent);
    if (decision->factors[parts - 1] > most)
        return tl_refuse(diag, PRIM, name, "the decision's last factor %lld is larger than %lld",
                         (long long)decision->factors[parts - 1], (long long)most);
    return TL_OK;
}

tl_status tl_apply_sample_perfect_tile(tl_schedule *s, const tl_arg *args, int arg_count,
                                       tl_arg *out, int *out_count, tl_diag *diag)
{
    assert(arg_count >= 3 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_INT &&
           args[2].kind == TL_ARG_INT);
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &loop, diag));
    const char *name = loop->u.loop.var->name;
    int64_t extent = 1, parts = args[1].value, most = args[2].value;
    TL_TRY(tl_check_constant_extent(PRIM, loop, INT32_MAX, diag));
    (void)tl_const_int(loop->u.loop.extent, &extent);
    if (parts < 1 || parts > MOST_PARTS)
        return tl_refuse(diag, PRIM, name, "%lld parts are not in 1..%d", (long long)parts,
                         MOST_PARTS);
    if (most < 1 || (parts == 1 && most < extent))
        return tl_refuse(diag, PRIM, name, "no factors of %lld have a last one of at most %lld",
                         (long long)extent, (long long)most);
    tl_arg chosen = { .kind = TL_ARG_FACTORS, .count = (int)parts };
    if (arg_count > 3) {
        chosen.factors = args[3].factors;
        TL_TRY(check_decision(name, &args[3], extent, (int)parts, most, diag));
    } else {
        int64_t *factors = TL_NEW_ARRAY(s->arena, int64_t, parts);
        draw(s, extent, (int)parts, most, factors);
        chosen.factors = factors;
        tl_schedule_decide(s, chosen);
    }
    out[0] = chosen;
    out[0].word = tl_schedule_name_value(s);
    *out_count = 1;
    return TL_OK;
}
