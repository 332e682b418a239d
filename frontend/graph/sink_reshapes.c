/* frontend/graph/sink_reshapes.c: a product of rows that a Reshape has merged is one of the value before it.
 *
 *     Gemm(Reshape(x[B, S, K] -> [M, K]), w, c)  ->  Reshape(Add(MatMul(x, w), c) -> [M, N])
 *     Gelu(Reshape(x))                           ->  Reshape(Gelu(x))
 *
 * Products are rows by rows, whatever axes the rows have. Models that were written for 2-D products reshape before and
 * behind each of them: behind, the two meet and go. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

/* What v, with its rows merged, was reshaped from; NULL when it was not. */
static tl_value *unmerged(const tl_value *v)
{
    tl_value *from = NULL;
    int64_t width = v->shape.rank > 0 ? v->shape.dims[v->shape.rank - 1].extent : 0;
    for (tl_node *n = tl_producer(v, TL_OP_RESHAPE); n != NULL;) {
        tl_value *x = n->inputs[0];
        if (x->shape.rank > 2 && x->shape.dims[x->shape.rank - 1].extent == width)
            from = x;
        n = tl_producer(x, TL_OP_RESHAPE);
    }
    return from;
}

static void reshape_to(tl_graph *g, tl_value *from, tl_value *y)
{
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < y->shape.rank; i++)
        extents[i] = y->shape.dims[i].extent;
    tl_node *reshape = tl_replace_node(g, y, TL_OP_RESHAPE, 1, &from);
    tl_attr_set_ints(g, reshape, "shape", extents, y->shape.rank);
}

/* A new value of x's leading axes and `width` columns. */
static tl_value *rows_of(tl_graph *g, const tl_node *n, const char *what, const tl_value *x,
                         int64_t width)
{
    tl_shape shape = x->shape;
    shape.dims[shape.rank - 1].extent = width;
    return tl_graph_value(g, tl_arena_format(g->arena, "%s.%s", n->outputs[0]->name, what),
                          n->outputs[0]->dtype, &shape);
}

static bool is_plain_product(const tl_node *n)
{
    if (n->op != TL_OP_GEMM)
        return n->op == TL_OP_MATMUL && n->inputs[0]->shape.rank == 2 &&
               n->inputs[1]->shape.rank == 2;
    const tl_value *c = n->input_count > 2 ? n->inputs[2] : NULL;
    return tl_attr_float(n, "alpha", 1) == 1 && tl_attr_float(n, "beta", 1) == 1 &&
           tl_attr_int(n, "transA", 0) == 0 && tl_attr_int(n, "transB", 0) == 0 &&
           (c == NULL || c->shape.rank < 2 || c->shape.dims[0].extent == 1);
}

static void sink_below_product(tl_graph *g, tl_node *n)
{
    tl_value *x = unmerged(n->inputs[0]), *y = n->outputs[0];
    tl_value *c = n->input_count > 2 ? n->inputs[2] : NULL;
    if (x == NULL || y->is_output)
        return;
    int64_t width = y->shape.dims[1].extent;
    tl_value *rows = rows_of(g, n, "rows", x, width);
    tl_graph_node(g, TL_OP_MATMUL, n->name, 2, (tl_value *[]){ x, n->inputs[1] }, 1, &rows);
    if (c != NULL) {
        tl_value *product = rows;
        rows = rows_of(g, n, "sum", x, width);
        tl_graph_node(g, TL_OP_ADD, n->name, 2, (tl_value *[]){ product, c }, 1, &rows);
    }
    reshape_to(g, rows, y);
}

static void sink_below_unary(tl_graph *g, tl_node *n)
{
    tl_value *x = unmerged(n->inputs[0]), *y = n->outputs[0];
    if (x == NULL || y->is_output)
        return;
    tl_value *rows = rows_of(g, n, "rows", x, y->shape.dims[y->shape.rank - 1].extent);
    tl_node *moved = tl_graph_node(g, n->op, n->name, 1, &x, 1, &rows);
    moved->attrs = n->attrs;
    moved->attr_count = n->attr_count;
    reshape_to(g, rows, y);
}

tl_status tl_sink_reshapes(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count; /* in topological order: a Reshape sinks through all that follow */
    for (int i = 0; i < count; i++) {
        tl_node *n = g->nodes[i];
        if (n->dead)
            continue;
        if (is_plain_product(n))
            sink_below_product(g, n);
        else if (n->input_count == 1 && tl_is_elementwise(n))
            sink_below_unary(g, n);
    }
    return TL_OK;
}
