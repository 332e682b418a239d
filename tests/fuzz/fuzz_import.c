/* tests/fuzz/fuzz_import.c: a model of one node, which the bytes decide: which row of import_ops.def, its attributes, dtypes and
 * shapes of its operands, which of them are constants and what these hold. It is well formed as a file; whether it means
 * anything is for the importer to say. Bytes that are missing are zeros: the plainest choice. */
#include <stdio.h>
#include <string.h>
#include "tests/frontend/onnx_text.h"
#include "tests/fuzz/fuzz.h"

typedef struct {
    const char *op_type;
    int since, until, min_inputs, max_inputs, max_outputs;
    const char *attributes;
} row;

static const row rows[] = {
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) \
    { type, since, until, min, max, outputs, attributes },
#include "frontend/import/import_ops.def"
#undef IMPORT
};

enum {
    ROW_COUNT = sizeof rows / sizeof rows[0],
    MOST_INPUTS = 9,
    MOST_CONSTANT = 4096,
    NEWEST = 28
};

typedef struct {
    const uint8_t *at, *end;
    bool wild; /* numbers that no sane model has */
    int base_rank;
    int64_t base[TL_MAX_RANK];
    tl_dtype dtype;
} choices;

static int choose(choices *c, int count)
{
    return c->at < c->end ? *c->at++ % count : 0;
}

static int64_t choose_number(choices *c)
{
    static const int64_t wild[] = { INT64_MIN, INT64_MAX, INT32_MAX, INT32_MIN, (int64_t)1 << 40,
                                    1 << 20,   65536,     -65536,    1000,      (int64_t)1 << 62 };
    int pick = choose(c, c->wild ? 32 : 16);
    return pick < 16 ? (pick + 1) % 12 - (pick >= 13 ? 3 : 0) : pick < 26 ? wild[pick - 16] : pick;
}

static double choose_real(choices *c)
{
    static const double reals[] = { 1,    0.5, 2,    0,     -1,  1.5, 0.25, 3,
                                    1e-6, 4,   1e30, -0.75, 0.1, 1e9, -1e-9 };
    int pick = choose(c, 18);
    return pick < 15    ? reals[pick]
           : pick == 15 ? strtod("nan", NULL)
           : pick == 16 ? strtod("inf", NULL)
                        : -2;
}

static int64_t choose_extent(choices *c)
{
    static const int64_t wild[] = { (int64_t)1 << 31, (int64_t)1 << 40, 1 << 20, INT64_MAX, 70000,
                                    (int64_t)1 << 32 };
    static const int64_t sane[] = { 2, 1, 3, 4, 1, 5, 6, 8, 0, 16, 12, 7 };
    int pick = choose(c, c->wild ? 24 : 12);
    return pick < 12 ? sane[pick] : pick < 18 ? wild[pick - 12] : pick;
}

static const char *choose_word(choices *c)
{
    static const char *const words[] = {
        "NOTSET",
        "SAME_UPPER",
        "SAME_LOWER",
        "VALID",
        "nearest",
        "linear",
        "cubic",
        "bilinear",
        "bicubic",
        "constant",
        "reflect",
        "edge",
        "wrap",
        "zeros",
        "border",
        "reflection",
        "half_pixel",
        "align_corners",
        "asymmetric",
        "pytorch_half_pixel",
        "tf_crop_and_resize",
        "half_pixel_symmetric",
        "output_half_pixel",
        "floor",
        "ceil",
        "round_prefer_ceil",
        "round_prefer_floor",
        "stretch",
        "not_larger",
        "not_smaller",
        "DCR",
        "CRD",
        "avg",
        "max",
        "min",
        "add",
        "mul",
        "none",
        "mean",
        "sum",
        "LEFT",
        "RIGHT",
        "forward",
        "reverse",
        "bidirectional",
        "tanh",
        "none",
        "ij,jk->ik",
        "ii->i",
        "...ij->...ji",
        "bij,bjk",
        "i,j->",
        "Tanh",
        "Relu",
        "Sigmoid",
        "Affine",
        "linear",
        "gated",
        "delta",
        "gated_delta",
        "silu",
        "swish",
        "FLOAT",
        "INT64",
        "",
        "i->ii",
        "LeakyRelu",
    };
    return words[choose(c, (int)(sizeof words / sizeof words[0]))];
}

/* ---- attributes ---- */

static tl_text make_constant(choices *c, const char *name);

static void add_list(choices *c, tl_text *a, const char *type)
{
    int kind = choose(c, 4),
        count = kind < 3 ? (c->base_rank - 2 > 0 ? c->base_rank - 2 : 1) * (kind == 1 ? 2 : 1)
                         : choose(c, 10);
    int64_t same = choose_number(c);
    bool all_same = choose(c, 2) == 0;
    for (int i = 0; i < count; i++)
        if (type[0] == 'i')
            wire_int(a, 8, all_same ? same : choose_number(c));
        else if (type[0] == 'f')
            wire_float(a, 7, (float)choose_real(c));
        else
            wire_string(a, 9, choose_word(c));
    wire_int(a, 20, type[0] == 'i' ? 7 : type[0] == 'f' ? 6 : 8);
}

static void add_attribute(choices *c, tl_text *node, const char *name, size_t size,
                          const char *type)
{
    tl_text a = { 0 };
    wire_bytes(&a, 1, name, size);
    if (type[1] == 's') {
        add_list(c, &a, type);
    } else if (type[0] == 'i') {
        wire_int(&a, 3, choose_number(c));
        wire_int(&a, 20, 2);
    } else if (type[0] == 'f') {
        wire_float(&a, 2, (float)choose_real(c));
        wire_int(&a, 20, 1);
    } else if (type[0] == 's') {
        wire_string(&a, 4, choose_word(c));
        wire_int(&a, 20, 3);
    } else if (type[0] == 't' && type[1] != 'p') {
        tl_text t = make_constant(c, "t");
        wire_message(&a, 5, &t);
        wire_int(&a, 20, 4);
    } else { /* graphs and types: an attribute that says of itself what it is not */
        wire_int(&a, 20, 5);
    }
    wire_message(node, 5, &a);
}

static void add_attributes(choices *c, tl_text *node, const char *attributes)
{
    for (const char *at = attributes; *at != '\0';) {
        size_t size = strcspn(at, ":"), rest = strcspn(at, " ");
        char type[4] = { 0 };
        for (size_t i = 0; i < 3 && size + 1 + i < rest; i++)
            type[i] = at[size + 1 + i];
        if (choose(c, 6) != 0)
            add_attribute(c, node, at, size, type);
        at += rest + strspn(at + rest, " ");
    }
}

/* ---- operands ---- */

static tl_dtype choose_dtype(choices *c)
{
    int pick = choose(c, 2 * TL_DTYPE_COUNT);
    return pick >= TL_DTYPE_COUNT ? c->dtype : (tl_dtype)((pick + TL_F32) % TL_DTYPE_COUNT);
}

/* Mostly near the first operand's: the same, a vector, a matrix, some axes changed. */
static int choose_shape(choices *c, int64_t out[TL_MAX_RANK])
{
    int kind = choose(c, 8), rank = c->base_rank;
    for (int i = 0; i < TL_MAX_RANK; i++)
        out[i] = i < c->base_rank ? c->base[i] : 1;
    if (kind == 1 || kind == 2) { /* a vector as long as one of the axes, or as any number */
        int axis = choose(c, rank + 1);
        out[0] = kind == 2 || axis == rank ? choose_extent(c) : out[axis];
        return 1;
    }
    if (kind == 3 && rank > 0)
        out[choose(c, rank)] = choose_extent(c);
    if (kind == 4 && rank > 1) {
        int64_t first = out[rank - 1];
        out[rank - 1] = out[rank - 2];
        out[rank - 2] = first;
    }
    if (kind == 5)
        return 0;
    if (kind >= 6) {
        rank = choose(c, TL_MAX_RANK + 1);
        for (int i = 0; i < rank; i++)
            if (kind == 7)
                out[i] = choose_extent(c);
    }
    return rank;
}

/* A tensor with data: small enough to be written down. */
static tl_text make_constant(choices *c, const char *name)
{
    tl_text t = { 0 }, raw = { 0 };
    int64_t shape[TL_MAX_RANK], count = 1;
    tl_dtype dtype = choose_dtype(c);
    int rank = choose_shape(c, shape);
    wire_string(&t, 8, name);
    wire_int(&t, 2, tl_dtype_infos[dtype].onnx);
    for (int i = 0; i < rank; i++) {
        shape[i] =
            shape[i] < 0 || shape[i] > MOST_CONSTANT / (count > 0 ? count : 1) ? 1 : shape[i];
        count *= shape[i];
        wire_int(&t, 1, shape[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        unsigned char cell[16] = { 0 };
        bool floats = tl_dtype_is_float(dtype);
        tl_number n = { .i = floats ? 0 : choose_number(c) };
        if (floats)
            n.f = choose_real(c);
        tl_number_store(dtype, cell, 0, n);
        bool narrow = tl_dtype_is_int(dtype) && tl_dtype_infos[dtype].digits <= 4;
        if (!narrow || i % 2 == 0) /* two numbers of four bits are a byte */
            tl_text_add_bytes(&raw, cell, tl_dtype_size(dtype));
    }
    wire_message(&t, 9, &raw);
    return t;
}

static tl_text make_input(choices *c, const char *name, bool first)
{
    tl_text v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    int64_t extents[TL_MAX_RANK];
    int rank = c->base_rank;
    if (first)
        memcpy(extents, c->base, sizeof extents);
    else
        rank = choose_shape(c, extents);
    wire_string(&v, 1, name);
    wire_int(&tensor, 1, tl_dtype_infos[first ? c->dtype : choose_dtype(c)].onnx);
    for (int i = 0; i < rank; i++) {
        tl_text d = { 0 };
        wire_int(&d, 1, extents[i]);
        wire_message(&shape, 1, &d);
    }
    wire_message(&tensor, 2, &shape);
    wire_message(&type, 1, &tensor);
    wire_message(&v, 2, &type);
    return v;
}

/* ---- the model ---- */

static void add_operands(choices *c, const row *r, tl_text *node, tl_text *graph)
{
    int most = r->max_inputs < 0 || r->max_inputs > MOST_INPUTS ? MOST_INPUTS : r->max_inputs;
    int count = r->min_inputs + (most > r->min_inputs ? choose(c, most - r->min_inputs + 1) : 0);
    for (int i = 0; i < count; i++) {
        char name[8] = { 'x', (char)('0' + i), 0 };
        int kind = choose(c, 8);
        bool absent = kind == 7 && i >= r->min_inputs;
        wire_string(node, 1, absent ? "" : name);
        if (absent)
            continue;
        bool constant = kind >= 4;
        tl_text v = constant ? make_constant(c, name) : make_input(c, name, i == 0);
        wire_message(graph, constant ? 5 : 11, &v);
    }
}

static void add_results(choices *c, const row *r, tl_text *node, tl_text *graph)
{
    int most = r->max_outputs < 0 || r->max_outputs > 4 ? 4 : r->max_outputs;
    int count = 1 + (most > 1 ? choose(c, most) : 0);
    for (int i = 0; i < count; i++) {
        char name[8] = { 'y', (char)('0' + i), 0 };
        tl_text v = { 0 };
        wire_string(node, 2, name);
        wire_string(&v, 1, name);
        wire_message(graph, 12, &v);
    }
}

static tl_text make_model(choices *c)
{
    tl_text model = { 0 }, graph = { 0 }, node = { 0 }, opset = { 0 };
    const row *r = &rows[(choose(c, 256) + 256 * choose(c, 4)) % ROW_COUNT];
    int form = choose(c, 8), latest = r->until > 0 ? r->until : NEWEST;
    const char *dot = strrchr(r->op_type, '.');
    c->wild = form == 3 || form == 7;
    c->dtype = choose(c, 2) == 0 ? TL_F32 : (tl_dtype)choose(c, TL_DTYPE_COUNT);
    c->base_rank = form < 4 ? 4 : choose(c, TL_MAX_RANK + 1);
    for (int i = 0; i < c->base_rank; i++)
        c->base[i] = choose_extent(c);
    wire_string(&node, 4, dot != NULL ? dot + 1 : r->op_type);
    if (dot != NULL)
        wire_bytes(&node, 7, r->op_type, (size_t)(dot - r->op_type));
    wire_bytes(&opset, 1, r->op_type, dot != NULL ? (size_t)(dot - r->op_type) : 0);
    wire_int(&opset, 2, form % 4 < 2 || dot != NULL ? r->since : latest);
    add_operands(c, r, &node, &graph);
    add_attributes(c, &node, r->attributes);
    add_results(c, r, &node, &graph);
    wire_message(&graph, 1, &node);
    wire_string(&graph, 2, "fuzz");
    wire_int(&model, 1, 8);
    wire_message(&model, 7, &graph);
    wire_message(&model, 8, &opset);
    return model;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    choices c = { .at = bytes, .end = bytes + size };
    tl_text file = make_model(&c);
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_onnx *model = NULL;
    tl_graph *g;
    if (TL_ARENA_GUARD(arena) == 0) {
        tl_status status = tl_onnx_read_memory(arena, tl_text_get(&file), file.size, NULL, NULL, 0,
                                               &model, &g, &diag);
        fuzz_check_refusal(status, &diag);
        if (status == TL_OK)
            fuzz_graph(arena, g);
    }
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    tl_text_free(&file);
    return 0;
}
