/* tests/support/random_kernel.c: stages are drawn one after another; each reads parameters or what stages before it
 * wrote. What nobody reads is an output. A bound on the magnitude of every buffer keeps floats exact. */
#include "tests/support/random_kernel.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/dtype.h"
#include "runtime/base/text.h"
#include "tests/support/known_kernels.h"
#include "tests/support/random_product.h"

enum { MAX_RANK = 3, MAX_BUFFERS = 64, MANY_BUFFERS = 10, MAX_ITERS = 5, DIM = 23 };

typedef struct {
    int64_t size; /* of a dim: its largest value */
    bool is_dim;
} extent;

typedef struct {
    char name[8];
    tl_dtype dtype;
    int rank;
    extent shape[MAX_RANK];
    double bound; /* on the magnitude of its elements */
    const char *role;
    bool is_param, is_read, is_partial;
    int64_t limit; /* 0, or only what is below it along the first axis is written */
} buffer;

typedef struct {
    char name[8];
    const char *kind;
    extent extent;
    int64_t tile;    /* 0, or the loop is two: NAME_o, and NAME_i of so many iterations, guarded */
    bool is_flipped; /* the loop NAME_o runs the other way */
} iter;

typedef struct {
    tl_arena *arena;
    tl_random *random;
    extent pool[3];
    int buffer_count;
    buffer buffers[MAX_BUFFERS];
    int iter_count, spatial_count;
    iter iters[MAX_ITERS];
    tl_text stages;
    bool has_dim;
    bool is_repeated; /* the stage runs twice, in a loop that drives none of its iters */
    int last_read;    /* buffer that was read last, from 1 on; 0: none */
} builder;

static int64_t below(builder *b, int64_t n)
{
    return tl_random_below(b->random, n);
}

static bool one_in(builder *b, int64_t n)
{
    return below(b, n) == 0;
}

/* The largest integer up to which all are exact. */
static double exact_limit(tl_dtype dtype)
{
    static const int digits[TL_DTYPE_COUNT] = {
        [TL_F16] = 11, [TL_BF16] = 8, [TL_F32] = 23, [TL_F64] = 40
    };
    return tl_dtype_is_float(dtype) ? ldexp(1, digits[dtype]) : INFINITY;
}

static tl_dtype random_dtype(builder *b)
{
    static const tl_dtype dtypes[] = { TL_F32,  TL_F32, TL_F32, TL_F32, TL_F64, TL_F16,
                                       TL_BF16, TL_I8,  TL_I16, TL_I32, TL_I64, TL_U8,
                                       TL_U16,  TL_U32, TL_U64, TL_BOOL };
    return dtypes[below(b, sizeof dtypes / sizeof *dtypes)];
}

static bool is_unsigned(tl_dtype dtype)
{
    return tl_dtype_infos[dtype].class == TL_CLASS_UINT;
}

static double bound_of_input(tl_dtype dtype)
{
    return dtype == TL_BOOL ? 1 : is_unsigned(dtype) ? ldexp(1, tl_dtype_infos[dtype].bits) : 3;
}

static buffer *add_buffer(builder *b, tl_dtype dtype, const char *role)
{
    buffer *new = &b->buffers[b->buffer_count];
    *new = (buffer){ .dtype = dtype,
                     .role = role,
                     .is_param = strcmp(role, "out ") != 0,
                     .bound = bound_of_input(dtype) };
    snprintf(new->name, sizeof new->name, "%c%d", new->is_param ? 'P' : 'T', b->buffer_count++);
    return new;
}

static const char *size_text(builder *b, extent e)
{
    return e.is_dim ? "N" : tl_arena_format(b->arena, "%lld", (long long)e.size);
}

/* Indices: sums of iters that stay below an extent. */

static const char *bounded_index(builder *b, extent axis)
{
    const iter *i = &b->iters[below(b, b->iter_count)];
    const iter *k = &b->iters[below(b, b->iter_count)];
    int64_t room = axis.size - i->extent.size;
    if (axis.is_dim || i->extent.is_dim || k->extent.is_dim) {
        for (int n = 0; n < b->iter_count; n++)
            if (axis.is_dim && b->iters[n].extent.is_dim)
                return b->iters[n].name;
        return "0";
    }
    if (one_in(b, 12))
        return tl_arena_format(b->arena, "%lld", (long long)below(b, axis.size));
    if (i != k && i->extent.size + k->extent.size - 1 <= axis.size && !one_in(b, 3))
        return tl_arena_format(b->arena, "%s + %s", i->name, k->name);
    if (room < 0 && one_in(b, 2))
        return tl_arena_format(b->arena, "min(%s, %lld)", i->name, (long long)axis.size - 1);
    if (room < 0 && one_in(b, 2))
        return tl_arena_format(b->arena, "%s//%lld", i->name,
                               (long long)((i->extent.size + axis.size - 1) / axis.size));
    if (room < 0)
        return tl_arena_format(b->arena, "%s %% %lld", i->name, (long long)axis.size);
    if (one_in(b, 6))
        return tl_arena_format(b->arena, "%lld - %s", (long long)i->extent.size - 1, i->name);
    int64_t stride = i->extent.size > 1 ? (axis.size - 1) / (i->extent.size - 1) : 1;
    if (stride > 1 && one_in(b, 2))
        return tl_arena_format(b->arena, "%s*%lld", i->name, 1 + (long long)below(b, stride));
    if (room > 0 && one_in(b, 2))
        return tl_arena_format(b->arena, "%s + %lld", i->name, (long long)below(b, room + 1));
    return i->name;
}

static const char *load(builder *b, buffer *from, const char *const *indices)
{
    const char *list = "";
    for (int i = 0; i < from->rank; i++)
        list = tl_arena_format(b->arena, "%s%s%s", list, i ? ", " : "", indices[i]);
    from->is_read = true;
    return tl_arena_format(b->arena, "%s[%s]", from->name, list);
}

/* A new parameter that fits the iters: an axis an iter, or a window of two. */
static const char *load_new(builder *b, tl_dtype dtype, buffer **out)
{
    buffer *p = add_buffer(b, dtype, one_in(b, 3) ? "const " : one_in(b, 8) ? "inout " : "");
    const char *indices[MAX_RANK];
    int start = (int)below(b, b->iter_count);
    p->rank = 1 + (int)below(b, b->iter_count < MAX_RANK ? b->iter_count : MAX_RANK);
    for (int a = 0; a < p->rank; a++) {
        const iter *i = &b->iters[(start + a) % b->iter_count];
        const iter *k = &b->iters[below(b, b->iter_count)];
        p->shape[a] = i->extent;
        indices[a] = i->name;
        if (i == k || i->extent.is_dim || k->extent.is_dim || !one_in(b, 3))
            continue;
        int64_t stride = 1 + below(b, 3), step = 1 + below(b, 2);
        p->shape[a].size = (i->extent.size - 1) * stride + (k->extent.size - 1) * step + 1;
        indices[a] = tl_arena_format(b->arena, "%s*%lld + %s*%lld", i->name, (long long)stride,
                                     k->name, (long long)step);
    }
    *out = p;
    return load(b, p, indices);
}

static const char *constant(builder *b, tl_dtype dtype, int64_t value)
{
    return tl_arena_format(b->arena, "%s(%lld)", tl_dtype_infos[dtype].text, (long long)value);
}

/* An iter that is in none of the indices taken already and goes over the whole axis, or all but a few elements of it
 * (a window: from one of them on, or a reduce iter along it). NULL: there is none. */
static const char *plain_index(builder *b, extent axis, const char *const *taken, int count)
{
    int64_t start = below(b, b->iter_count);
    for (int n = 0; n < b->iter_count; n++) {
        const iter *i = &b->iters[(start + n) % b->iter_count];
        int64_t room = axis.size - i->extent.size;
        bool is_free = i->extent.is_dim == axis.is_dim && room >= 0 && room < 4;
        for (int k = 0; k < count; k++)
            is_free = is_free && strncmp(taken[k], i->name, strlen(i->name)) != 0;
        if (!is_free)
            continue;
        for (int k = b->spatial_count; k < b->iter_count && !one_in(b, 3); k++)
            if (b->iters[k].extent.size <= room + 1 && &b->iters[k] != i)
                return tl_arena_format(b->arena, "%s + %s", i->name, b->iters[k].name);
        if (room > 0)
            return tl_arena_format(b->arena, "%s + %lld", i->name, (long long)below(b, room + 1));
        return i->name;
    }
    return NULL;
}

static const char *load_old(builder *b, buffer *from)
{
    const char *indices[MAX_RANK];
    bool is_plain = !one_in(b, 3); /* element by element or a window, as far as there are iters */
    for (int a = 0; a < from->rank; a++) {
        indices[a] = is_plain ? plain_index(b, from->shape[a], indices, a) : NULL;
        if (indices[a])
            continue;
        indices[a] = bounded_index(b, from->shape[a]);
        if (!from->shape[a].is_dim && one_in(b, 20) && b->buffer_count < MANY_BUFFERS) {
            buffer *table;
            const char *index = load_new(b, TL_I64, &table);
            indices[a] = tl_arena_format(b->arena, "min(max(%s, 0), %lld)", index,
                                         (long long)from->shape[a].size - 1);
        }
    }
    const char *text = load(b, from, indices);
    if (from->limit == 0)
        return text;
    return tl_arena_format(b->arena, "select(%s < %lld, %s, %s)", indices[0],
                           (long long)from->limit, text, constant(b, from->dtype, 0));
}

/* A load of `from` as a value of a dtype that is not larger than `most`. */
static const char *convert(builder *b, const buffer *from, const char *text, tl_dtype dtype,
                           double most)
{
    if (tl_dtype_is_float(dtype) && from->bound > most) {
        text =
            tl_arena_format(b->arena, "min(%s, %s)", text, constant(b, from->dtype, (int64_t)most));
        if (!is_unsigned(from->dtype))
            text = tl_arena_format(b->arena, "max(%s, %s)", text,
                                   constant(b, from->dtype, -(int64_t)most));
    }
    if (from->dtype != dtype)
        text = tl_arena_format(b->arena, "%s(%s)", tl_dtype_infos[dtype].text, text);
    return text;
}

/* One of `count` buffers that are there: often the last, one that nobody reads yet, or the one that was read before. */
static int choose_old(builder *b, const int *found, int count)
{
    if (b->last_read > 0 && one_in(b, 3) && !b->buffers[b->last_read - 1].is_partial)
        return b->last_read - 1;
    if (one_in(b, 2))
        return found[count - 1];
    int start = (int)below(b, count);
    for (int i = 0; i < count && !one_in(b, 3); i++)
        if (!b->buffers[found[(start + i) % count]].is_read)
            return found[(start + i) % count];
    return found[start];
}

/* A value of a dtype that is not larger than `most`, of a buffer that is there or of a new parameter. */
static const char *operand(builder *b, tl_dtype dtype, double most)
{
    buffer *from = NULL;
    const char *text;
    int locals[MAX_BUFFERS], count = 0;
    for (int i = 0; i < b->buffer_count; i++)
        if (!b->buffers[i].is_partial && (!b->buffers[i].is_param || one_in(b, 3)))
            locals[count++] = i;
    if (count > 0 && (b->buffer_count > MANY_BUFFERS || !one_in(b, 3))) {
        int at = choose_old(b, locals, count);
        b->last_read = at + 1;
        from = &b->buffers[at];
        text = load_old(b, from);
    } else {
        text = load_new(b, one_in(b, 5) ? random_dtype(b) : dtype, &from);
    }
    return convert(b, from, text, dtype, most);
}

static const char *condition_of(builder *b, const iter *i)
{
    const iter *k = &b->iters[below(b, b->iter_count)];
    if (one_in(b, 3) && i != k)
        return tl_arena_format(b->arena, "%s < %s", i->name, k->name);
    if (one_in(b, 3))
        return tl_arena_format(b->arena, "(%s + 1) %% 3 > 0", i->name);
    if (one_in(b, 2))
        return tl_arena_format(b->arena, "%s >= %lld", i->name, (long long)below(b, 3) + 1);
    return tl_arena_format(b->arena, "%s < %lld", i->name, (long long)below(b, 4) + 1);
}

static const char *condition(builder *b)
{
    return condition_of(b, &b->iters[below(b, b->iter_count)]);
}

/* The largest magnitude of an operand, so that what is made of it stays exact. */
static double most_of(tl_dtype dtype)
{
    return dtype == TL_F16 || dtype == TL_BF16 ? 2 : 3;
}

/* A value of a dtype; its bound goes to `bound`. */
static const char *value(builder *b, tl_dtype dtype, double *bound)
{
    double most = most_of(dtype);
    const char *x = operand(b, dtype, most), *y = operand(b, dtype, most);
    if (dtype == TL_BOOL) {
        static const char *const forms[] = { "%s and %s", "%s or %s", "not %s or %s" };
        *bound = 1;
        return tl_arena_format(b->arena, forms[below(b, 3)], x, y);
    }
    static const char *const forms[] = { "%s*%s",   "%s*%s",       "%s + %s",
                                         "%s - %s", "max(%s, %s)", "min(%s, %s)" };
    *bound = most * most;
    if (one_in(b, 4))
        return x;
    if (one_in(b, 5))
        return tl_arena_format(b->arena, "select(%s, %s, %s)", condition(b), x, y);
    return tl_arena_format(b->arena, forms[below(b, 6)], x, y);
}

/* Iters and loops of a stage. */

static iter *add_iter(builder *b, const char *kind)
{
    iter *i = &b->iters[b->iter_count];
    *i = (iter){ .kind = kind, .extent = b->pool[below(b, 3)] };
    snprintf(i->name, sizeof i->name, "%c%d", kind[0] == 's' ? "ijk"[b->iter_count % 3] : kind[0],
             b->iter_count);
    if (kind[0] == 'r' && one_in(b, 2))
        i->extent = (extent){ 1 + below(b, 3), false };
    if (!i->extent.is_dim && one_in(b, 6))
        i->tile = 2 + below(b, 5);
    i->is_flipped = i->tile == 0 && !i->extent.is_dim && one_in(b, 10);
    b->iter_count++;
    return i;
}

static const char *binding(builder *b, const iter *i)
{
    if (i->is_flipped)
        return tl_arena_format(b->arena, "%lld - %s_o", (long long)i->extent.size - 1, i->name);
    return tl_arena_format(b->arena, "%s_o*%lld + %s_i", i->name, (long long)i->tile, i->name);
}

/* The loops in a random order, then the block and its iters, up to its predicate. */
static int write_loops(builder *b, const char *block, const char *also)
{
    int order[MAX_ITERS], depth = 0;
    for (int i = 0; i < b->iter_count; i++)
        order[i] = i;
    for (int i = b->iter_count - 1; i > 0 && one_in(b, 2); i--) {
        int k = (int)below(b, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    if (b->is_repeated)
        tl_text_format(&b->stages, "%*sfor z in 0..2\n", 2 * depth++, "");
    for (int n = 0; n < b->iter_count; n++) {
        const iter *i = &b->iters[order[n]];
        if (i->tile == 0) {
            tl_text_format(&b->stages, "%*sfor %s%s in 0..%s\n", 2 * depth++, "", i->name,
                           i->is_flipped ? "_o" : "", size_text(b, i->extent));
            continue;
        }
        tl_text_format(&b->stages, "%*sfor %s_o in 0..%lld\n", 2 * depth++, "", i->name,
                       (long long)((i->extent.size + i->tile - 1) / i->tile));
        tl_text_format(&b->stages, "%*sfor %s_i in 0..%lld\n", 2 * depth++, "", i->name,
                       (long long)i->tile);
    }
    tl_text_format(&b->stages, "%*sblock %s\n", 2 * depth++, "", block);
    const char *guard = also;
    for (int n = 0; n < b->iter_count; n++) {
        const iter *i = &b->iters[n];
        if (i->tile == 0 && !i->is_flipped) {
            tl_text_format(&b->stages, "%*s%s %s\n", 2 * depth, "", i->kind, i->name);
            continue;
        }
        tl_text_format(&b->stages, "%*s%s %s in 0..%lld = %s\n", 2 * depth, "", i->kind, i->name,
                       (long long)i->extent.size, binding(b, i));
        if (i->tile > 0 && i->extent.size % i->tile != 0)
            guard = tl_arena_format(b->arena, "%s%s%s < %lld", guard, guard[0] ? " and " : "",
                                    binding(b, i), (long long)i->extent.size);
    }
    if (guard[0])
        tl_text_format(&b->stages, "%*swhere %s\n", 2 * depth, "", guard);
    return 2 * depth;
}

/* The buffer a stage writes, an axis a spatial iter in a random order, and the element of one instance. */
static const char *add_result(builder *b, tl_dtype dtype, int *out)
{
    buffer *t = add_buffer(b, dtype, "out ");
    const char *list = "";
    int first = (int)below(b, b->spatial_count);
    t->rank = b->spatial_count;
    for (int a = 0; a < t->rank; a++) {
        const iter *i = &b->iters[(first + a) % b->spatial_count];
        t->shape[a] = i->extent;
        const char *index = i->name;
        if (!i->extent.is_dim && one_in(b, 12))
            index = tl_arena_format(b->arena, "%lld - %s", (long long)i->extent.size - 1, i->name);
        list = tl_arena_format(b->arena, "%s%s%s", list, a ? ", " : "", index);
    }
    *out = b->buffer_count - 1;
    return tl_arena_format(b->arena, "%s[%s]", t->name, list);
}

/* The iter that is the first index of an element; NULL: none, or it is a dim's. */
static const iter *first_axis(builder *b, const char *element)
{
    const char *index = strchr(element, '[') + 1;
    size_t length = strcspn(index, ",]");
    for (int i = 0; i < b->spatial_count; i++)
        if (strlen(b->iters[i].name) == length && strncmp(b->iters[i].name, index, length) == 0 &&
            !b->iters[i].extent.is_dim)
            return &b->iters[i];
    return NULL;
}

static void write_map(builder *b, bool is_last)
{
    int at, at2 = -1;
    tl_dtype dtype = random_dtype(b);
    double bound;
    const char *text = value(b, dtype, &bound), *second = NULL;
    if (one_in(b, 8))
        second = value(b, dtype, &bound);
    const char *element = add_result(b, dtype, &at), *element2 = "";
    const char *also = is_last && one_in(b, 10) ? condition(b) : "";
    b->buffers[at].bound = bound;
    b->buffers[at].is_partial = also[0] != 0;
    const iter *along = first_axis(b, element);
    if (!second && !also[0] && along && one_in(b, 8)) {
        b->buffers[at].limit = 1 + below(b, along->extent.size);
        also = tl_arena_format(b->arena, "%s < %lld", along->name, (long long)b->buffers[at].limit);
    }
    if (second) {
        element2 = add_result(b, dtype, &at2);
        b->buffers[at2].bound = bound;
        b->buffers[at2].is_partial = also[0] != 0;
    }
    int indent = write_loops(b, b->buffers[at].name, also);
    tl_text_format(&b->stages, "%*s%s = %s\n", indent, "", element, text);
    if (second)
        tl_text_format(&b->stages, "%*s%s = %s\n", indent, "", element2, second);
}

static const char *choose_combiner(builder *b, tl_dtype dtype, double count, double *bound)
{
    static const char *const any[] = { "sum", "sum", "sum", "max", "min", "prod" };
    if (dtype == TL_BOOL)
        return one_in(b, 2) ? "all" : "any";
    const char *name = any[below(b, 6)];
    double sum = *bound * count, product = pow(*bound, count);
    if (strcmp(name, "prod") == 0 && product > exact_limit(dtype))
        name = "sum";
    if (strcmp(name, "sum") == 0 && sum > exact_limit(dtype))
        name = "max";
    *bound = strcmp(name, "sum") == 0 ? sum : strcmp(name, "prod") == 0 ? product : *bound;
    return name;
}

static void write_reduction(builder *b)
{
    double count = 1, bound;
    b->iter_count = b->spatial_count;
    for (int n = 1 + (int)below(b, 2); n > 0; n--)
        count *= (double)add_iter(b, "reduce")->extent.size;
    tl_dtype dtype = random_dtype(b);
    for (int i = b->spatial_count; i < b->iter_count; i++)
        b->iters[i].is_flipped = b->iters[i].is_flipped && dtype != TL_BOOL;
    const char *text = value(b, dtype, &bound);
    iter *reduced = &b->iters[b->spatial_count];
    int at, at2;
    if (one_in(b, 8) && b->iter_count == b->spatial_count + 1 && dtype != TL_BOOL) {
        const char *element = add_result(b, dtype, &at), *index = add_result(b, TL_I64, &at2);
        reduced->is_flipped = false;
        b->buffers[at].bound = bound;
        b->buffers[at2].bound = (double)reduced->extent.size;
        int indent = write_loops(b, b->buffers[at].name, "");
        tl_text_format(&b->stages, "%*s%s, %s = %s(%s, %s)\n", indent, "", element, index,
                       one_in(b, 2) ? "argmax" : "argmin", text, reduced->name);
        return;
    }
    const char *combiner = choose_combiner(b, dtype, count, &bound);
    const char *element = add_result(b, dtype, &at), *also = "";
    b->buffers[at].bound = bound;
    bool triangle = one_in(b, 8); /* the first instance, which sets the element, is always in it */
    if (triangle)
        also = tl_arena_format(b->arena, "%s <= %s", reduced->name, b->iters[0].name);
    bool runs_back = false; /* an instance of zeros would come too late to set the element */
    for (int i = b->spatial_count; i < b->iter_count; i++)
        runs_back = runs_back || b->iters[i].is_flipped;
    if (dtype != TL_BOOL && (runs_back || one_in(b, 3))) { /* ones first, then an update */
        b->is_repeated = false;
        int all = b->iter_count;
        b->iter_count = b->spatial_count;
        int indent = write_loops(b, tl_arena_format(b->arena, "%s_0", b->buffers[at].name), "");
        tl_text_format(&b->stages, "%*s%s = %s\n", indent, "", element, constant(b, dtype, 1));
        b->buffers[at].bound = bound + 1;
        b->iter_count = all;
        if (one_in(b, 2)) /* every element is there already: any may be left out */
            also = condition_of(b, &b->iters[b->spatial_count + below(b, all - b->spatial_count)]);
        indent = write_loops(b, b->buffers[at].name, also);
        tl_text_format(&b->stages, "%*s%s %s= %s\n", indent, "", element, combiner, text);
        return;
    }
    int indent = write_loops(b, b->buffers[at].name, also);
    tl_text_format(&b->stages, "%*s%s = %s(%s)%s\n", indent, "", element, combiner, text,
                   one_in(b, 8) && dtype != TL_BOOL
                       ? tl_arena_format(b->arena, " from %s", constant(b, dtype, 1))
                       : "");
}

/* One value an iteration of the ordered iter, from the one before. */
static void write_scan(builder *b)
{
    if (b->spatial_count > MAX_RANK - 1)
        b->spatial_count = MAX_RANK - 1;
    b->iter_count = b->spatial_count;
    iter *t = add_iter(b, "ordered");
    t->tile = 0;
    t->is_flipped = false;
    if (t->extent.is_dim)
        t->extent = (extent){ 5, false };
    double bound;
    const char *x = value(b, TL_F32, &bound);
    buffer *s = add_buffer(b, TL_F32, "out ");
    const char *list = "";
    s->rank = 1;
    s->bound = bound * (double)t->extent.size;
    s->shape[0] = t->extent;
    for (int a = 0; a < b->spatial_count; a++) {
        s->shape[s->rank++] = b->iters[a].extent;
        list = tl_arena_format(b->arena, "%s, %s", list, b->iters[a].name);
    }
    int indent = write_loops(b, s->name, "");
    tl_text_format(&b->stages, "%*s%s[%s%s] = select(%s > 0, %s[max(%s - 1, 0)%s], 0.0) + %s\n",
                   indent, "", s->name, t->name, list, t->name, s->name, t->name, list, x);
}

/* Whole axes of a block in the steps of a loop: loops over them from a depth on, their names and their extents. */
typedef struct {
    const char *loops, *names, *shape;
    int indent; /* of the block */
} step_axes;

static step_axes step_axes_of(builder *b, int depth)
{
    step_axes out = { "", "", "", 2 * depth };
    for (int a = 1; a < b->iter_count; a++, out.indent += 2) {
        const iter *i = &b->iters[a];
        const char *comma = a > 1 ? ", " : "", *size = size_text(b, i->extent);
        out.names = tl_arena_format(b->arena, "%s%s%s", out.names, comma, i->name);
        out.shape = tl_arena_format(b->arena, "%s%s%s", out.shape, comma, size);
        out.loops = tl_arena_format(b->arena, "%s%*sfor %s in 0..%s\n", out.loops, out.indent, "",
                                    i->name, size);
    }
    return out;
}

/* The iters of steps: that of the step, of a few, and one or two spatial ones. */
static void add_steps(builder *b, const char *kind)
{
    b->iter_count = 0;
    for (int i = 0, count = 2 + (int)below(b, 2); i < count; i++) {
        iter *new = add_iter(b, i ? "spatial" : kind);
        new->tile = 0;
        new->is_flipped = false;
        if (new->extent.is_dim || i == 0)
            new->extent = (extent){ 2 + below(b, 4), false };
    }
    b->spatial_count = b->iter_count;
}

/* What the steps make: a row a step. */
static buffer *add_rows(builder *b, double bound)
{
    buffer *s = add_buffer(b, TL_F32, "out ");
    s->rank = b->iter_count;
    s->bound = bound;
    for (int a = 0; a < s->rank; a++)
        s->shape[a] = b->iters[a].extent;
    return s;
}

/* Steps of a loop, each of two blocks: the second writes one more row of a buffer from what the first leaves in a buffer
 * of the step's own; that may come from the row before. */
static void write_steps(builder *b, int stage)
{
    add_steps(b, "ordered");
    double bound;
    const char *x = value(b, TL_F32, &bound), *t = b->iters[0].name;
    buffer *s = add_rows(b, bound * (double)b->iters[0].extent.size);
    step_axes axes = step_axes_of(b, 1);
    bool goes_on = one_in(b, 2);
    const char *before =
        goes_on ? tl_arena_format(b->arena, "select(%s > 0, %s[max(%s - 1, 0), %s], 0.0) + ", t,
                                  s->name, t, axes.names)
                : "";
    const char *kind = goes_on || one_in(b, 2) ? "ordered" : "spatial";
    int indent = axes.indent;
    tl_text_format(&b->stages, "for %s in 0..%s\n  alloc L%d: f32[%s]\n", t,
                   size_text(b, b->iters[0].extent), stage, axes.shape);
    for (int part = 0; part < 2; part++) {
        const char *name = part ? s->name : tl_arena_format(b->arena, "L%d", stage);
        tl_text_format(&b->stages, "%s%*sblock %s\n%*s%s %s\n%*sspatial %s\n", axes.loops, indent,
                       "", name, indent + 2, "", kind, t, indent + 2, "", axes.names);
        if (part)
            tl_text_format(&b->stages, "%*s%s[%s, %s] = L%d[%s] + 1.0\n", indent + 2, "", name, t,
                           axes.names, stage, axes.names);
        else
            tl_text_format(&b->stages, "%*sL%d[%s] = %s%s\n", indent + 2, "", stage, axes.names,
                           before, x);
    }
}

/* Steps of a loop, each of which fills a window of rows of a buffer, that moves on with it, and reads two of them. */
static void write_windows(builder *b, int stage)
{
    add_steps(b, "spatial");
    extent steps = b->iters[0].extent;
    int64_t step = 1 + one_in(b, 4), window = 2 + below(b, 2), first = below(b, window);
    int64_t rows = (steps.size - 1) * step + window;
    const char *row = b->iters[0].name;
    double bound;
    b->iters[0].extent.size = rows;
    const char *x = value(b, TL_F32, &bound);
    b->iters[0].extent = steps;
    buffer *s = add_rows(b, 2 * bound);
    step_axes axes = step_axes_of(b, 1), inner = step_axes_of(b, 2);
    int in = axes.indent;
    tl_text_format(&b->stages, "alloc L%d: f32[%lld, %s]\nfor t in 0..%lld\n", stage,
                   (long long)rows, axes.shape, (long long)steps.size);
    tl_text_format(&b->stages, "  for w in 0..%lld\n%s%*sblock L%d\n", (long long)window,
                   inner.loops, in + 2, "", stage);
    tl_text_format(&b->stages, "%*sspatial %s in 0..%lld = t*%lld + w\n%*sspatial %s\n", in + 4, "",
                   row, (long long)rows, (long long)step, in + 4, "", axes.names);
    tl_text_format(&b->stages, "%*sL%d[%s, %s] = %s\n", in + 4, "", stage, row, axes.names, x);
    tl_text_format(&b->stages, "%s%*sblock %s\n%*sspatial t, %s\n", axes.loops, in, "", s->name,
                   in + 2, "", axes.names);
    tl_text_format(&b->stages, "%*s%s[t, %s] = L%d[t*%lld + %lld, %s] + L%d[t*%lld + %lld, %s]\n",
                   in + 2, "", s->name, axes.names, stage, (long long)step, (long long)first,
                   axes.names, stage, (long long)step, (long long)(window - 1), axes.names);
}

/* Two blocks in one nest: the second reads what the first has written some steps before. */
static void write_crossed(builder *b)
{
    buffer *made[2];
    b->iter_count = 0;
    for (int i = 0; i < 2; i++) {
        iter *new = add_iter(b, "spatial");
        *new = (iter){ .kind = new->kind, .extent = { 2 + below(b, 5), false } };
        snprintf(new->name, sizeof new->name, "%c%d", "ij"[i], i & 1);
    }
    b->spatial_count = b->iter_count;
    double bound;
    const char *x = value(b, TL_F32, &bound);
    for (int i = 0; i < 2; i++) {
        made[i] = add_buffer(b, TL_F32, "out ");
        made[i]->rank = 2;
        made[i]->bound = bound;
        made[i]->shape[0] = b->iters[0].extent;
        made[i]->shape[1] = b->iters[1].extent;
    }
    int64_t n = b->iters[0].extent.size, m = b->iters[1].extent.size;
    int64_t back = below(b, 2), aside = back ? below(b, 3) - 1 : -below(b, 2);
    made[0]->is_read = true;
    tl_text_format(&b->stages,
                   "for i0 in 0..%lld\n  for j1 in 0..%lld\n"
                   "    block %s\n      spatial i0, j1\n      %s[i0, j1] = %s\n"
                   "    block %s\n      spatial i0, j1\n"
                   "      %s[i0, j1] = select(i0 >= %lld and j1 >= %lld and j1 < %lld, "
                   "%s[max(i0 - %lld, 0), min(max(j1 + %lld, 0), %lld)], 0.0)\n",
                   (long long)n, (long long)m, made[0]->name, made[0]->name, x, made[1]->name,
                   made[1]->name, (long long)back, (long long)-aside, (long long)(m - aside),
                   made[0]->name, (long long)back, (long long)aside, (long long)m - 1);
}

/* Two blocks write the two parts of a buffer. */
static void write_parts(builder *b)
{
    iter *split = &b->iters[0];
    extent whole = split->extent;
    if (whole.is_dim || whole.size < 2) {
        write_map(b, false);
        return;
    }
    split->tile = 0;
    split->is_flipped = false;
    int64_t first = 1 + below(b, whole.size - 1);
    tl_dtype dtype = random_dtype(b);
    double bound[2];
    const char *list = split->name;
    for (int a = 1; a < b->spatial_count; a++)
        list = tl_arena_format(b->arena, "%s, %s", list, b->iters[a].name);
    split->extent.size = first;
    const char *text[2];
    text[0] = value(b, dtype, &bound[0]);
    split->extent.size = whole.size - first;
    text[1] = value(b, dtype, &bound[1]);
    buffer *t = add_buffer(b, dtype, "out ");
    t->bound = fmax(bound[0], bound[1]);
    t->rank = b->spatial_count;
    t->shape[0] = whole;
    for (int a = 1; a < t->rank; a++)
        t->shape[a] = b->iters[a].extent;
    for (int part = 0; part < 2; part++) {
        split->extent.size = part ? whole.size - first : first;
        int indent = write_loops(b, tl_arena_format(b->arena, "%s_%d", t->name, part), "");
        tl_text_format(&b->stages, "%*s%s[%s%s] = %s\n", indent, "", t->name,
                       part ? tl_arena_format(b->arena, "%lld + ", (long long)first) : "", list,
                       text[part]);
    }
}

/* A local buffer that nobody reads yet and whose elements are no more than those of another; NULL: there is none. */
static buffer *find_part(builder *b, const buffer *of)
{
    int64_t start = below(b, b->buffer_count);
    for (int i = 0; i < b->buffer_count; i++) {
        buffer *part = &b->buffers[(start + i) % b->buffer_count];
        bool fits = part != of && !part->is_param && !part->is_read && !part->is_partial &&
                    part->limit == 0 && part->rank == of->rank;
        for (int a = 0; fits && a < of->rank; a++)
            fits = part->shape[a].is_dim == of->shape[a].is_dim &&
                   part->shape[a].size <= of->shape[a].size;
        if (fits)
            return part;
    }
    return NULL;
}

/* Writes some elements of a buffer that is there already anew, often from another that nobody reads yet. */
static void write_patch(builder *b, int stage)
{
    int found[MAX_BUFFERS], count = 0;
    for (int i = 0; i < b->buffer_count; i++)
        if (!b->buffers[i].is_partial && b->buffers[i].rank > 0 &&
            (!b->buffers[i].is_param || strcmp(b->buffers[i].role, "inout ") == 0))
            found[count++] = i;
    if (count == 0) {
        write_map(b, false);
        return;
    }
    buffer *t = &b->buffers[found[below(b, count)]];
    buffer *from = one_in(b, 3) ? NULL : find_part(b, t);
    const char *list = "", *names[MAX_RANK];
    b->iter_count = 0;
    for (int a = 0; a < t->rank; a++) {
        iter *i = add_iter(b, "spatial");
        int64_t offset = 0;
        i->tile = 0;
        i->is_flipped = false;
        i->extent = from ? from->shape[a] : t->shape[a];
        names[a] = i->name;
        if (!i->extent.is_dim && one_in(b, 2)) {
            i->extent.size = from ? i->extent.size : 1 + below(b, i->extent.size);
            offset = below(b, t->shape[a].size - i->extent.size + 1);
        }
        list = tl_arena_format(b->arena, "%s%s%s + %lld", list, a ? ", " : "", i->name,
                               (long long)offset);
    }
    b->spatial_count = b->iter_count;
    t->is_partial = true; /* what its instances read they must not write */
    double bound = most_of(t->dtype);
    const char *text =
        from ? convert(b, from, load(b, from, names), t->dtype, bound) : value(b, t->dtype, &bound);
    t->is_partial = false;
    t->bound = fmax(t->bound, bound);
    int indent = write_loops(b, tl_arena_format(b->arena, "%s_s%d", t->name, stage), "");
    tl_text_format(&b->stages, "%*s%s[%s] = %s\n", indent, "", t->name, list, text);
}

static const char *write_kernel(builder *b)
{
    tl_text out = { 0 };
    tl_text_format(&out, "kernel random(%s", b->has_dim ? "dim N in 1..23" : "");
    for (int pass = 0, first = !b->has_dim; pass < 2; pass++) {
        for (int i = 0; i < b->buffer_count; i++) {
            const buffer *p = &b->buffers[i];
            bool is_param = p->is_param || !p->is_read;
            if (is_param != (pass == 0))
                continue;
            if (pass == 0)
                tl_text_format(&out, "%s%s%s: %s[", first ? "" : ", ", p->role, p->name,
                               tl_dtype_infos[p->dtype].text);
            else
                tl_text_format(&out, "alloc %s: %s[", p->name, tl_dtype_infos[p->dtype].text);
            first = false;
            for (int a = 0; a < p->rank; a++)
                tl_text_format(&out, "%s%s", a ? ", " : "", size_text(b, p->shape[a]));
            tl_text_add(&out, pass == 0 ? "]" : "]\n");
        }
        if (pass == 0)
            tl_text_add(&out, ")\n");
    }
    tl_text_add(&out, tl_text_get(&b->stages));
    const char *text = tl_arena_strdup(b->arena, tl_text_get(&out));
    tl_text_free(&out);
    tl_text_free(&b->stages);
    return text;
}

/* The iters of a stage's result: any, or the axes of a buffer that is there already, perhaps a little less of them. */
static void add_spatial(builder *b)
{
    const buffer *last = b->buffer_count ? &b->buffers[b->buffer_count - 1] : NULL;
    bool follows = last && last->rank > 0 && one_in(b, 2);
    int count = follows ? last->rank : 1 + (int)below(b, 3);
    for (int i = 0; i < count; i++) {
        iter *new = add_iter(b, "spatial");
        if (!follows)
            continue;
        new->extent = last->shape[i];
        if (!new->extent.is_dim &&new->extent.size > 2 && one_in(b, 3))
            new->extent.size -= 1 + below(b, 2);
        if (new->extent.is_dim) {
            new->tile = 0;
            new->is_flipped = false;
        }
    }
}

const char *random_kernel(tl_arena *arena, tl_random *random)
{
    static const int64_t extents[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17 };
    int64_t kind = tl_random_below(random, 16);
    if (kind < 6)
        return known_kernel(arena, random);
    if (kind == 6)
        return random_product(arena, random);
    builder b = { .arena = arena, .random = random };
    for (int i = 0; i < 3; i++)
        b.pool[i].size = extents[below(&b, i == 2 ? 6 : 14)];
    if (one_in(&b, 6)) {
        b.pool[0] = (extent){ DIM, true };
        b.has_dim = true;
    }
    int stages = 1 + (int)below(&b, 4);
    for (int s = 0; s < stages; s++) {
        b.iter_count = 0;
        add_spatial(&b);
        b.spatial_count = b.iter_count;
        b.is_repeated = one_in(&b, 8);
        int64_t form = below(&b, 18);
        if (form == 0)
            write_scan(&b);
        else if (form == 1)
            write_parts(&b);
        else if (form == 2 || form == 13 || form == 15)
            write_patch(&b, s);
        else if (form < 7)
            write_reduction(&b);
        else if (form == 12)
            write_steps(&b, s);
        else if (form == 14)
            write_crossed(&b);
        else if (form == 16)
            write_windows(&b, s);
        else
            write_map(&b, s == stages - 1);
    }
    return write_kernel(&b);
}
