/* tests/structural/draw_counted.c: results that have as many elements as data say. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

/* A mask whose numbers are known to us: to the file as well, or to the call alone. */
static const draw_value *draw_mask(drawing *c, int64_t extent, int64_t *taken)
{
    int64_t *kept = TL_NEW_ARRAY(c->arena, int64_t, extent + 1);
    int percent = draw_chance(c, 85) ? 60 : draw_chance(c, 50) ? 100 : 0; /* or all, or none */
    *taken = 0;
    for (int64_t i = 0; i < extent; i++)
        *taken += kept[i] = draw_chance(c, percent);
    return draw_chance(c, 65) ? draw_given(c, TL_BOOL, (int)extent, kept, false)
                              : draw_numbers(c, TL_BOOL, (int)extent, kept, false);
}

/* Whether the numbers of an operand are known when the model is called, and not before. */
static bool is_given(drawing *c, const draw_value *v)
{
    return strstr(tl_text_get(&c->head), tl_arena_format(c->arena, "input %s ", v->name)) != NULL;
}

bool draw_found(drawing *c)
{
    int64_t dims[TL_MAX_RANK], taken, count = draw_between(c, 2, 12);
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY & ~DRAW_BIT(TL_BF16), .least_rank = 1 });
    int axis = draw_axis(c, x);
    if (axis < 0 || x->dims[axis] == 0)
        return false;
    int64_t extent = x->dims[axis] < count ? x->dims[axis] : count;
    bool compresses = draw_chance(c, 60);
    draw_value from = *x; /* a new value may move it */
    const draw_value *mask = draw_mask(c, extent, &taken);
    bool by_data = is_given(c, mask);
    memcpy(dims, from.dims, sizeof dims);
    if (compresses) {
        dims[axis] = taken;
        draw_node(c, "Compress", DRAW_IN(x, mask), 1, "axis=%lld",
                  (long long)draw_signed_axis(c, axis, from.rank));
        c->counts |= by_data;
        draw_result(c, from.dtype, from.rank, dims, from.open, from.range);
        return true;
    }
    int64_t found[2] = { 1, taken };
    draw_node(c, "NonZero", DRAW_IN(mask), 1, "%s", "");
    c->counts |= by_data;
    draw_result(c, TL_I64, 2, found, NULL, DRAW_WHOLE(0, (double)extent));
    return true;
}

bool draw_unique(drawing *c)
{
    int64_t numbers[6], found = 0, n = draw_between(c, 1, 6);
    for (int64_t i = 0; i < n; i++) {
        bool is_new = true;
        numbers[i] = draw_between(c, 0, 3);
        for (int64_t k = 0; k < i; k++)
            is_new = is_new && numbers[k] != numbers[i];
        found += is_new;
    }
    const draw_value *x = draw_chance(c, 50) ? draw_given(c, TL_I64, (int)n, numbers, false)
                                             : draw_numbers(c, TL_I64, (int)n, numbers, false);
    bool by_data = is_given(c, x);
    draw_node(c, "Unique", DRAW_IN(x), 4, "sorted=%d", draw_chance(c, 50));
    c->counts = by_data;
    draw_result(c, TL_I64, 1, &found, NULL, DRAW_WHOLE(0, 3));
    draw_result(c, TL_I64, 1, &found, NULL, DRAW_WHOLE(0, 5));
    draw_result(c, TL_I64, 1, &n, NULL, DRAW_WHOLE(0, 5));
    draw_result(c, TL_I64, 1, &found, NULL, DRAW_WHOLE(0, 6));
    return true;
}

/* Three boxes, of which the second lies upon the first. */
bool draw_suppression(drawing *c)
{
    int64_t most[1] = { 2 }, out[2] = { 2, 3 };
    static const char boxes[] = "0,0,1,1,0,0.125,1,1.125,0,2,1,3";
    const char *scores = tl_arena_format(c->arena, "0.75,0.5,%s", draw_word(c, "0.25 0.875"));
    draw_value b = { .name = tl_arena_format(c->arena, "boxes%d", c->count),
                     .dtype = TL_F32,
                     .rank = 3 };
    draw_value s = b;
    bool by_data = draw_chance(c, 50);
    char *given = tl_arena_strdup(c->arena, scores);
    for (char *at = given; *at != '\0'; at++)
        *at = *at == ',' ? '_' : *at;
    s.name = by_data ? tl_arena_format(c->arena, "scores%d__v%s", c->count, given)
                     : tl_arena_format(c->arena, "scores%d", c->count);
    tl_text_format(&c->head, "init %s f32 1,3,4 = %s;\n", b.name, boxes);
    if (by_data)
        tl_text_format(&c->head, "input %s f32 1,1,3;\n", s.name);
    else
        tl_text_format(&c->head, "init %s f32 1,1,3 = %s;\n", s.name, scores);
    const draw_value *m = draw_numbers(c, TL_I64, 1, most, true);
    const draw_value *t = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 0.5, 0.5, 0.25 });
    by_data |= is_given(c, m);
    draw_node(c, "NonMaxSuppression", DRAW_IN(&b, &s, m, t), 1, "%s", "");
    c->counts = by_data;
    draw_result(c, TL_I64, 2, out, NULL, DRAW_WHOLE(0, 2));
    return true;
}

/* ---- along open axes ---- */

/* A result of the latest node whose extents, or numbers, another call will not have. */
static const draw_value *draw_apart(drawing *c, tl_dtype dtype, int rank)
{
    const int64_t dims[TL_MAX_RANK] = { 0 };
    draw_value *y =
        (draw_value *)(uintptr_t)draw_result(c, dtype, rank, dims, NULL, draw_usual(dtype));
    y->kept_apart = y->counted = true;
    return y;
}

/* It is an output, or read by one more node whose result is. */
static void end_apart(drawing *c, tl_dtype dtype, int rank)
{
    const draw_value *y = draw_apart(c, dtype, rank);
    int kind = (int)draw_below(c, 5);
    if (kind == 0 || (kind == 1 && !tl_dtype_is_float(dtype)))
        return;
    if (kind == 1)
        draw_node(c, draw_word(c, "Neg Abs Relu"), DRAW_IN(y), 1, "%s", "");
    else if (kind == 2)
        draw_node(c, "Concat", DRAW_IN(y, y), 1, "axis=%d", rank - 1);
    else if (kind == 3)
        draw_node(c, "Shape", DRAW_IN(y), 1, "%s", "");
    else
        draw_node(c, "Mul", DRAW_IN(y, y), 1, "%s", "");
    draw_apart(c, kind == 3 ? TL_I64 : dtype, kind == 3 ? 1 : rank);
}

/* As many turns as there are rows, of a state that has a row more behind each. */
static void draw_doubled_open(drawing *c, const draw_value *x)
{
    const int64_t dims[2] = { 1, x->dims[1] };
    const draw_value *row = draw_new(c, TL_F32, 2, dims, draw_usual(TL_F32));
    ((draw_value *)(uintptr_t)row)->is_read = true;
    draw_node(c, "Shape", DRAW_IN(x), 1, "start=0 end=1");
    draw_node(c, "Squeeze", DRAW_IN(draw_apart(c, TL_I64, 1)), 1, "%s", "");
    draw_node(c, "Loop", DRAW_IN(draw_apart(c, TL_I64, 0), NULL, x), 1,
              "body={input i i64; input go bool; input s f32 m,%lld; node Identity go -> on; "
              "node Concat s,%s -> t axis=0; output on bool; output t f32 k,%lld}",
              (long long)dims[1], row->name, (long long)dims[1]);
    end_apart(c, TL_F32, 2);
}

/* What is found along n: how much that is differs from call to call, and so does where. */
bool draw_found_open(drawing *c)
{
    if (!c->has_open)
        return false;
    const int64_t dims[2] = { c->open_extent, draw_between(c, 1, 4) };
    const bool open[2] = { true, false };
    int kind = (int)draw_below(c, 4);
    if (kind == 0) {
        const draw_value *x = draw_new_open(c, TL_I64, 1, dims, open, DRAW_WHOLE(0, 9));
        draw_node(c, "Unique", DRAW_IN(x), 4, "sorted=%d", draw_chance(c, 50));
        end_apart(c, TL_I64, 1);
        return true;
    }
    const draw_value *x = draw_new_open(c, TL_F32, 2, dims, open, draw_usual(TL_F32));
    if (kind == 1) {
        draw_node(c, "NonZero", DRAW_IN(x), 1, "%s", "");
        end_apart(c, TL_I64, 2);
    } else if (kind == 2) {
        draw_doubled_open(c, x);
    } else {
        const draw_value *limit = draw_weight(c, TL_F32, 0, NULL, DRAW_WHOLE(-1, 0)),
                         *of = draw_new_open(c, TL_F32, 1, dims, open, draw_usual(TL_F32));
        draw_node(c, "Greater", DRAW_IN(of, limit), 1, "%s", "");
        const draw_value *mask = draw_result_like(c, of, TL_BOOL, DRAW_WHOLE(0, 1));
        draw_node(c, "Compress", DRAW_IN(x, mask), 1, "axis=0");
        end_apart(c, TL_F32, 2);
    }
    return true;
}
