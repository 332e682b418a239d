/* ir/graph/graph_parse.c: reads the text that ir/graph/graph_print.c writes (its grammar stands there). A value is
 * defined before it is used; what was read is verified before it is handed out. */
#include <ctype.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ir/graph/graph.h"
#include "ir/graph/graph_private.h"
#include "runtime/base/array.h"
#include "runtime/base/map.h"

#define MAX_LIST 4096

typedef struct {
    tl_arena *arena;
    const char *at, *file;
    int line, depth;            /* depth: bodies around what is read */
    tl_map *values, *constants; /* by name; the latter of another graph */
    tl_graph *graph;
    tl_diag *diag;
} parser;

/* A number as it stands in the text: both readings, for the dtype decides later. */
typedef struct {
    double f;
    int64_t i;
    bool is_float;
} literal;

#define FAIL(p, ...) fail_at(p, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) static tl_status fail_at(parser *p, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return tl_fail(p->diag, TL_BAD_TEXT, "%s:%d: %s", p->file, p->line, sentence);
}

/* Spaces and comments; newlines too when `lines`. */
static void skip(parser *p, bool lines)
{
    for (;;) {
        if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') {
            p->at++;
        } else if (*p->at == '#') {
            p->at += strcspn(p->at, "\n");
        } else if (lines && *p->at == '\n') {
            p->at++;
            p->line++;
        } else {
            return;
        }
    }
}

static bool accept(parser *p, const char *text)
{
    skip(p, false);
    size_t size = strlen(text);
    if (strncmp(p->at, text, size) != 0)
        return false;
    if (isalpha((unsigned char)text[0]) &&
        (isalnum((unsigned char)p->at[size]) || p->at[size] == '_' || p->at[size] == '.'))
        return false;
    p->at += size;
    return true;
}

static tl_status expect(parser *p, const char *text)
{
    if (accept(p, text))
        return TL_OK;
    int shown = (int)strcspn(p->at, "\n");
    return FAIL(p, "expected `%s` before `%.*s`", text, shown > 20 ? 20 : shown, p->at);
}

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tl_status parse_quoted(parser *p, const char **out)
{
    TL_TRY(expect(p, "\""));
    size_t size = 0, room = strcspn(p->at, "\n");
    char *text = tl_arena_alloc(p->arena, room + 1, 1);
    while (*p->at != '"') {
        if (*p->at == '\0' || *p->at == '\n')
            return FAIL(p, "a quoted name does not end on its line");
        if (p->at[0] == '\\' && (p->at[1] == '"' || p->at[1] == '\\')) {
            text[size++] = p->at[1];
            p->at += 2;
        } else if (p->at[0] == '\\' && p->at[1] == 'x' && hex(p->at[2]) >= 0 &&
                   hex(p->at[3]) >= 0) {
            text[size] = (char)(hex(p->at[2]) * 16 + hex(p->at[3]));
            if (text[size++] == '\0')
                return FAIL(p, "a name holds a zero byte");
            p->at += 4;
        } else if (p->at[0] == '\\') {
            return FAIL(p, "unknown escape `\\%c`", p->at[1]);
        } else {
            text[size++] = *p->at++;
        }
    }
    p->at++;
    text[size] = '\0';
    *out = text;
    return TL_OK;
}

static tl_status parse_name(parser *p, const char **out)
{
    skip(p, false);
    if (*p->at == '"')
        return parse_quoted(p, out);
    size_t size = 0;
    while (isalnum((unsigned char)p->at[size]) || p->at[size] == '_' || p->at[size] == '.')
        size++;
    if (size == 0 || isdigit((unsigned char)p->at[0])) {
        int shown = (int)strcspn(p->at, "\n");
        return FAIL(p, "expected a name before `%.*s`", shown > 20 ? 20 : shown, p->at);
    }
    *out = tl_arena_strndup(p->arena, p->at, size);
    p->at += size;
    return TL_OK;
}

static tl_status parse_literal(parser *p, literal *out)
{
    skip(p, true);
    *out = (literal){ 0 };
    if (accept(p, "true") || accept(p, "false")) {
        out->i = p->at[-2] == 'u'; /* tr-u-e */
        out->f = (double)out->i;
        return TL_OK;
    }
    char *end_float, *end_int;
    out->f = strtod(p->at, &end_float);
    errno = 0;
    bool negative = *p->at == '-';
    out->i = negative ? strtoll(p->at, &end_int, 10) : (int64_t)strtoull(p->at, &end_int, 10);
    bool overflow = errno == ERANGE;
    if (end_float == p->at)
        return FAIL(p, "expected a number");
    out->is_float = end_float > end_int;
    if (!out->is_float && overflow)
        return FAIL(p, "the integer does not fit in 64 bits");
    p->at = end_float;
    return TL_OK;
}

/* `[a, b, ...]` of numbers, opened by the caller's look-ahead. */
static tl_status parse_list(parser *p, literal **out, int *count)
{
    TL_TRY(expect(p, "["));
    int capacity = 0;
    literal *list = NULL;
    *count = 0;
    skip(p, true);
    while (!accept(p, "]")) {
        if (*count > 0)
            TL_TRY(expect(p, ","));
        if (*count == MAX_LIST)
            return FAIL(p, "a list of more than %d numbers", MAX_LIST);
        TL_ROOM(p->arena, list, *count, capacity);
        TL_TRY(parse_literal(p, &list[(*count)++]));
        skip(p, true);
    }
    *out = list;
    return TL_OK;
}

static tl_status parse_shape(parser *p, tl_shape *out)
{
    TL_TRY(expect(p, "["));
    *out = (tl_shape){ .rank = 0 };
    if (accept(p, "...")) {
        out->rank = -1;
        return expect(p, "]");
    }
    while (!accept(p, "]")) {
        if (out->rank > 0)
            TL_TRY(expect(p, ","));
        if (out->rank == TL_MAX_RANK)
            return FAIL(p, "the rank is larger than %d", TL_MAX_RANK);
        tl_dim *d = &out->dims[out->rank++];
        skip(p, false);
        if (isdigit((unsigned char)*p->at)) {
            literal value;
            TL_TRY(parse_literal(p, &value));
            if (value.is_float || value.i < 0)
                return FAIL(p, "a dimension is not a whole number below 2^63");
            d->extent = value.i;
        } else {
            d->extent = -1;
            if (!accept(p, "?"))
                TL_TRY(parse_name(p, &d->name));
        }
    }
    return TL_OK;
}

static tl_status parse_axis_numbers(parser *p, const char *word, int rank, int64_t low,
                                    int64_t out[TL_MAX_RANK])
{
    literal *list;
    int count;
    TL_TRY(expect(p, word));
    TL_TRY(parse_list(p, &list, &count));
    if (count != rank)
        return FAIL(p, "layout: %d numbers after `%s` for rank %d", count, word, rank);
    for (int i = 0; i < count; i++) {
        if (list[i].is_float || list[i].i < low || list[i].i > INT32_MAX)
            return FAIL(p, "layout: number %d after `%s` is out of range", i, word);
        out[i] = list[i].i;
    }
    return TL_OK;
}

static tl_status parse_layout(parser *p, int rank, tl_layout *out)
{
    *out = tl_layout_plain();
    if (!accept(p, "layout"))
        return TL_OK;
    int64_t order[TL_MAX_RANK];
    out->plain = false;
    TL_TRY(expect(p, "("));
    TL_TRY(parse_axis_numbers(p, "order", rank, 0, order));
    TL_TRY(expect(p, ","));
    TL_TRY(parse_axis_numbers(p, "block", rank, 1, out->block));
    TL_TRY(expect(p, ","));
    TL_TRY(parse_axis_numbers(p, "before", rank, 0, out->halo_before));
    TL_TRY(expect(p, ","));
    TL_TRY(parse_axis_numbers(p, "after", rank, 0, out->halo_after));
    for (int i = 0; i < rank; i++)
        out->order[i] = (int)order[i];
    return expect(p, ")");
}

/* `name: dtype[shape] layout(...)`: a new value. */
static tl_status parse_value(parser *p, tl_value **out)
{
    const char *name, *word;
    tl_dtype dtype = TL_DTYPE_COUNT;
    tl_shape shape;
    TL_TRY(parse_name(p, &name));
    if (tl_map_has(p->values, name))
        return FAIL(p, "value %s is defined twice", name);
    TL_TRY(expect(p, ":"));
    if (!accept(p, "?")) {
        TL_TRY(parse_name(p, &word));
        if (!tl_dtype_from_text(word, &dtype))
            return FAIL(p, "value %s: no dtype is called %s", name, word);
    }
    TL_TRY(parse_shape(p, &shape));
    *out = tl_graph_value(p->graph, name, dtype, &shape);
    tl_map_put(p->values, name, *out);
    return parse_layout(p, shape.rank, &(*out)->layout);
}

static tl_status parse_constant(parser *p)
{
    tl_value *v;
    TL_TRY(parse_value(p, &v));
    int64_t elements = tl_shape_elements(&v->shape);
    if (!v->dtype_known || elements < 0)
        return FAIL(p, "constant %s needs a dtype and a static shape", v->name);
    TL_TRY(expect(p, "="));
    bool is_elsewhere = accept(p, "...");
    const tl_value *known = is_elsewhere ? tl_map_find(p->constants, v->name) : NULL;
    if (known != NULL && known->dtype == v->dtype && tl_shape_equal(&known->shape, &v->shape)) {
        v->data = known->data;
        return TL_OK;
    }
    if (elements > TL_GRAPH_PARSED_ELEMENTS)
        return FAIL(p, "constant %s has more than %d elements", v->name, TL_GRAPH_PARSED_ELEMENTS);
    char *data = tl_arena_alloc(p->arena, (size_t)tl_storage_bytes(v->dtype, elements), 64);
    v->data = data;
    if (is_elsewhere)
        return TL_OK;
    literal *list;
    int count;
    TL_TRY(parse_list(p, &list, &count));
    if (count != elements)
        return FAIL(p, "constant %s has %d values for %lld elements", v->name, count,
                    (long long)elements);
    for (int i = 0; i < count; i++) {
        tl_number value = { .f = list[i].f };
        if (!tl_dtype_is_float(v->dtype)) {
            if (list[i].is_float)
                return FAIL(p, "constant %s: value %d is no integer", v->name, i);
            value.i = list[i].i;
        }
        tl_number_store(v->dtype, data, (size_t)i, value);
    }
    return TL_OK;
}

static tl_status parse_attr(parser *p, tl_node *n)
{
    const char *name, *text;
    tl_attr_type type;
    bool is_dtype;
    literal value;
    literal *list = NULL;
    int count = 0;
    TL_TRY(parse_name(p, &name));
    if (!tl_op_attribute_type(n->op, name, &type, &is_dtype))
        return FAIL(p, "%s has no attribute %s", tl_op_infos[n->op].text, name);
    if (tl_attr_find(n, name) != NULL)
        return FAIL(p, "attribute %s is given twice", name);
    TL_TRY(expect(p, "="));
    switch (type) {
    case TL_ATTR_INT:
        skip(p, false);
        if (is_dtype && isalpha((unsigned char)*p->at)) {
            tl_dtype dtype;
            TL_TRY(parse_name(p, &text));
            if (!tl_dtype_from_text(text, &dtype))
                return FAIL(p, "attribute %s: no dtype is called %s", name, text);
            tl_attr_set_int(p->graph, n, name, dtype);
            return TL_OK;
        }
        TL_TRY(parse_literal(p, &value));
        if (value.is_float)
            return FAIL(p, "attribute %s is an integer", name);
        tl_attr_set_int(p->graph, n, name, value.i);
        return TL_OK;
    case TL_ATTR_FLOAT:
        TL_TRY(parse_literal(p, &value));
        tl_attr_set_float(p->graph, n, name, value.f);
        return TL_OK;
    case TL_ATTR_STRING:
        TL_TRY(parse_quoted(p, &text));
        tl_attr_set_string(p->graph, n, name, text);
        return TL_OK;
    case TL_ATTR_INTS:
    case TL_ATTR_FLOATS:
        TL_TRY(parse_list(p, &list, &count));
        break;
    }
    int64_t *ints = TL_NEW_ARRAY(p->arena, int64_t, count);
    double *floats = TL_NEW_ARRAY(p->arena, double, count);
    for (int i = 0; i < count; i++) {
        if (type == TL_ATTR_INTS && list[i].is_float)
            return FAIL(p, "attribute %s is a list of integers", name);
        ints[i] = list[i].i;
        floats[i] = list[i].f;
    }
    if (type == TL_ATTR_INTS)
        tl_attr_set_ints(p->graph, n, name, ints, count);
    else
        tl_attr_set_floats(p->graph, n, name, floats, count);
    return TL_OK;
}

typedef struct {
    tl_value **items;
    int count, capacity;
} value_list;

static void add_value(parser *p, value_list *list, tl_value *v)
{
    TL_ROOM(p->arena, list->items, list->count, list->capacity);
    list->items[list->count++] = v;
}

static tl_status parse_inputs(parser *p, value_list *inputs)
{
    const char *name;
    TL_TRY(expect(p, "("));
    while (!accept(p, ")")) {
        if (inputs->count > 0)
            TL_TRY(expect(p, ","));
        skip(p, true);
        tl_value *v = NULL;
        bool quoted = *p->at == '"';
        TL_TRY(parse_name(p, &name));
        if (quoted || strcmp(name, "_") != 0) {
            v = tl_map_find(p->values, name);
            if (v == NULL)
                return FAIL(p, "value %s is not defined before its use", name);
        }
        add_value(p, inputs, v);
        skip(p, true);
    }
    return TL_OK;
}

static tl_status parse_node(parser *p)
{
    value_list inputs = { 0 }, outputs = { 0 };
    do {
        tl_value *v = NULL;
        if (!accept(p, "_,") && !accept(p, "_ "))
            TL_TRY(parse_value(p, &v));
        else
            p->at--; /* the comma or the space */
        add_value(p, &outputs, v);
    } while (accept(p, ","));
    const char *op_text, *name = "";
    tl_op op;
    TL_TRY(expect(p, "="));
    TL_TRY(parse_name(p, &op_text));
    if (!tl_op_from_text(op_text, &op))
        return FAIL(p, "no operator is called %s", op_text);
    TL_TRY(parse_inputs(p, &inputs));
    /* a value of this very line cannot be read by it */
    for (int i = 0; i < inputs.count; i++)
        for (int o = 0; o < outputs.count; o++)
            if (inputs.items[i] != NULL && inputs.items[i] == outputs.items[o])
                return FAIL(p, "value %s is read by the node that computes it",
                            inputs.items[i]->name);
    if (outputs.items[0] != NULL)
        name = outputs.items[0]->name;
    tl_node *n =
        tl_graph_node(p->graph, op, name, inputs.count, inputs.items, outputs.count, outputs.items);
    if (accept(p, "{")) {
        do {
            skip(p, true);
            TL_TRY(parse_attr(p, n));
            skip(p, true);
        } while (accept(p, ","));
        TL_TRY(expect(p, "}"));
    }
    skip(p, false);
    if (*p->at == '"')
        TL_TRY(parse_quoted(p, &n->name));
    return TL_OK;
}

/* `extent y 0 = n`, behind the outputs. */
static tl_status parse_extent(parser *p)
{
    const char *name, *count_name;
    literal axis;
    TL_TRY(parse_name(p, &name));
    TL_TRY(parse_literal(p, &axis));
    TL_TRY(expect(p, "="));
    TL_TRY(parse_name(p, &count_name));
    const tl_value *v = tl_map_find(p->values, name);
    tl_value *count = tl_map_find(p->values, count_name);
    int output = 0;
    while (output < p->graph->shown_count && p->graph->outputs[output] != v)
        output++;
    if (v == NULL || output == p->graph->shown_count)
        return FAIL(p, "%s is no output", name);
    if (axis.is_float || axis.i < 0 || axis.i >= v->shape.rank)
        return FAIL(p, "output %s has no such axis", name);
    if (count == NULL || count->dtype != TL_I64 || tl_shape_elements(&count->shape) != 1)
        return FAIL(p, "%s is not one i64", count_name);
    tl_graph_set_extent(p->graph, output, (int)axis.i, count);
    return TL_OK;
}

static tl_status parse_graph(parser *p);

/* The graphs of the node that was read last, each between `body` and `end`. */
static tl_status parse_bodies(parser *p)
{
    tl_node *n = p->graph->nodes[p->graph->node_count - 1];
    for (int i = 0; i < tl_op_bodies(n->op); i++) {
        parser inner = *p;
        skip(&inner, true);
        if (++inner.depth > TL_MOST_NESTED)
            return FAIL(p, "more than %d graphs inside one another", TL_MOST_NESTED);
        TL_TRY(expect(&inner, "body"));
        inner.values = tl_map_create(p->arena);
        TL_TRY(parse_graph(&inner));
        TL_TRY(expect(&inner, "end"));
        n->bodies[i] = inner.graph;
        p->at = inner.at;
        p->line = inner.line;
    }
    return TL_OK;
}

static tl_status parse_line(parser *p)
{
    tl_value *v;
    const char *name;
    if (accept(p, "input")) {
        TL_TRY(parse_value(p, &v));
        tl_graph_add_input(p->graph, v);
    } else if (accept(p, "const")) {
        TL_TRY(parse_constant(p));
    } else if (accept(p, "output")) {
        TL_TRY(parse_name(p, &name));
        v = tl_map_find(p->values, name);
        if (v == NULL)
            return FAIL(p, "output %s is not defined", name);
        if (p->graph->extent_count > 0)
            return FAIL(p, "output %s stands behind an extent", name);
        tl_graph_add_output(p->graph, v);
    } else if (accept(p, "extent")) {
        TL_TRY(parse_extent(p));
    } else {
        TL_TRY(parse_node(p));
        TL_TRY(parse_bodies(p));
    }
    skip(p, false);
    if (*p->at != '\n' && *p->at != '\0')
        return FAIL(p, "`%.*s` is too much", (int)strcspn(p->at, "\n"), p->at);
    return TL_OK;
}

static bool is_at_end(parser *p)
{
    const char *at = p->at;
    bool is_end = *at == '\0' || (p->depth > 0 && accept(p, "end"));
    p->at = at;
    return is_end;
}

/* A graph, up to the end of the text or, of a body, up to `end`. */
static tl_status parse_graph(parser *p)
{
    const char *name;
    skip(p, true);
    TL_TRY(expect(p, "graph"));
    TL_TRY(parse_name(p, &name));
    p->graph = tl_graph_create(p->arena, name);
    for (skip(p, true); !is_at_end(p); skip(p, true))
        TL_TRY(parse_line(p));
    return TL_OK;
}

tl_status tl_graph_parse_beside(tl_arena *arena, const char *text, const char *file,
                                const tl_graph *constants, tl_graph **out, tl_diag *diag)
{
    parser p = { .arena = arena,
                 .at = text,
                 .file = file,
                 .line = 1,
                 .values = tl_map_create(arena),
                 .constants = tl_map_create(arena),
                 .diag = diag };
    for (int i = 0; constants != NULL && i < constants->value_count; i++)
        if (constants->values[i]->data != NULL)
            tl_map_put(p.constants, constants->values[i]->name, constants->values[i]);
    TL_TRY(parse_graph(&p));
    tl_status status = tl_graph_verify(p.graph, diag);
    if (status != TL_OK) {
        tl_context(diag, "%s", file);
        return TL_BAD_TEXT;
    }
    *out = p.graph;
    return TL_OK;
}

tl_status tl_graph_parse(tl_arena *arena, const char *text, const char *file, tl_graph **out,
                         tl_diag *diag)
{
    return tl_graph_parse_beside(arena, text, file, NULL, out, diag);
}
