/* tests/structural/oracle.c: a graph evaluated node by node, and how far roundings carry. */
#include "tests/structural/oracle.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "frontend/lower/lower.h"
#include "frontend/node/fold_node.h"
#include "runtime/base/map.h"
#include "runtime/base/random.h"
#include "tests/structural/operands.h"

enum { NUDGES = 2, MARGIN = 4, MOST_FOLDED = 64, FOLDED_ULP = 128 };

/* The bounds of a graph's results, one a node; 0: exact. Of a body, in any of its turns. */
typedef struct graph_bounds {
    const tl_graph *graph;
    double *largest, *direct;
    struct graph_bounds *next;
} graph_bounds;

typedef struct {
    tl_arena *arena;
    tl_graph *graph;
    graph_bounds *bounds;
    tl_value *folded[MOST_FOLDED];
    const void *folded_data[MOST_FOLDED]; /* before it is moved */
    int folded_count;
    tl_random random;
    tl_diag *diag;
} evaluation;

static double get(const tl_value *v, int64_t i)
{
    tl_number n = tl_number_load(v->dtype, v->data, (size_t)i);
    return tl_dtype_is_float(v->dtype) ? n.f : (double)n.i;
}

/* ---- what rounds ---- */

/* The largest magnitude; *grid: a power of two that every element is a multiple of, 0 when there is none of use. */
static double measure(const tl_value *v, double *grid)
{
    double most = 0;
    *grid = 0x1p-10;
    for (int64_t i = 0; i < tl_shape_elements(&v->shape); i++) {
        double x = get(v, i);
        most = fmax(most, fabs(x));
        if (!(fabs(x) < 1e12) || fmod(x, *grid) != 0)
            *grid = 0;
        if (*grid == 0)
            return most;
    }
    while (*grid < 1) { /* the coarsest that fits */
        for (int64_t i = 0; i < tl_shape_elements(&v->shape); i++)
            if (fmod(get(v, i), 2 * *grid) != 0)
                return most;
        *grid *= 2;
    }
    return most;
}

/* Of an operator that adds and multiplies and does nothing else: how many terms a result has, at most; 0 for the others. */
static int64_t terms_of(const tl_node *n)
{
    static const struct {
        tl_op op;
        int of; /* as many terms as this input has elements, and one; -1: so many: */
        int64_t terms;
    } rings[] = {
        { TL_OP_ADD, -1, 2 },       { TL_OP_SUB, -1, 2 },
        { TL_OP_NEG, -1, 2 },       { TL_OP_MUL, -1, 1 },
        { TL_OP_MATMUL, 1, 0 },     { TL_OP_GEMM, 1, 0 },
        { TL_OP_CONV, 1, 0 },       { TL_OP_REDUCE_SUM, 0, 0 },
        { TL_OP_CUMULATE, 0, 0 },   { TL_OP_SCATTER_ELEMENTS, 0, 0 },
        { TL_OP_SCATTER_ND, 0, 0 },
    };
    if (n->op == TL_OP_CUMULATE && strcmp(tl_attr_string(n, "by", "sum"), "sum") != 0)
        return 0;
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        if (rings[i].op == n->op)
            return rings[i].of < 0 ? rings[i].terms
                                   : 1 + tl_shape_elements(&n->inputs[rings[i].of]->shape);
    return 0;
}

/* Whether the node's result is the same in whatever order and with whatever roundings it is computed. */
static bool is_exact(const tl_node *n)
{
    const tl_value *y = n->outputs[0];
    int64_t terms = terms_of(n);
    double grid = 1, most = 0, product = 1, out_grid, own;
    bool multiplies =
        n->op == TL_OP_MUL || n->op == TL_OP_MATMUL || n->op == TL_OP_GEMM || n->op == TL_OP_CONV;
    if (terms == 0)
        return false;
    for (int i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == NULL || !tl_dtype_is_float(n->inputs[i]->dtype))
            continue;
        double m = measure(n->inputs[i], &own);
        if (own == 0)
            return false;
        grid = multiplies && i < 2 ? grid * own : fmin(grid, own);
        product *= i < 2 ? fmax(m, 1) : 1;
        most = fmax(most, m);
    }
    if (n->op == TL_OP_GEMM) { /* factors are small powers of two */
        grid /= 4;
        product *= 4;
    }
    double largest = measure(y, &out_grid),
           sum = (double)terms * (multiplies ? product : most) + most;
    int digits = tl_dtype_infos[y->dtype].digits, wide = digits < 24 ? 24 : digits;
    return sum <= ldexp(grid, wide) && largest <= ldexp(grid, digits);
}

/* The bounds of the node's lowerings: of the direct one, and the largest. Before values have data: a value of one element is a
 * literal of the program then, in which nothing rounds any more. */
static tl_status find_bound(evaluation *e, tl_node *n, double *direct, double *largest)
{
    tl_value *y = n->outputs[0];
    *direct = *largest = 0;
    if (!tl_dtype_is_float(y->dtype) || tl_shape_elements(&y->shape) == 0)
        return TL_OK;
    tl_value **inputs = TL_NEW_ARRAY(e->arena, tl_value *, n->input_count + 1);
    tl_kernel kernel = { .name = "node",
                         .family = "node",
                         .node_count = 1,
                         .nodes = &n,
                         .inputs = inputs,
                         .output_count = 1,
                         .outputs = n->outputs };
    tl_kernel_inputs(&kernel, inputs, TL_NEW_ARRAY(e->arena, const tl_node *, n->input_count + 1));
    const tl_kernel_lowering *found;
    int count;
    TL_TRY(tl_kernel_lowerings(e->arena, &kernel, TL_NUMERICS_RELAXED, &found, &count, e->diag));
    *direct = found[0].rtol;
    for (int i = 0; i < count; i++)
        *largest = fmax(*largest, found[i].rtol);
    return TL_OK;
}

/* ---- evaluation ---- */

/* Constants that the reader or a pass computed: what is rounded in them may be rounded in another way, too. */
static void find_folded(evaluation *e, const tl_map *given)
{
    for (int i = 0; i < e->graph->value_count; i++) {
        tl_value *v = e->graph->values[i];
        double grid;
        if (v->data == NULL || !tl_dtype_is_float(v->dtype) || tl_map_find(given, v->name) != NULL)
            continue;
        measure(v, &grid);
        if (grid < 0x1p-4 && e->folded_count < MOST_FOLDED)
            e->folded[e->folded_count++] = v;
    }
}

static void nudge(evaluation *e, tl_value *v, double bound)
{
    int64_t count = tl_shape_elements(&v->shape);
    size_t size = (size_t)tl_storage_bytes(v->dtype, count);
    void *moved = tl_arena_copy(e->arena, v->data, size, 64);
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = isfinite(get(v, i)) ? fmax(most, fabs(get(v, i))) : most;
    for (int64_t i = 0; i < count; i++) {
        double x = get(v, i), a = 0.75 + 0.5 * tl_random_unit(&e->random),
               sign = tl_random_below(&e->random, 2) ? 1 : -1;
        if (isfinite(x))
            tl_number_store(v->dtype, moved, (size_t)i,
                            (tl_number){ .f = x + sign * a * bound * (fabs(x) + 0.1 * most) });
    }
    v->data = moved;
}

static graph_bounds *bounds_of(evaluation *e, const tl_graph *g)
{
    graph_bounds *b = e->bounds;
    while (b->graph != g)
        b = b->next;
    return b;
}

static tl_status find_bounds(evaluation *e, tl_graph *g)
{
    graph_bounds *b = TL_NEW(e->arena, graph_bounds);
    *b = (graph_bounds){ .graph = g, .next = e->bounds };
    b->largest = TL_NEW_ARRAY(e->arena, double, g->node_count + 1);
    b->direct = TL_NEW_ARRAY(e->arena, double, g->node_count + 1);
    e->bounds = b;
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (tl_op_bodies(n->op) == 0)
            TL_TRY(find_bound(e, n, &b->direct[i], &b->largest[i]));
        for (int k = 0; k < tl_op_bodies(n->op); k++)
            TL_TRY(find_bounds(e, n->bodies[k]));
    }
    return TL_OK;
}

static bool any_rounds(const evaluation *e)
{
    for (const graph_bounds *b = e->bounds; b != NULL; b = b->next)
        for (int i = 0; i < b->graph->node_count; i++)
            if (b->largest[i] > 0)
                return true;
    return false;
}

static tl_status evaluate_graph(evaluation *e, tl_graph *g, bool move);

static size_t bytes_of(const tl_value *v)
{
    return (size_t)tl_storage_bytes(v->dtype, tl_shape_elements(&v->shape));
}

/* What a body gave, into a value outside of it. */
static void hand_out(evaluation *e, tl_value *to, const tl_value *from)
{
    if (to != NULL)
        to->data = tl_arena_copy(e->arena, from->data, bytes_of(from), 64);
}

static int64_t whole_of(const tl_value *v, int64_t otherwise)
{
    return v != NULL ? tl_number_load(v->dtype, v->data, 0).i : otherwise;
}

/* A body of a node: its inputs from `own` on are the node's from `before` on. */
static void hand_in(tl_node *n, tl_graph *body, int before, int own)
{
    for (int i = own; i < body->input_count; i++)
        body->inputs[i]->data = n->inputs[before + i - own]->data;
}

static tl_status evaluate_loop(evaluation *e, tl_node *n, bool move)
{
    tl_graph *body = n->bodies[0];
    int states = (int)tl_attr_int(n, "states", 0), again = tl_attr_int(n, "again", 0) != 0;
    int64_t most = tl_attr_int(n, "most", 0), wanted = whole_of(n->inputs[0], most), turn = 0;
    bool goes_on = whole_of(n->inputs[1], 1) != 0;
    hand_in(n, body, 2, 1);
    for (int i = states; i < n->output_count - 1; i++) {
        size_t size = n->outputs[i] != NULL ? bytes_of(n->outputs[i]) : 0;
        if (n->outputs[i] != NULL) {
            void *stack = tl_arena_alloc(e->arena, size + 1, 64);
            memset(stack, 0, size);
            n->outputs[i]->data = stack;
        }
    }
    for (; turn < wanted && goes_on; turn++) {
        int64_t *number = TL_NEW(e->arena, int64_t);
        *number = turn;
        body->inputs[0]->data = number;
        TL_TRY(evaluate_graph(e, body, move));
        for (int i = states; i < n->output_count - 1; i++)
            if (n->outputs[i] != NULL && turn < most) {
                size_t size = bytes_of(body->outputs[again + i]);
                memcpy((char *)(uintptr_t)n->outputs[i]->data + (size_t)turn * size,
                       body->outputs[again + i]->data, size);
            }
        goes_on = !again || whole_of(body->outputs[0], 1) != 0;
        const void *next[256];
        for (int i = 0; i < states; i++)
            next[i] = tl_arena_copy(e->arena, body->outputs[again + i]->data,
                                    bytes_of(body->outputs[again + i]), 64);
        for (int i = 0; i < states; i++)
            body->inputs[1 + i]->data = next[i];
    }
    for (int i = 0; i < states; i++)
        hand_out(e, n->outputs[i], body->inputs[1 + i]);
    if (n->outputs[n->output_count - 1] != NULL)
        n->outputs[n->output_count - 1]->data = tl_arena_copy(e->arena, &turn, sizeof turn, 64);
    return TL_OK;
}

static tl_status evaluate_if(evaluation *e, tl_node *n, bool move)
{
    tl_graph *body = n->bodies[whole_of(n->inputs[0], 1) != 0 ? 0 : 1];
    hand_in(n, body, 1, 0);
    TL_TRY(evaluate_graph(e, body, move));
    for (int i = 0; i < n->output_count; i++)
        hand_out(e, n->outputs[i], body->outputs[i]);
    return TL_OK;
}

/* A node's value. A layer's mean is rounded in the place of its elements: where they are all alike that is all that is left of
 * them, so they are moved by what a sum of them may be off. */
static tl_status evaluate_node(evaluation *e, tl_graph *g, tl_node *n, bool move, const void **data)
{
    int digits = tl_dtype_infos[n->outputs[0]->dtype].digits;
    if (!move || n->op != TL_OP_LAYER_NORM || digits < 24)
        return tl_node_value(g, n, data, e->diag);
    const void *given = n->inputs[0]->data;
    nudge(e, n->inputs[0], ldexp(4, -digits));
    tl_status status = tl_node_value(g, n, data, e->diag);
    n->inputs[0]->data = given;
    return status;
}

static tl_status evaluate_graph(evaluation *e, tl_graph *g, bool move)
{
    graph_bounds *b = bounds_of(e, g);
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        tl_value *y = n->outputs[0];
        const void *data;
        if (tl_op_bodies(n->op) > 0) {
            TL_TRY(n->op == TL_OP_LOOP ? evaluate_loop(e, n, move) : evaluate_if(e, n, move));
            continue;
        }
        y->data = NULL; /* of the evaluation before */
        TL_TRY(evaluate_node(e, g, n, move, &data));
        y->data = data;
        /* Winograd's transforms round whole numbers, too; a body's other turns have other numbers */
        if (!move && g == e->graph && b->largest[i] > 0 && b->largest[i] == b->direct[i] &&
            is_exact(n))
            b->largest[i] = 0;
        if (move && b->largest[i] > 0)
            nudge(e, y, b->largest[i]);
    }
    return TL_OK;
}

static tl_status evaluate(evaluation *e, bool move)
{
    for (int i = 0; move && i < e->folded_count; i++) {
        tl_value *v = e->folded[i];
        if (e->folded_data[i] == NULL)
            e->folded_data[i] = v->data;
        v->data = e->folded_data[i];
        nudge(e, v, ldexp(FOLDED_ULP, -tl_dtype_infos[v->dtype].digits));
    }
    return evaluate_graph(e, e->graph, move);
}

static tl_status read_graph(evaluation *e, const tl_text *file, const oracle *o, tl_onnx **onnx)
{
    tl_text without = { 0 };
    TL_TRY(tl_onnx_read_memory(e->arena, file->data, file->size, NULL, o->shapes, o->input_count,
                               onnx, &e->graph, e->diag));
    tl_map *given = tl_map_create(e->arena); /* the numbers that the file itself has */
    for (int i = 0; i < e->graph->value_count; i++)
        if (e->graph->values[i]->data != NULL && e->graph->values[i]->name[0] == 'x')
            tl_map_put(given, e->graph->values[i]->name, e);
    for (int i = 0; tl_graph_optional_pass(i) != NULL; i++)
        tl_text_format(&without, "%s%s", i > 0 ? "," : "", tl_graph_optional_pass(i));
    e->graph->without = tl_arena_strdup(e->arena, tl_text_get(&without));
    tl_text_free(&without);
    TL_TRY(tl_graph_prepare(e->graph, TL_NUMERICS_STRICT, e->diag));
    find_folded(e, given);
    TL_TRY(find_bounds(e, e->graph));
    for (int i = 0; i < e->graph->input_count; i++)
        for (int k = 0; k < o->input_count; k++)
            if (strcmp(e->graph->inputs[i]->name, o->shapes[k].name) == 0)
                e->graph->inputs[i]->data = o->inputs[k].data;
    return TL_OK;
}

static double element(const tl_tensor *t, int64_t i)
{
    return tl_tensor_get(t, i);
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The first `extent` elements of an axis; what is left of the value's elements lies at the front. */
static void cut_axis(const tl_value *v, int64_t *dims, int axis, int64_t extent, char *data)
{
    size_t outer = 1, inner = tl_dtype_size(v->dtype);
    for (int a = 0; a < v->shape.rank; a++)
        *(a < axis ? &outer : &inner) *= a == axis ? 1 : (size_t)dims[a];
    for (size_t i = 1; i < outer; i++)
        memmove(data + i * (size_t)extent * inner, data + i * (size_t)dims[axis] * inner,
                (size_t)extent * inner);
    dims[axis] = extent;
}

/* The output as it is shown: where an extent is computed, so many of its elements. Copied. */
static tl_status shown(evaluation *e, int output, tl_tensor *out)
{
    const tl_graph *g = e->graph;
    const tl_value *v = g->outputs[output];
    int64_t dims[TL_MAX_RANK];
    char *data = tl_arena_copy(e->arena, v->data, bytes_of(v), 64);
    for (int a = 0; a < v->shape.rank; a++)
        dims[a] = v->shape.dims[a].extent;
    for (int i = 0; i < g->extent_count; i++)
        if (g->extents[i].output == output)
            cut_axis(v, dims, g->extents[i].axis,
                     tl_number_load(TL_I64, g->outputs[g->extents[i].count]->data, 0).i, data);
    return tl_tensor_borrow(v->dtype, v->shape.rank, dims, data, out, e->diag);
}

static tl_status collect(evaluation *e, oracle *o)
{
    tl_graph *g = e->graph;
    o->output_count = g->extent_count > 0 ? g->shown_count : g->output_count;
    o->outputs = TL_NEW_ARRAY(e->arena, oracle_output, g->output_count + 1);
    for (int i = 0; i < o->output_count; i++) {
        o->outputs[i] = (oracle_output){ .name = g->outputs[i]->name };
        TL_TRY(shown(e, i, &o->outputs[i].value));
    }
    return TL_OK;
}

static tl_status find_spread(evaluation *e, oracle *o)
{
    for (int k = 0; k < NUDGES; k++) {
        e->random = tl_random_make(77 + (uint64_t)k);
        TL_TRY(evaluate(e, true));
        for (int i = 0; i < o->output_count; i++) {
            oracle_output *y = &o->outputs[i];
            tl_tensor moved;
            TL_TRY(shown(e, i, &moved));
            int64_t count = tl_tensor_elements(&y->value);
            bool is_float = tl_dtype_is_float(moved.dtype);
            bool same_size = tl_tensor_elements(&moved) == count;
            bool *loose = (bool *)(uintptr_t)y->loose;
            if (loose == NULL)
                y->loose = loose = TL_NEW_ARRAY(e->arena, bool, count + 1);
            for (int64_t j = 0; j < count; j++) {
                double a = element(&y->value, j), b = same_size ? element(&moved, j) : NAN;
                if (is_float && isfinite(a) && isfinite(b))
                    y->allowed = fmax(y->allowed, MARGIN * fabs(a - b));
                else if (!same(a, b))
                    loose[j] = true;
            }
        }
    }
    return TL_OK;
}

static tl_status make_inputs(tl_arena *arena, const tl_text *file, int64_t extent, oracle *o,
                             tl_diag *diag)
{
    tl_onnx_signature s;
    TL_TRY(tl_onnx_read_signature_memory(arena, file->data, file->size, &s, diag));
    tl_shape_override *shapes = TL_NEW_ARRAY(arena, tl_shape_override, s.input_count + 1);
    o->inputs = TL_NEW_ARRAY(arena, tl_tensor, s.input_count + 1);
    o->shapes = shapes;
    o->input_count = s.input_count;
    for (int i = 0; i < s.input_count; i++) {
        int64_t dims[TL_MAX_RANK];
        tl_tensor filled;
        for (int a = 0; a < s.inputs[i].shape.rank; a++) {
            int64_t known = s.inputs[i].shape.dims[a].extent;
            dims[a] = known >= 0 ? known : extent;
        }
        int rank = s.inputs[i].shape.rank;
        TL_TRY(operand_fill(s.inputs[i].name, s.inputs[i].dtype, rank, dims, &filled, diag));
        o->inputs[i] = filled;
        o->inputs[i].data =
            tl_arena_copy(arena, filled.data, (size_t)(filled.size > 0 ? filled.size : 1), 64);
        o->inputs[i].owned = false;
        tl_tensor_free(&filled);
        bool may_decide = tl_tensor_elements(&o->inputs[i]) <= TL_DECIDING_ELEMENTS;
        shapes[i] = (tl_shape_override){ .name = s.inputs[i].name,
                                         .shape = tl_shape_of(rank, dims),
                                         .value = may_decide ? o->inputs[i].data : NULL,
                                         .dtype = s.inputs[i].dtype };
    }
    return TL_OK;
}

tl_status oracle_make(tl_arena *arena, const tl_text *file, int64_t extent, oracle *out,
                      tl_diag *diag)
{
    evaluation e = { .arena = arena, .diag = diag };
    tl_onnx *onnx = NULL;
    *out = (oracle){ 0 };
    TL_TRY(make_inputs(arena, file, extent, out, diag));
    tl_status status = read_graph(&e, file, out, &onnx);
    if (status == TL_OK)
        status = evaluate(&e, false);
    if (status == TL_OK)
        status = collect(&e, out);
    if (status == TL_OK && (e.folded_count > 0 || any_rounds(&e)))
        status = find_spread(&e, out);
    tl_onnx_close(onnx);
    return status;
}

tl_status oracle_compare(const oracle *o, int index, const tl_tensor *actual, tl_diag *diag)
{
    const oracle_output *y = &o->outputs[index];
    bool same_shape = actual->rank == y->value.rank && actual->dtype == y->value.dtype;
    for (int i = 0; same_shape && i < actual->rank; i++)
        same_shape = actual->shape[i] == y->value.shape[i];
    if (!same_shape) {
        tl_text is = { 0 }, was = { 0 };
        tl_tensor_describe(actual, &is);
        tl_tensor_describe(&y->value, &was);
        tl_fail(diag, TL_WRONG_RESULT, "output %s is %s instead of %s", y->name, tl_text_get(&is),
                tl_text_get(&was));
        tl_text_free(&is);
        tl_text_free(&was);
        return TL_WRONG_RESULT;
    }
    double tiny = y->allowed > 0 ? y->value.dtype == TL_F64   ? DBL_MIN
                                   : y->value.dtype == TL_F16 ? 0x1p-24
                                                              : FLT_MIN
                                 : 0;
    for (int64_t i = 0; i < tl_tensor_elements(actual); i++) {
        double a = element(actual, i), e = element(&y->value, i);
        if (same(a, e) || (y->loose != NULL && y->loose[i]) || fabs(a - e) <= y->allowed + tiny)
            continue;
        return tl_fail(
            diag, TL_WRONG_RESULT,
            "output %s, element %lld of %lld: %.9g instead of %.9g, off by %.3g, %.3g is allowed",
            y->name, (long long)i, (long long)tl_tensor_elements(actual), a, e, fabs(a - e),
            y->allowed);
    }
    return TL_OK;
}
