/* ir/graph/graph_print.c: a Graph as text that ir/graph/graph_parse.c reads back.
 *
 *     graph name
 *     input x: f32[batch, 3]
 *     const w: f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]     # `...` in place of more than 64 values
 *     y: f32[batch, 2] = MatMul(x, w) {axis = 1, to = f32} "name of the node, where it differs"
 *     output y
 *     extent y 0 = n              # n, an i64, holds how large axis 0 of y is; its shape says how large at most
 *
 * A node with graphs of its own is followed by them, each between `body` and `end`:
 *
 *     z: f32[3] = If(c, x)
 *     body
 *     graph yes
 *     ...
 *     end
 *
 * Names that are not words are quoted, in them bytes of what no terminal shows are `\x1b`. `_` stands for an optional
 * input or output that is not there; `?` for an unknown dtype or dimension, `[...]` for an unknown shape. What is not
 * plain in memory says
 * `layout(order [0, 2, 1], block [1, 16, 1], before [0, 0, 1], after [0, 0, 1])` behind its shape. */
#include "ir/graph/graph.h"
#include "runtime/base/printable.h"
#include <ctype.h>
#include <stdio.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/graph/graph_private.h"

static bool is_word(const char *s)
{
    if (!isalpha((unsigned char)s[0]) && s[0] != '_')
        return false;
    if (strcmp(s, "_") == 0 || strcmp(s, "input") == 0 || strcmp(s, "const") == 0 ||
        strcmp(s, "output") == 0 || strcmp(s, "extent") == 0 || strcmp(s, "body") == 0 ||
        strcmp(s, "end") == 0)
        return false;
    for (; *s != '\0'; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.')
            return false;
    return true;
}

static void print_quoted(tl_text *out, const char *s)
{
    size_t left = strlen(s);
    tl_text_add(out, "\"");
    while (left > 0) {
        uint32_t code;
        int size = tl_utf8_read(s, left, &code);
        bool shown = size > 0 && tl_is_printable(code);
        size_t n = size > 0 ? (size_t)size : 1;
        if (*s == '"' || *s == '\\')
            tl_text_format(out, "\\%c", *s);
        else if (shown)
            tl_text_add_bytes(out, s, n);
        for (size_t i = 0; i < n && !shown; i++)
            tl_text_format(out, "\\x%02x", (unsigned char)s[i]);
        s += n;
        left -= n;
    }
    tl_text_add(out, "\"");
}

static void print_name(tl_text *out, const char *s)
{
    if (is_word(s))
        tl_text_add(out, s);
    else
        print_quoted(out, s);
}

/* The fewest digits that read back as the same number of the dtype, with a point or an exponent. */
static void print_float(tl_text *out, tl_dtype dtype, double value)
{
    if (isnan(value) || isinf(value)) {
        tl_text_add(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        tl_number read = { .f = strtod(digits, NULL) };
        read = tl_number_cast(dtype, TL_F64, read);
        if (read.f == value)
            break;
    }
    tl_text_add(out, digits);
    if (strpbrk(digits, ".e") == NULL)
        tl_text_add(out, ".0");
}

static void print_number(tl_text *out, tl_dtype dtype, tl_number value)
{
    if (tl_dtype_is_float(dtype))
        print_float(out, dtype, value.f);
    else if (dtype == TL_BOOL)
        tl_text_add(out, value.i != 0 ? "true" : "false");
    else if (dtype == TL_U64)
        tl_text_format(out, "%" PRIu64, (uint64_t)value.i);
    else
        tl_text_format(out, "%" PRId64, value.i);
}

static void print_shape(tl_text *out, const tl_shape *shape)
{
    tl_text_add(out, "[");
    if (shape->rank < 0)
        tl_text_add(out, "...");
    for (int i = 0; i < shape->rank; i++) {
        const tl_dim *d = &shape->dims[i];
        tl_text_add(out, i > 0 ? ", " : "");
        if (d->extent >= 0)
            tl_text_format(out, "%" PRId64, d->extent);
        else if (d->name != NULL)
            print_name(out, d->name);
        else
            tl_text_add(out, "?");
    }
    tl_text_add(out, "]");
}

static void print_numbers(tl_text *out, const int64_t *numbers, int count)
{
    tl_text_add(out, "[");
    for (int i = 0; i < count; i++)
        tl_text_format(out, "%s%" PRId64, i > 0 ? ", " : "", numbers[i]);
    tl_text_add(out, "]");
}

static void print_layout(tl_text *out, const tl_layout *layout, int rank)
{
    if (layout->plain || rank < 0)
        return;
    int64_t order[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = layout->order[i];
    tl_text_add(out, " layout(order ");
    print_numbers(out, order, rank);
    tl_text_add(out, ", block ");
    print_numbers(out, layout->block, rank);
    tl_text_add(out, ", before ");
    print_numbers(out, layout->halo_before, rank);
    tl_text_add(out, ", after ");
    print_numbers(out, layout->halo_after, rank);
    tl_text_add(out, ")");
}

static void print_typed_name(tl_text *out, const tl_value *v)
{
    print_name(out, v->name);
    tl_text_format(out, ": %s", v->dtype_known ? tl_dtype_infos[v->dtype].text : "?");
    print_shape(out, &v->shape);
    print_layout(out, &v->layout, v->shape.rank);
}

static void print_constant(tl_text *out, const tl_value *v)
{
    int64_t count = tl_shape_elements(&v->shape);
    tl_text_add(out, "const ");
    print_typed_name(out, v);
    if (count > TL_GRAPH_PRINTED_ELEMENTS) {
        tl_text_add(out, " = ...\n");
        return;
    }
    tl_text_add(out, " = [");
    for (int64_t i = 0; i < count; i++) {
        tl_text_add(out, i > 0 ? ", " : "");
        print_number(out, v->dtype, tl_number_load(v->dtype, v->data, (size_t)i));
    }
    tl_text_add(out, "]\n");
}

static void print_attr(tl_text *out, tl_op op, const tl_attr *a)
{
    tl_attr_type type;
    bool is_dtype = false;
    tl_op_attribute_type(op, a->name, &type, &is_dtype);
    tl_text_format(out, "%s = ", a->name);
    switch (a->type) {
    case TL_ATTR_INT:
        if (is_dtype && a->i >= 0 && a->i < TL_DTYPE_COUNT)
            tl_text_add(out, tl_dtype_infos[a->i].text);
        else
            tl_text_format(out, "%" PRId64, a->i);
        return;
    case TL_ATTR_FLOAT:
        print_float(out, TL_F64, a->f);
        return;
    case TL_ATTR_STRING:
        print_quoted(out, a->s);
        return;
    case TL_ATTR_INTS:
        print_numbers(out, a->ints, a->count);
        return;
    case TL_ATTR_FLOATS:
        tl_text_add(out, "[");
        for (int i = 0; i < a->count; i++) {
            tl_text_add(out, i > 0 ? ", " : "");
            print_float(out, TL_F64, a->floats[i]);
        }
        tl_text_add(out, "]");
        return;
    }
}

static void print_node(tl_text *out, const tl_node *n)
{
    const char *implied = n->output_count > 0 && n->outputs[0] != NULL ? n->outputs[0]->name : "";
    for (int i = 0; i < n->output_count; i++) {
        tl_text_add(out, i > 0 ? ", " : "");
        if (n->outputs[i] != NULL)
            print_typed_name(out, n->outputs[i]);
        else
            tl_text_add(out, "_");
    }
    tl_text_format(out, " = %s(", tl_op_infos[n->op].text);
    for (int i = 0; i < n->input_count; i++) {
        tl_text_add(out, i > 0 ? ", " : "");
        if (n->inputs[i] != NULL)
            print_name(out, n->inputs[i]->name);
        else
            tl_text_add(out, "_");
    }
    tl_text_add(out, ")");
    for (int i = 0; i < n->attr_count; i++) {
        tl_text_add(out, i == 0 ? " {" : ", ");
        print_attr(out, n->op, &n->attrs[i]);
    }
    tl_text_add(out, n->attr_count > 0 ? "}" : "");
    if (strcmp(n->name, implied) != 0) {
        tl_text_add(out, " ");
        print_quoted(out, n->name);
    }
    tl_text_add(out, "\n");
    for (int i = 0; i < tl_op_bodies(n->op); i++) {
        tl_text_add(out, "body\n");
        tl_graph_print(n->bodies[i], out); /* at most TL_MOST_NESTED deep */
        tl_text_add(out, "end\n");
    }
}

void tl_graph_print(const tl_graph *g, tl_text *out)
{
    tl_text_add(out, "graph ");
    print_name(out, g->name);
    tl_text_add(out, "\n");
    for (int i = 0; i < g->input_count; i++) {
        tl_text_add(out, "input ");
        print_typed_name(out, g->inputs[i]);
        tl_text_add(out, "\n");
    }
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i]->data != NULL)
            print_constant(out, g->values[i]);
    for (int i = 0; i < g->node_count; i++)
        if (!g->nodes[i]->dead)
            print_node(out, g->nodes[i]);
    for (int i = 0; i < g->shown_count; i++) {
        tl_text_add(out, "output ");
        print_name(out, g->outputs[i]->name);
        tl_text_add(out, "\n");
    }
    for (int i = 0; i < g->extent_count; i++) {
        tl_text_add(out, "extent ");
        print_name(out, g->outputs[g->extents[i].output]->name);
        tl_text_format(out, " %d = ", g->extents[i].axis);
        print_name(out, g->outputs[g->extents[i].count]->name);
        tl_text_add(out, "\n");
    }
}
