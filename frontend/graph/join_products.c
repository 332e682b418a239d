/* frontend/graph/join_products.c: products of one value with several constants are one product with their columns side by side.
 *
 *     q = MatMul(x, u[K, A]) + b        j = MatMul(x, [u v w]) + [b 0 d]
 *     k = MatMul(x, v[K, B])        ->  q = Slice(j, columns 0..A)
 *     v = MatMul(x, w[K, C]) + d        k = Slice(j, columns A..A+B), ...
 *
 * x is read once, and cores share one product instead of waiting at the end of each. What reads the Slices reads their
 * columns of j where they lie. An elementwise operator cannot: it would be fused with its product, and is not when
 * that is joined, but has to be a kernel of its own. So a product joins only where none is waiting behind it. A bias that was
 * not there is a sum with zero, which changes the sign of a zero at most: relaxed numerics. */
#include <string.h>
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

enum { MOST_PARTS = 16 };

/* A product that may be joined: y = product + bias. */
typedef struct {
    tl_node *product;
    tl_value *weights, *bias, *y; /* bias NULL: none */
} part;

static int64_t columns_of(const part *p)
{
    return p->weights->shape.dims[1].extent;
}

/* One number a column. */
static bool is_column_vector(const tl_value *c, int64_t columns)
{
    return c != NULL && c->data != NULL && c->shape.rank > 0 &&
           c->shape.dims[c->shape.rank - 1].extent == columns &&
           tl_shape_elements(&c->shape) == columns;
}

/* Whether `n`, elementwise, would be fused with what makes `v`: the latest of its operands. */
static bool waits_for(const tl_node *n, const tl_value *v, const int *position)
{
    if (!tl_is_elementwise(n))
        return false;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *x = n->inputs[i];
        if (x != NULL && x->producer != NULL && position[x->index] > position[v->index])
            return false;
    }
    return true;
}

static bool is_awaited(const tl_value *v, const int *position)
{
    for (const tl_use *use = v->first_use; use != NULL; use = use->next)
        if (waits_for(use->node, v, position))
            return true;
    return false;
}

static bool find_part(tl_node *n, const int *position, part *p)
{
    if (n->dead || (n->op != TL_OP_MATMUL && n->op != TL_OP_GEMM))
        return false;
    *p = (part){ n, n->inputs[1], NULL, n->outputs[0] };
    if (p->weights->data == NULL || p->weights->shape.rank != 2 || n->inputs[0]->shape.rank < 2)
        return false;
    if (n->op == TL_OP_GEMM) {
        p->bias = n->input_count > 2 ? n->inputs[2] : NULL;
        if (tl_attr_float(n, "alpha", 1) != 1 || tl_attr_float(n, "beta", 1) != 1 ||
            tl_attr_int(n, "transA", 0) != 0 || tl_attr_int(n, "transB", 0) != 0 ||
            (p->bias != NULL && !is_column_vector(p->bias, columns_of(p))))
            return false;
    } else {
        tl_node *add = tl_sole_user(p->y, TL_OP_ADD);
        tl_value *bias = tl_other_input(add, p->y);
        if (is_column_vector(bias, columns_of(p)) && tl_same_shape(add->outputs[0], p->y)) {
            p->bias = bias;
            p->y = add->outputs[0];
        }
    }
    return !p->y->is_output && !is_awaited(p->y, position);
}

/* Constants [rows, columns of each part] side by side; NULL is zeros. */
static void *join(tl_graph *g, const part *parts, int count, int64_t rows, int64_t columns,
                  bool biases)
{
    size_t size = tl_dtype_size(parts[0].weights->dtype);
    char *data = tl_arena_alloc(g->arena, (size_t)(rows * columns) * size, 64), *to = data;
    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < count; i++) {
            const tl_value *from = biases ? parts[i].bias : parts[i].weights;
            size_t bytes = (size_t)columns_of(&parts[i]) * size;
            if (from != NULL)
                memcpy(to, (const char *)from->data + (size_t)r * bytes, bytes);
            to += bytes;
        }
    for (int i = 0; i < count && !biases; i++)
        tl_graph_rest(g, parts[i].weights);
    return data;
}

static void replace(tl_graph *g, const part *parts, int count)
{
    tl_node *first = parts[0].product;
    tl_value *x = first->inputs[0], *weights = parts[0].weights, *bias = NULL;
    int64_t rows = weights->shape.dims[0].extent, columns = 0, start = 0;
    for (int i = 0; i < count; i++) {
        columns += columns_of(&parts[i]);
        bias = bias != NULL ? bias : parts[i].bias;
    }
    tl_shape matrix = tl_shape_of(2, (int64_t[]){ rows, columns });
    tl_shape vector = tl_shape_of(1, &columns), shape = parts[0].y->shape;
    shape.dims[shape.rank - 1].extent = columns;
    tl_value *operands[3] = { x };
    operands[1] =
        tl_graph_constant(g, tl_arena_format(g->arena, "%s.joined", weights->name), weights->dtype,
                          &matrix, join(g, parts, count, rows, columns, false));
    if (bias != NULL)
        operands[2] =
            tl_graph_constant(g, tl_arena_format(g->arena, "%s.joined", bias->name), bias->dtype,
                              &vector, join(g, parts, count, 1, columns, true));

    tl_value *joined =
        tl_graph_value(g, tl_arena_format(g->arena, "%s.joined", first->outputs[0]->name),
                       first->outputs[0]->dtype, &shape);
    bool add = bias != NULL && first->op == TL_OP_MATMUL;
    tl_graph_node(g, first->op, first->name, bias != NULL && !add ? 3 : 2, operands, 1, &joined);
    if (add) {
        tl_value *sum = tl_graph_value(g, tl_arena_format(g->arena, "%s.joined", parts[0].y->name),
                                       joined->dtype, &shape);
        tl_graph_node(g, TL_OP_ADD, first->name, 2, (tl_value *[]){ joined, operands[2] }, 1, &sum);
        joined = sum;
    }
    for (int i = 0; i < count; i++) {
        tl_node_kill(parts[i].product);
        tl_node_kill(parts[i].y->producer);
        tl_slice_node(g, parts[i].product->name, joined, parts[i].y, shape.rank - 1, start);
        start += columns_of(&parts[i]);
    }
}

tl_status tl_join_products(tl_graph *g, tl_diag *diag)
{
    TL_TRY(tl_graph_tidy(g, diag)); /* positions below are those of a topological order */
    int count = g->node_count;
    int *position = TL_NEW_ARRAY(g->arena, int, g->value_count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < g->nodes[i]->output_count; k++)
            if (g->nodes[i]->outputs[k] != NULL)
                position[g->nodes[i]->outputs[k]->index] = i;
    for (int i = 0; i < count; i++) {
        part parts[MOST_PARTS];
        tl_node *n = g->nodes[i];
        if (n->dead || !find_part(n, position, &parts[0]))
            continue;
        int found = 1;
        const tl_use *use = n->uses[0].next;
        for (; use != NULL && found < MOST_PARTS; use = use->next)
            if (use->node->op == n->op && use->node->inputs[0] == n->inputs[0] && use->node != n &&
                find_part(use->node, position, &parts[found]) &&
                parts[found].weights->dtype == parts[0].weights->dtype)
                found++;
        if (found > 1)
            replace(g, parts, found);
    }
    return TL_OK;
}
