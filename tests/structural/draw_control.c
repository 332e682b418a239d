/* tests/structural/draw_control.c: graphs inside of nodes, and losses. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

/* ---- what all bodies share ---- */

static const char *type_of(const draw_value *v)
{
    return tl_dtype_infos[v->dtype].text;
}

/* "f32 2,3", or with names in place of extents that a file need not know: of axes from `first` on. */
static const char *type_from(drawing *c, const draw_value *v, int first, const char *names)
{
    const char *list = "";
    for (int i = first; i < v->rank; i++) {
        const char *comma = i > first ? "," : " ";
        list = names[0] == '\0' && !v->open[i]
                   ? tl_arena_format(c->arena, "%s%s%lld", list, comma, (long long)v->dims[i])
                   : tl_arena_format(c->arena, "%s%s%sd%d", list, comma, names, i);
    }
    return tl_arena_format(c->arena, "%s%s", type_of(v), list);
}

/* Now and then with names. */
static const char *type(drawing *c, const draw_value *v, int first)
{
    return type_from(c, v, first, v->counted || draw_chance(c, 25) ? "s" : "");
}

static void mark_read(const draw_value *v)
{
    ((draw_value *)(uintptr_t)v)->is_read = true;
}

static double magnitude(const draw_value *v)
{
    return fmax(fabs(v->range.low), fabs(v->range.high));
}

static draw_range around(double most, double step)
{
    return (draw_range){ -most, most, step };
}

static const draw_value *pick_number_like(drawing *c, int least_rank)
{
    return draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64),
                                      .low = -50,
                                      .high = 50,
                                      .least_rank = least_rank,
                                      .most_rank = 3,
                                      .full = true,
                                      .most_elements = 300 });
}

/* ---- If ---- */

/* A branch that gives something of v's shape; now and then its own branch or loop is inside of it. */
static const char *branch(drawing *c, const draw_value *v, const char *result, bool has_type)
{
    bool has_relu = tl_dtype_is_float(v->dtype) || c->opset >= 14;
    const char *op = draw_word(c, has_relu ? "Neg Abs Relu Identity" : "Neg Abs Identity");
    const char *of = has_type ? tl_arena_format(c->arena, " %s", type(c, v, 0)) : "";
    bool loops = (v->dtype == TL_F32 || v->dtype == TL_F64) && draw_chance(c, 15);
    if (loops)
        return tl_arena_format(
            c->arena,
            "{init %sn i64 = %lld; node Loop %sn,-,%s -> %s body={input i i64; input g bool; "
            "input s %s; node %s s -> t; node Identity g -> on; output on bool; output t}; "
            "output %s%s}",
            result, (long long)draw_between(c, 1, 9), result, v->name, result,
            type_from(c, v, 0, "t"), op, result, of);
    return tl_arena_format(c->arena, "{node %s %s -> %s; output %s%s}", op, v->name, result, result,
                           of);
}

/* Both branches give as much. */
static bool draw_same_choice(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS & ~DRAW_BIT(TL_BF16) });
    const draw_value *condition = draw_new(c, TL_BOOL, 0, NULL, DRAW_WHOLE(0, 1));
    const char *a = branch(c, x, "a", true), *b = branch(c, x, "b", true);
    mark_read(x);
    draw_node(c, "If", DRAW_IN(condition), 1, "then_branch=%s else_branch=%s", a, b);
    c->counts = x->counted; /* the branches read it, not the node */
    draw_result_like(c, x, x->dtype, around(magnitude(x), x->range.step));
    return true;
}

/* One of them gives more than the other: the call says which. */
static bool draw_other_choice(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32) | DRAW_BIT(TL_I64),
                                                     .least_rank = 1,
                                                     .most_rank = 4,
                                                     .most_elements = 400 });
    int axis = draw_axis(c, x);
    if (axis < 0 || draw_is_open(x))
        return false;
    int64_t dims[TL_MAX_RANK], yes = draw_chance(c, 50);
    const draw_value *condition = draw_given(c, TL_BOOL, 1, &yes, true);
    const char *more =
        tl_arena_format(c->arena, "{node Concat %s,%s -> a axis=%d; node Neg a -> p; output p}",
                        x->name, x->name, axis);
    const char *same = branch(c, x, "b", false);
    bool more_first = draw_chance(c, 50);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] *= (yes != 0) == more_first ? 2 : 1;
    mark_read(x);
    draw_node(c, "If", DRAW_IN(condition), 1, "then_branch=%s else_branch=%s",
              more_first ? more : same, more_first ? same : more);
    c->counts = true;
    draw_result(c, x->dtype, x->rank, dims, NULL, around(magnitude(x), x->range.step));
    return true;
}

bool draw_choice(drawing *c)
{
    return draw_chance(c, 60) ? draw_same_choice(c) : draw_other_choice(c);
}

/* ---- Loop ---- */

/* How often a loop goes around, and who knows: the file, the call, or a condition that its body computes. */
typedef struct {
    int64_t turns;
    bool is_known;
    const draw_value *wanted, *enters;
    const char *again; /* nodes of the body that give `on` */
} loop_turns;

static loop_turns draw_turns(drawing *c)
{
    loop_turns l = { .turns = draw_chance(c, 85) ? draw_between(c, 1, 5) : draw_between(c, 6, 40),
                     .again = "node Identity go -> on; " };
    int64_t yes = 1, last = l.turns - 1;
    int kind = (int)draw_below(c, 100);
    if (kind < 35) {
        l.is_known = true;
        l.wanted = draw_weight(c, TL_I64, 0, NULL, DRAW_WHOLE((double)l.turns, (double)l.turns));
    } else if (kind < 75) {
        l.wanted = draw_given(c, TL_I64, 1, &l.turns, true);
    } else {
        const draw_value *limit = draw_given(c, TL_I64, 1, &last, true);
        l.enters = draw_chance(c, 50) ? draw_given(c, TL_BOOL, 1, &yes, true)
                                      : draw_numbers(c, TL_BOOL, 1, &yes, true);
        mark_read(limit);
        l.again = tl_arena_format(c->arena, "node Less i,%s -> on; ", limit->name);
    }
    return l;
}

/* What is added up, and what each turn saw. */
static bool draw_adding_loop(drawing *c)
{
    const draw_value *x = pick_number_like(c, 1);
    if (draw_is_open(x))
        return false;
    loop_turns l = draw_turns(c);
    int64_t dims[TL_MAX_RANK] = { l.turns };
    const draw_value *y = draw_within(c, x, x->dtype, draw_usual(x->dtype));
    for (int i = 0; i < x->rank; i++)
        dims[i + 1] = x->dims[i];
    mark_read(y);
    bool chooses = draw_chance(c, 20); /* a branch in a body */
    const char *step =
        chooses ? tl_arena_format(c->arena,
                                  "init two i64 = 2; node Less i,two -> early; node If early -> "
                                  "next then_branch={node Add s,%s -> p; output p} "
                                  "else_branch={node Sub s,%s -> q; output q}; ",
                                  y->name, y->name)
                : tl_arena_format(c->arena, "node Add s,%s -> next; ", y->name);
    const char *of = type(c, x, 0);
    const char *body =
        tl_arena_format(c->arena,
                        "{input i i64; input go bool; input s %s; %s%snode Identity next -> seen; "
                        "output on bool; output next %s; output seen %s}",
                        of, l.again, step, of, of);
    draw_range r = around(magnitude(x) + 2 * (double)l.turns, fmin(x->range.step, y->range.step));
    draw_node(c, "Loop", DRAW_IN(l.wanted, l.enters, x), 2, "body=%s", body);
    c->counts |= y->counted;
    draw_result_like(c, x, x->dtype, r);
    c->counts |= !l.is_known;
    draw_result(c, x->dtype, x->rank + 1, dims, NULL, r);
    return true;
}

/* A state that has a row more in each turn, or the latest few. */
static bool draw_growing_loop(drawing *c)
{
    int64_t dims[2] = { draw_between(c, 1, 3), draw_between(c, 1, 4) }, one[2] = { 1, dims[1] };
    const draw_value *first = draw_new(c, TL_F32, 2, dims, draw_usual(TL_F32)),
                     *row = draw_new(c, TL_F32, 2, one, draw_usual(TL_F32));
    loop_turns l = draw_turns(c);
    bool windowed = draw_chance(c, 40);
    int64_t window = draw_between(c, 2, 4), extent = dims[0] + l.turns;
    const char *cut =
        windowed ? tl_arena_format(c->arena,
                                   "init from i64 1 = %lld; init to i64 1 = 100000; init zero i64 "
                                   "1 = 0; node Slice grown,from,to,zero -> next; ",
                                   -(long long)window)
                 : "node Identity grown -> next; ";
    mark_read(row);
    const char *body = tl_arena_format(
        c->arena,
        "{input i i64; input go bool; input s f32 m,%lld; %snode Cast i -> j to=1; node Add %s,j "
        "-> new; node Concat s,new -> grown axis=0; %soutput on bool; output next f32 k,%lld}",
        (long long)dims[1], l.again, row->name, cut, (long long)dims[1]);
    draw_node(c, "Loop", DRAW_IN(l.wanted, l.enters, first), 1, "body=%s", body);
    dims[0] = windowed && extent > window ? window : extent;
    c->counts = true;
    draw_result(c, TL_F32, 2, dims, NULL, (draw_range){ -2, 2 + (double)l.turns, 0.25 });
    return true;
}

bool draw_loop(drawing *c)
{
    return draw_chance(c, 65) ? draw_adding_loop(c) : draw_growing_loop(c);
}

/* ---- Scan ---- */

bool draw_scan(drawing *c)
{
    const draw_value *x = pick_number_like(c, 2);
    bool open[TL_MAX_RANK] = { x->open[0] };
    for (int i = 1; i < x->rank; i++)
        if (x->open[i])
            return false;
    if (!x->open[0] && x->dims[0] > 24)
        return false;
    double turns = x->open[0] ? 24 : (double)x->dims[0];
    const char *of = type(c, x, 1);
    const draw_value *first = draw_new(c, x->dtype, x->rank - 1, x->dims + 1, draw_usual(x->dtype));
    draw_range r = around((magnitude(x) + 2) * turns + 2, fmin(x->range.step, first->range.step));
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, "Scan", DRAW_IN(first, x), 2,
              "num_scan_inputs=1 scan_input_directions=[%d] scan_output_directions=[%d] body={"
              "input s %s; input e %s; node Add s,e -> next; node Identity next -> seen; "
              "output next %s; output seen %s}",
              draw_chance(c, 40), draw_chance(c, 20), of, of, of, of);
    draw_result(c, x->dtype, x->rank - 1, x->dims + 1, NULL, r);
    draw_result(c, x->dtype, x->rank, x->dims, open, r);
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
