/* tests/structural/draw_control.c: graphs inside of nodes, and losses. */
#include <math.h>
#include "tests/structural/draw.h"

/* What the branch or the body of a node makes of v. */
static const char *branch(drawing *c, const draw_value *v, const char *result)
{
    const char *op = draw_word(c, "Neg Abs Relu Identity");
    return tl_arena_format(c->arena, "{node %s %s -> %s; output %s %s%s}", op, v->name, result,
                           result, tl_dtype_infos[v->dtype].text,
                           v->rank > 0
                               ? tl_arena_format(c->arena, " %s", draw_list(c, v->rank, v->dims))
                               : "");
}

bool draw_choice(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS & ~DRAW_BIT(TL_BF16) });
    const draw_value *condition = draw_new(c, TL_BOOL, 0, NULL, DRAW_WHOLE(0, 1));
    double most = fmax(fabs(x->range.low), fabs(x->range.high));
    const char *a = branch(c, x, "a"), *b = branch(c, x, "b");
    ((draw_value *)(uintptr_t)x)->is_read = true;
    draw_node(c, "If", DRAW_IN(condition), 1, "then_branch=%s else_branch=%s", a, b);
    draw_result_like(c, x, x->dtype, (draw_range){ -most, most, x->range.step });
    return true;
}

/* Of a known number of turns: of one that is an input tilth takes results of all turns for as long as they may be, and refuses
 * what would broadcast with the length that they have. */
bool draw_loop(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64),
                                                     .low = -100,
                                                     .high = 100,
                                                     .least_rank = 1,
                                                     .most_rank = 3,
                                                     .most_elements = 300 });
    int64_t turns[1] = { draw_between(c, 1, 4) }, dims[TL_MAX_RANK] = { turns[0] };
    const draw_value *n = draw_weight(c, TL_I64, 0, NULL,
                                      DRAW_WHOLE((double)turns[0], (double)turns[0])),
                     *y = draw_within(c, x, x->dtype, draw_usual(x->dtype));
    const char *t = tl_dtype_infos[x->dtype].text, *of = draw_list(c, x->rank, x->dims);
    for (int i = 0; i < x->rank; i++)
        dims[i + 1] = x->dims[i];
    ((draw_value *)(uintptr_t)y)->is_read = true;
    const char *body =
        tl_arena_format(c->arena,
                        "{input i i64; input go bool; input s %s %s; node Identity go -> on; node "
                        "Add s,%s -> next; node Identity next -> seen; "
                        "output on bool; output next %s %s; output seen %s %s}",
                        t, of, y->name, t, of, t, of);
    double most = fmax(fabs(x->range.low), fabs(x->range.high)) + 2 * (double)turns[0];
    draw_range r = { -most, most, fmin(x->range.step, y->range.step) };
    draw_node(c, "Loop", DRAW_IN(n, NULL, x), 2, "body=%s", body);
    draw_result_like(c, x, x->dtype, r);
    draw_result(c, x->dtype, x->rank + 1, dims, NULL, r);
    return true;
}

bool draw_scan(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64),
                                                     .low = -50,
                                                     .high = 50,
                                                     .least_rank = 2,
                                                     .most_rank = 3,
                                                     .full = true,
                                                     .most_elements = 300 });
    if (x->dims[0] > 12)
        return false;
    const char *t = tl_dtype_infos[x->dtype].text, *of = draw_list(c, x->rank - 1, x->dims + 1);
    const draw_value *first = draw_new(c, x->dtype, x->rank - 1, x->dims + 1, draw_usual(x->dtype));
    double most = (fmax(fabs(x->range.low), fabs(x->range.high)) + 2) * (double)x->dims[0] + 2;
    draw_range r = { -most, most, fmin(x->range.step, first->range.step) };
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(
        c, "Scan", DRAW_IN(first, x), 2,
        "num_scan_inputs=1 scan_input_directions=[%d] body={input s %s %s; input e %s %s; node Add "
        "s,e -> next; node Identity next -> seen; output next %s %s; output seen %s %s}",
        draw_chance(c, 40), t, of, t, of, t, of, t, of);
    draw_result(c, x->dtype, x->rank - 1, x->dims + 1, NULL, r);
    draw_result(c, x->dtype, x->rank, x->dims, NULL, r);
    return true;
}

bool draw_loss(drawing *c)
{
    int64_t n = draw_between(c, 1, 5), k = draw_between(c, 2, 6), dims[2] = { n, k };
    const char *reduction = draw_word(c, "none sum mean");
    bool entropy = draw_chance(c, 50);
    const draw_value *x = draw_new(c, TL_F32, 2, dims, DRAW_REAL(-3, 3)),
                     *t = draw_new(c, TL_I64, 1, &n, DRAW_WHOLE(0, (double)k - 1));
    const draw_value *w = draw_chance(c, 40) ? draw_new(c, TL_F32, 1, &k, DRAW_REAL(0.5, 2)) : NULL;
    draw_node(c, entropy ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
              DRAW_IN(x, t, w), 1, "reduction='%s'", reduction);
    draw_result(c, TL_F32, reduction[0] == 'n' ? 1 : 0, &n, NULL, DRAW_REAL(-100, 100));
    return true;
}
