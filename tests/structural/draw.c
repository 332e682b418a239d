/* tests/structural/draw.c: numbers, values and nodes of a random graph. */
#include "tests/structural/draw.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tests/structural/operands.h"

/* ---- numbers ---- */

int64_t draw_below(drawing *c, int64_t n)
{
    return tl_random_below(&c->random, n);
}

int64_t draw_between(drawing *c, int64_t least, int64_t most)
{
    return least + draw_below(c, most - least + 1);
}

bool draw_chance(drawing *c, int percent)
{
    return draw_below(c, 100) < percent;
}

int64_t draw_extent(drawing *c)
{
    static const int64_t small[] = { 2, 3, 4, 5, 6, 7, 8, 9 },
                         odd[] = { 11, 13, 17, 19, 23, 31, 37 },
                         lanes[] = { 16, 15, 32, 33, 64, 65 };
    int64_t kind = draw_below(c, 100);
    if (kind < 15)
        return 1;
    if (kind < 17)
        return 0;
    if (kind < 32)
        return odd[draw_below(c, 7)];
    return kind < 42 ? lanes[draw_below(c, 6)] : small[draw_below(c, 8)];
}

int64_t draw_elements(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

int draw_shape(drawing *c, int least_rank, int most_rank, int64_t dims[TL_MAX_RANK])
{
    int rank = (int)draw_between(c, least_rank, most_rank);
    if (rank > 4 && draw_chance(c, 60))
        rank = least_rank > 3 ? least_rank : (int)draw_between(c, least_rank, 4);
    for (int i = 0; i < rank; i++)
        dims[i] = draw_extent(c);
    while (draw_elements(rank, dims) > DRAW_ELEMENTS) {
        int most = 0;
        for (int i = 1; i < rank; i++)
            most = dims[i] > dims[most] ? i : most;
        dims[most] = (dims[most] + 1) / 2;
    }
    return rank;
}

const char *draw_word(drawing *c, const char *words)
{
    int count = 1;
    for (const char *at = words; *at != '\0'; at++)
        count += *at == ' ';
    for (int64_t i = draw_below(c, count); i > 0; i--)
        words += strcspn(words, " ") + 1;
    return tl_arena_strndup(c->arena, words, strcspn(words, " "));
}

tl_dtype draw_of(drawing *c, unsigned dtypes)
{
    if (dtypes == DRAW_MAIN || ((dtypes & DRAW_BIT(c->main)) != 0 && draw_chance(c, 60)))
        return c->main;
    if (c->opset < 13)
        dtypes &= ~DRAW_BIT(TL_BF16);
    int left = (int)draw_below(c, __builtin_popcount(dtypes));
    int dtype = 0;
    for (;; dtype++)
        if ((dtypes & DRAW_BIT(dtype)) != 0 && left-- == 0)
            return (tl_dtype)dtype;
}

unsigned draw_floats_22(const drawing *c)
{
    return c->opset >= 22 ? DRAW_FLOATS : DRAW_USUAL_FLOATS;
}

unsigned draw_sums(const drawing *c)
{
    return DRAW_FLOATS | DRAW_WIDE | (c->opset >= 14 ? DRAW_NARROW : 0);
}

/* ---- values ---- */

bool draw_is_open(const draw_value *v)
{
    for (int i = 0; i < v->rank; i++)
        if (v->open[i])
            return true;
    return false;
}

draw_range draw_usual(tl_dtype dtype)
{
    if (tl_dtype_is_float(dtype))
        return (draw_range){ -2, 2, 0.25 };
    if (dtype == TL_BOOL)
        return DRAW_WHOLE(0, 1);
    return DRAW_WHOLE(tl_dtype_infos[dtype].class == TL_CLASS_INT ? -4 : 0, 7);
}

static double largest(draw_range r)
{
    return fmax(fabs(r.low), fabs(r.high));
}

bool draw_fits(tl_dtype dtype, draw_range *range)
{
    if (dtype == TL_BOOL) {
        *range = DRAW_WHOLE(0, 1);
        return true;
    }
    if (!tl_dtype_is_float(dtype)) {
        const tl_dtype_info *info = &tl_dtype_infos[dtype];
        if (range->low < (double)info->least || range->high > (double)info->largest)
            *range = DRAW_WHOLE((double)info->least, (double)info->largest);
        range->step = 1;
        return true;
    }
    if (range->step > 0 && largest(*range) > ldexp(range->step, tl_dtype_infos[dtype].digits))
        range->step = 0;
    return largest(*range) <= (dtype == TL_F16 ? 2048 : 1e6);
}

bool draw_may_read(const drawing *c, const draw_value *v)
{
    return !(c->closed && draw_is_open(v)) && !(c->plain && v->counted) && !v->kept_apart;
}

static bool suits(const drawing *c, const draw_value *v, const draw_want *w)
{
    bool any = w->low == 0 && w->high == 0;
    int most = w->scalar ? 0 : w->most_rank > 0 ? w->most_rank : 6;
    int64_t size = draw_size(v);
    unsigned dtypes = w->dtypes == DRAW_MAIN ? DRAW_BIT(c->main) : w->dtypes;
    return (dtypes & DRAW_BIT(v->dtype)) != 0 && (!w->exact || draw_is_exact(v)) &&
           (any || (v->range.low >= w->low && v->range.high <= w->high)) &&
           v->rank >= w->least_rank && v->rank <= most && (!w->full || size > 0) &&
           (w->most_elements == 0 || size <= w->most_elements) && draw_may_read(c, v);
}

static draw_range range_for(drawing *c, const draw_want *w, tl_dtype dtype)
{
    draw_range usual = draw_usual(dtype);
    bool any = w->low == 0 && w->high == 0;
    if (!tl_dtype_is_float(dtype))
        return any ? usual : DRAW_WHOLE(fmax(ceil(w->low), usual.low), fmin(w->high, 9));
    if (!any && (usual.low < w->low || usual.high > w->high)) {
        double low = fmax(w->low, -4), high = fmin(w->high, 4);
        bool quarters = fmod(low, 0.25) == 0 && fmod(high, 0.25) == 0;
        return (draw_range){ low, high, w->exact || (quarters && draw_chance(c, 70)) ? 0.25 : 0 };
    }
    return w->exact || draw_chance(c, 70) ? usual : DRAW_REAL(usual.low, usual.high);
}

const draw_value *draw_pick(drawing *c, const draw_want *w)
{
    int found[DRAW_VALUES], count = 0;
    for (int i = 0; i < c->count; i++)
        if (suits(c, &c->values[i], w)) {
            found[count++] = i;
            if (!c->values[i].is_read && c->values[i].is_made) /* rather what nobody has read */
                found[count - 1] = i, found[count < DRAW_VALUES ? count++ : count - 1] = i;
        }
    if (count > 0 && draw_chance(c, 88))
        return &c->values[found[draw_below(c, count)]];
    int64_t dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK] = { false };
    int most = w->scalar ? 0 : w->most_rank > 0 ? w->most_rank : 6, rank;
    int64_t elements = w->most_elements > 0 ? w->most_elements : DRAW_ELEMENTS;
    do
        rank = draw_shape(c, w->least_rank, most, dims);
    while (draw_elements(rank, dims) > elements || (w->full && draw_elements(rank, dims) == 0));
    if (c->has_open && !c->closed && rank > 0 && draw_chance(c, 75)) {
        int axis = draw_chance(c, 75) ? 0 : (int)draw_below(c, rank);
        open[axis] = true;
        dims[axis] = c->open_extent;
        for (int i = 0; i < rank; i++)
            if (i != axis && draw_elements(rank, dims) > elements)
                dims[i] = 1;
        if (draw_elements(rank, dims) > elements)
            open[axis] = false, dims[axis] = 1;
    }
    tl_dtype dtype = draw_of(c, w->dtypes);
    return draw_new_open(c, dtype, rank, dims, open, range_for(c, w, dtype));
}

static draw_value *add_value(drawing *c, const char *name, tl_dtype dtype, int rank,
                             const int64_t *dims, const bool *open, draw_range range)
{
    static draw_value spare; /* of a graph that is too large: nobody picks it again */
    draw_value *v = c->count < DRAW_VALUES ? &c->values[c->count++] : &spare;
    *v = (draw_value){ .name = name, .dtype = dtype, .rank = rank, .range = range };
    for (int i = 0; i < rank; i++) {
        v->dims[i] = dims[i];
        v->open[i] = open != NULL && open[i];
    }
    return v;
}

static void add_extents(drawing *c, tl_text *out, const draw_value *v)
{
    for (int i = 0; i < v->rank; i++)
        if (v->open[i])
            tl_text_format(out, "%sn", i > 0 ? "," : " ");
        else
            tl_text_format(out, "%s%lld", i > 0 ? "," : " ", (long long)v->dims[i]);
    (void)c;
}

static void add_numbers(tl_text *out, const char *name, tl_dtype dtype, int64_t count)
{
    tl_random random = tl_random_make(0x5eed);
    for (const char *at = name; *at != '\0'; at++)
        random.state = random.state * 31 + (unsigned char)*at;
    for (int64_t i = 0; i < count; i++) {
        tl_number n = operand_number(name, dtype, i, &random);
        tl_text_add(out, i > 0 ? "," : "");
        if (tl_dtype_is_float(dtype))
            tl_text_format(out, "%.9g", n.f);
        else
            tl_text_format(out, "%lld", (long long)n.i);
    }
}

/* The name of an operand says what it holds (operands.h). */
static const char *operand_name(drawing *c, draw_range r)
{
    char kind = r.step == 0 ? 'r' : r.step >= 1 ? 'w' : 'q';
    return tl_arena_format(c->arena, "x%d__%c%.9g_%.9g", c->count, kind, r.low, r.high);
}

static const draw_value *write_weight(drawing *c, const char *name, tl_dtype dtype, int rank,
                                      const int64_t *dims, draw_range range)
{
    draw_value *v = add_value(c, name, dtype, rank, dims, NULL, range);
    bool node = c->opset >= 9 && draw_chance(c, 15);
    if (node)
        tl_text_format(&c->nodes, "node Constant -> %s value=<%s", name,
                       tl_dtype_infos[dtype].text);
    else
        tl_text_format(&c->head, "init %s %s", name, tl_dtype_infos[dtype].text);
    tl_text *out = node ? &c->nodes : &c->head;
    add_extents(c, out, v);
    tl_text_add(out, " = ");
    add_numbers(out, name, dtype, draw_size(v));
    tl_text_add(out, node ? ">;\n" : ";\n");
    return v;
}

const draw_value *draw_weight(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                              draw_range range)
{
    return write_weight(c, operand_name(c, range), dtype, rank, dims, range);
}

static const draw_value *write_input(drawing *c, const char *name, tl_dtype dtype, int rank,
                                     const int64_t *dims, const bool *open, draw_range range)
{
    draw_value *v = add_value(c, name, dtype, rank, dims, open, range);
    tl_text_format(&c->head, "input %s %s", name, tl_dtype_infos[dtype].text);
    add_extents(c, &c->head, v);
    tl_text_add(&c->head, ";\n");
    return v;
}

const draw_value *draw_new_open(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                                const bool *open, draw_range range)
{
    bool is_open = false;
    for (int i = 0; open != NULL && i < rank; i++)
        is_open |= open[i];
    if (!is_open && draw_chance(c, 35))
        return draw_weight(c, dtype, rank, dims, range);
    return write_input(c, operand_name(c, range), dtype, rank, dims, open, range);
}

const draw_value *draw_new(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                           draw_range range)
{
    return draw_new_open(c, dtype, rank, dims, NULL, range);
}

/* A name that says what the operand holds; *range: between which numbers that is. */
static const char *name_of_numbers(drawing *c, int count, const int64_t *numbers, draw_range *range)
{
    const char *name = tl_arena_format(c->arena, "x%d__v", c->count);
    *range = DRAW_WHOLE(0, 0);
    for (int i = 0; i < count; i++) {
        name = tl_arena_format(c->arena, "%s%s%lld", name, i > 0 ? "_" : "", (long long)numbers[i]);
        range->low = fmin(range->low, (double)numbers[i]);
        range->high = fmax(range->high, (double)numbers[i]);
    }
    return name;
}

const draw_value *draw_given(drawing *c, tl_dtype dtype, int count, const int64_t *numbers,
                             bool scalar)
{
    int64_t extent = count;
    draw_range range;
    const char *name = name_of_numbers(c, count, numbers, &range);
    return write_input(c, name, dtype, scalar ? 0 : 1, &extent, NULL, range);
}

const draw_value *draw_numbers(drawing *c, tl_dtype dtype, int count, const int64_t *numbers,
                               bool scalar)
{
    int64_t extent = count;
    draw_range range;
    if (draw_chance(c, 15))
        return draw_given(c, dtype, count, numbers, scalar);
    const char *name = name_of_numbers(c, count, numbers, &range);
    return write_weight(c, name, dtype, scalar ? 0 : 1, &extent, range);
}

/* ---- nodes ---- */

void draw_node(drawing *c, const char *op, draw_inputs inputs, int outputs, const char *attributes,
               ...)
{
    tl_text_format(&c->nodes, "node %s ", op);
    int count = inputs.count;
    c->counts = false;
    while (count > 0 && inputs.values[count - 1] == NULL)
        count--;
    for (int i = 0; i < count; i++) {
        draw_value *v = (draw_value *)(uintptr_t)inputs.values[i];
        tl_text_format(&c->nodes, "%s%s", i > 0 ? "," : "", v != NULL ? v->name : "-");
        if (v != NULL) {
            v->is_read = true;
            c->counts |= v->counted;
        }
    }
    tl_text_add(&c->nodes, " -> ");
    for (int i = 0; i < outputs; i++)
        tl_text_format(&c->nodes, "%sy%d_%d", i > 0 ? "," : "", c->node_count, i);
    va_list args;
    va_start(args, attributes);
    tl_text_format(&c->nodes, " %s;\n", tl_arena_vformat(c->arena, attributes, args));
    va_end(args);
    c->node_count++;
    c->depth = 0; /* results of this node so far */
}

const draw_value *draw_result(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                              const bool *open, draw_range range)
{
    const char *name = tl_arena_format(c->arena, "y%d_%d", c->node_count - 1, c->depth++);
    draw_fits(dtype, &range);
    draw_value *v = add_value(c, name, dtype, rank, dims, open, range);
    v->is_made = true;
    v->counted = c->counts && rank > 0;
    return v;
}

const char *draw_list(drawing *c, int count, const int64_t *numbers)
{
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = tl_arena_format(c->arena, "%s%s%lld", list, i > 0 ? "," : "", (long long)numbers[i]);
    return list;
}

/* ---- shapes ---- */

bool draw_broadcast(const draw_value *a, const draw_value *b, draw_dims *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < out->rank; i++) {
        int at = i - (out->rank - a->rank), bt = i - (out->rank - b->rank);
        int64_t x = at < 0 ? 1 : a->dims[at], y = bt < 0 ? 1 : b->dims[bt];
        bool x_open = at >= 0 && a->open[at], y_open = bt >= 0 && b->open[bt];
        bool x_one = x == 1 && !x_open, y_one = y == 1 && !y_open;
        if (!x_one && !y_one && (x != y || x_open != y_open))
            return false;
        out->dims[i] = x_one ? y : x;
        out->open[i] = x_one ? y_open : x_open;
    }
    return draw_elements(out->rank, out->dims) <= 2 * DRAW_ELEMENTS;
}

static bool is_in(const draw_want *w, draw_range r)
{
    return (w->low == 0 && w->high == 0) || (r.low >= w->low && r.high <= w->high);
}

const draw_value *draw_beside(drawing *c, const draw_value *x, const draw_want *w)
{
    draw_dims both;
    draw_want want = *w;
    want.dtypes = DRAW_BIT(x->dtype);
    for (int i = 0; i < 24; i++) {
        const draw_value *y = &c->values[draw_below(c, c->count)];
        if (suits(c, y, &want) && draw_broadcast(x, y, &both) && draw_chance(c, 70))
            return y;
    }
    int64_t dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK] = { false };
    int rank = draw_chance(c, 80) ? x->rank : (int)draw_below(c, x->rank + 1);
    int more = draw_chance(c, 8) && x->rank < 6 ? 1 : 0;
    if (more > 0)
        rank = x->rank;
    for (int i = 0; i < rank; i++) {
        int at = x->rank - rank + i;
        bool one = draw_chance(c, 20);
        dims[i + more] = one ? 1 : x->dims[at];
        open[i + more] = !one && x->open[at];
        if (x->dims[at] == 1 && !x->open[at] && draw_chance(c, 30))
            dims[i + more] = draw_between(c, 1, 5);
    }
    if (more > 0)
        dims[0] = draw_between(c, 1, 3);
    rank += more;
    if (draw_elements(rank, dims) * (draw_size(x) > 0 ? draw_size(x) : 1) > 16 * DRAW_ELEMENTS)
        rank = 0;
    draw_range range = range_for(c, w, x->dtype);
    return draw_new_open(c, x->dtype, rank, dims, open,
                         is_in(w, range) ? range : draw_usual(x->dtype));
}

const draw_value *draw_within(drawing *c, const draw_value *x, tl_dtype dtype, draw_range range)
{
    int64_t dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK] = { false };
    int rank = draw_chance(c, 70) ? x->rank : (int)draw_below(c, x->rank + 1);
    for (int i = 0; i < rank; i++) {
        int at = x->rank - rank + i;
        bool one = draw_chance(c, 30);
        dims[i] = one ? 1 : x->dims[at];
        open[i] = !one && x->open[at];
    }
    return draw_new_open(c, dtype, rank, dims, open, range);
}

int draw_axis(drawing *c, const draw_value *x)
{
    int axes[TL_MAX_RANK], count = 0;
    for (int i = 0; i < x->rank; i++)
        if (!x->open[i])
            axes[count++] = i;
    return count > 0 ? axes[draw_below(c, count)] : -1;
}

int64_t draw_signed_axis(drawing *c, int axis, int rank)
{
    return draw_chance(c, 40) ? axis - rank : axis;
}

/* ---- graphs ---- */

static bool may_draw(const drawing *c, const draw_family *f)
{
    return c->opset >= f->since && (f->until == 0 || c->opset <= f->until);
}

static const draw_family *choose_family(drawing *c, const char *only)
{
    int total = 0;
    for (int i = 0; i < draw_family_count; i++)
        total += draw_families[i].weight;
    int64_t at = draw_below(c, total);
    int i = 0;
    while (at >= draw_families[i].weight)
        at -= draw_families[i++].weight;
    bool wants_only = only != NULL && draw_chance(c, 60);
    for (int k = 0; wants_only && k < draw_family_count; k++)
        if (strcmp(draw_families[k].name, only) == 0)
            return &draw_families[k];
    return &draw_families[i];
}

static void add_outputs(drawing *c, tl_text *out)
{
    bool any = false;
    for (int i = c->count - 1; i >= 0; i--) {
        const draw_value *v = &c->values[i];
        bool wanted = v->is_made && (!v->is_read || draw_chance(c, 10));
        if (!wanted && !(i == 0 && !any))
            continue;
        any = true;
        tl_text_format(out, "output %s %s", v->name, tl_dtype_infos[v->dtype].text);
        for (int a = 0; v->kept_apart && a < v->rank; a++)
            tl_text_format(out, "%s%s_%d", a > 0 ? "," : " ", v->name, a);
        if (!v->kept_apart)
            add_extents(c, out, v);
        tl_text_add(out, ";\n");
    }
}

/* Depth: mostly a few nodes, now and then thirty. */
static int64_t draw_length(drawing *c)
{
    int64_t kind = draw_below(c, 100);
    return kind < 30   ? draw_between(c, 1, 2)
           : kind < 75 ? draw_between(c, 3, 6)
           : kind < 95 ? draw_between(c, 7, 14)
                       : draw_between(c, 15, 30);
}

void draw_graph(tl_arena *arena, uint64_t seed, const char *family, draw_result_graph *out)
{
    static const int opsets[] = { 7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                                  18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
    static const tl_dtype mains[] = { TL_F32, TL_F32, TL_F32, TL_F32, TL_F32,
                                      TL_F32, TL_F64, TL_F16, TL_F16, TL_BF16 };
    drawing *c = TL_NEW(arena, drawing);
    *c = (drawing){ .arena = arena };
    c->random = tl_random_make(seed);
    c->opset = draw_chance(c, 50) ? (int)draw_between(c, 17, 28) : opsets[draw_below(c, 22)];
    c->main = mains[draw_below(c, 10)];
    if (c->main == TL_BF16 && c->opset < 13)
        c->main = TL_F32;
    c->has_open = draw_chance(c, 25);
    c->open_extent = draw_between(c, 1, 9);
    int64_t wanted = draw_length(c);
    for (int64_t tries = 0; c->node_count < wanted && tries < 20 * wanted; tries++) {
        const draw_family *f = choose_family(c, family);
        int count = c->count;
        c->closed = !f->open;
        c->plain = !f->counts;
        if (c->count < DRAW_VALUES - 12 && may_draw(c, f) && !f->draw(c))
            for (; c->count > count && c->count > DRAW_VALUES;
                 c->count--) /* values stay: others may use them */
                ;
    }
    c->closed = c->plain = false;
    if (c->count == 0)
        draw_pick(c, &(draw_want){ DRAW_MAIN, 0, 0, false, 1, 3, false, false, 0 });
    tl_text text = { 0 };
    tl_text_format(&text, "opset %d;\n", c->opset);
    if (c->has_contrib)
        tl_text_add(&text, "opset com.microsoft.1;\n");
    tl_text_add(&text, tl_text_get(&c->head));
    tl_text_add(&text, tl_text_get(&c->nodes));
    add_outputs(c, &text);
    *out = (draw_result_graph){ .text = tl_arena_strdup(arena, tl_text_get(&text)),
                                .nodes = c->node_count,
                                .opset = c->opset,
                                .open_extent = c->open_extent };
    for (int i = 0; i < c->count; i++)
        out->is_open |= draw_is_open(&c->values[i]);
    out->other_extent = 1 + (c->open_extent + draw_below(c, 6)) % 11;
    out->third_extent = draw_chance(c, 30) ? 1 : draw_between(c, 2, 24);
    tl_text_free(&text);
    tl_text_free(&c->head);
    tl_text_free(&c->nodes);
}
