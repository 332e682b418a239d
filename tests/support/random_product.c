/* tests/support/random_product.c: see random_product.h. */
#include "tests/support/random_product.h"
#include <string.h>
#include "runtime/base/text.h"

enum { TILES = 2, MOST_AXES = 3 };

typedef struct {
    const char *dtypes[3]; /* C, A, B */
    const char *axes[3];
    int64_t extents[3]; /* m, n, k */
} shape;

static const shape shapes[] = {
#define TENSOR(name, c, a, b, ca, aa, ba, m, n, k) { { #c, #a, #b }, { ca, aa, ba }, { m, n, k } },
#define GROUP_TENSOR(...)                          /* the same again, and large */
#include "schedule/prim/tensor_shapes.def"
#undef GROUP_TENSOR
#undef TENSOR
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef enum {
    NO_FAULT,
    OTHER_ORDER = NO_FAULT + 7, /* as often without a fault */
    OTHER_EXTENT,
    STRIDE,
    TWO_AXES,
    ONE_MORE,
    GUARD,
    INIT,
    COMBINER,
    VALUE,
    DTYPE,
    TWO_BLOCKS,
    FAULTS
} fault;

typedef struct {
    tl_arena *arena;
    fault fault;
    int faulty; /* operand with the fault, 0: C, 1: A, 2: B */
    char axes[3][MOST_AXES + 1];
    int64_t extents[3];
    const char *dtypes[3];
} product;

static const char letters[] = "mnk";

static int64_t extent_of(const product *p, char letter)
{
    return p->extents[strchr(letters, letter) - letters];
}

static bool is_faulty(const product *p, fault what, int operand)
{
    return p->fault == what && p->faulty == operand;
}

/* "[t, m, k*2]", or the shape: C and A have the tiles' axis first. */
static const char *indices(const product *p, int operand, bool is_shape)
{
    const char *text = operand == 2 ? "" : is_shape ? tl_arena_format(p->arena, "%d", TILES) : "t";
    for (const char *at = p->axes[operand]; *at; at++) {
        int64_t stride = is_faulty(p, STRIDE, operand) && at[1] == 0 ? 2 : 1;
        const char *comma = *text ? ", " : "";
        if (is_shape)
            text = tl_arena_format(p->arena, "%s%s%lld", text, comma,
                                   (long long)(extent_of(p, *at) * stride));
        else
            text = stride > 1 ? tl_arena_format(p->arena, "%s%s%c*2", text, comma, *at)
                              : tl_arena_format(p->arena, "%s%s%c", text, comma, *at);
    }
    return tl_arena_format(p->arena, "[%s]", text);
}

static void reverse(char *text)
{
    for (size_t i = 0, k = strlen(text); i + 1 < k; i++) {
        char t = text[i];
        text[i] = text[--k];
        text[k] = t;
    }
}

static product draw(tl_arena *arena, tl_random *random)
{
    static const char *const others[] = { "F32", "I32", "U8", "I8" };
    const shape *s = &shapes[tl_random_below(random, SHAPES)];
    product p = { .arena = arena };
    p.fault = (fault)tl_random_below(random, FAULTS);
    p.faulty = (int)tl_random_below(random, 3);
    for (int i = 0; i < 3; i++) {
        strcpy(p.axes[i], s->axes[i]);
        p.extents[i] = s->extents[i];
        p.dtypes[i] = s->dtypes[i];
    }
    if (p.fault == OTHER_ORDER)
        reverse(p.axes[p.faulty]);
    if (p.fault == OTHER_EXTENT && p.extents[p.faulty] > 2)
        p.extents[p.faulty] += tl_random_below(random, 2) ? 1 : -1;
    if (p.fault == TWO_AXES && p.faulty > 0)
        strcat(p.axes[p.faulty], "k");
    bool moves_b = p.faulty % 2 && p.extents[0] > 1;
    if (p.fault == ONE_MORE) /* A moves with n, or B with m */
        strcat(p.axes[moves_b ? 2 : 1], moves_b ? "m" : "n");
    if (p.fault == DTYPE && p.faulty > 0)
        p.dtypes[p.faulty] = others[tl_random_below(random, 4)];
    return p;
}

static const char *lower(tl_arena *arena, const char *dtype)
{
    char *text = tl_arena_strdup(arena, dtype);
    for (char *at = text; *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    return text;
}

static const char *value(const product *p)
{
    const char *dtype = lower(p->arena, p->dtypes[0]);
    const char *a = tl_arena_format(p->arena, "%s(A%s)", dtype, indices(p, 1, false));
    const char *b = tl_arena_format(p->arena, "%s(B%s)", dtype, indices(p, 2, false));
    const char *sign = p->fault != VALUE ? "*" : p->faulty ? " + " : " - ";
    return tl_arena_format(p->arena, "%s%s%s", a, sign, b);
}

/* Loops over the tiles and the axes that are wanted, in an order of their own. */
static int write_loops(const product *p, tl_text *out, tl_random *random, const char *wanted)
{
    int depth = 1, start = (int)tl_random_below(random, 3);
    tl_text_format(out, "for t in 0..%d\n", TILES);
    for (int i = 0; i < 3; i++) {
        char letter = letters[(start + i) % 3];
        if (strchr(wanted, letter) && extent_of(p, letter) > 1)
            tl_text_format(out, "%*sfor %c in 0..%lld\n", 2 * depth++, "", letter,
                           (long long)extent_of(p, letter));
    }
    return 2 * depth;
}

const char *random_product(tl_arena *arena, tl_random *random)
{
    product p = draw(arena, random);
    bool has_m = p.extents[0] > 1;
    const char *dtype = lower(arena, p.dtypes[0]), *element = indices(&p, 0, false);
    tl_text out = { 0 };
    tl_text_format(&out, "kernel product(A: %s%s, B: %s%s, out C: %s%s, out D: %s%s)\n",
                   lower(arena, p.dtypes[1]), indices(&p, 1, true), lower(arena, p.dtypes[2]),
                   indices(&p, 2, true), dtype, indices(&p, 0, true), dtype, indices(&p, 0, true));
    const char *spatial = has_m ? "mn" : "n";
    for (int i = 0; i < 2; i++) {
        int indent = write_loops(&p, &out, random, spatial);
        tl_text_format(&out, "%*sblock %c0\n%*sspatial t%s, n\n%*s%c%s = %s(0)\n", indent, "",
                       "CD"[i], indent + 2, "", has_m ? ", m" : "", indent + 2, "", "CD"[i],
                       element, dtype);
    }
    int indent = write_loops(&p, &out, random, "mnk");
    const char *combiner = p.fault == COMBINER ? "max" : "sum";
    for (int i = 0; i < 1 + (p.fault == TWO_BLOCKS); i++) {
        tl_text_format(&out, "%*sblock %c\n%*sspatial t%s, n\n%*sreduce k\n", indent, "", "CD"[i],
                       indent + 2, "", has_m ? ", m" : "", indent + 2, "");
        if (p.fault == GUARD)
            tl_text_format(&out, "%*swhere %c < %d\n", indent + 2, "", "tnk"[p.faulty],
                           p.faulty ? 2 : 1);
        tl_text_format(&out, p.fault == INIT ? "%*s%c%s = %s(%s)\n" : "%*s%c%s %s= %s\n",
                       indent + 2, "", "CD"[i], element, combiner, value(&p));
    }
    const char *text = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return text;
}
