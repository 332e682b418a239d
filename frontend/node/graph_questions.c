/* frontend/node/graph_questions.c: small questions that rewrites ask of a graph. */
#include "frontend/node/graph_questions.h"
#include <math.h>

tl_node *tl_producer(const tl_value *v, tl_op op)
{
    return v != NULL && v->producer != NULL && !v->producer->dead && v->producer->op == op
               ? v->producer
               : NULL;
}

tl_node *tl_sole_producer(const tl_value *v, tl_op op)
{
    tl_node *n = tl_producer(v, op);
    return n != NULL && tl_graph_users(v) == 1 ? n : NULL;
}

bool tl_uniform(const tl_value *v, double *out)
{
    if (v == NULL || v->data == NULL || !tl_dtype_is_float(v->dtype))
        return false;
    int64_t count = tl_shape_elements(&v->shape);
    if (count < 1 || count > 65536)
        return false;
    *out = tl_number_load(v->dtype, v->data, 0).f;
    for (int64_t i = 1; i < count; i++)
        if (tl_number_load(v->dtype, v->data, (size_t)i).f != *out)
            return false;
    return true;
}

bool tl_close(double a, double b, tl_dtype dtype)
{
    return fabs(a - b) <= (dtype == TL_F64 ? 1e-14 : 1e-6) * fabs(b);
}

bool tl_is_uniform(const tl_value *v, double number)
{
    double value;
    return tl_uniform(v, &value) && tl_close(value, number, v->dtype);
}

tl_value *tl_beside_uniform(const tl_node *n, double number)
{
    if (n == NULL || n->input_count != 2)
        return NULL;
    if (tl_is_uniform(n->inputs[1], number))
        return n->inputs[0];
    return tl_is_uniform(n->inputs[0], number) ? n->inputs[1] : NULL;
}

tl_value *tl_other_input(const tl_node *n, const tl_value *v)
{
    if (n == NULL || n->input_count != 2)
        return NULL;
    return n->inputs[0] == v ? n->inputs[1] : n->inputs[1] == v ? n->inputs[0] : NULL;
}

bool tl_attr_all_are(const tl_node *n, const char *name, int64_t value)
{
    const int64_t *values;
    const int count = tl_attr_ints(n, name, &values);
    for (int i = 0; i < count; i++)
        if (values[i] != value)
            return false;
    return true;
}

bool tl_same_shape(const tl_value *a, const tl_value *b)
{
    return tl_shape_equal(&a->shape, &b->shape);
}

tl_node *tl_slice_node(tl_graph *g, const char *name, tl_value *x, tl_value *y, int axis,
                       int64_t start)
{
    int64_t starts[TL_MAX_RANK] = { 0 }, ends[TL_MAX_RANK], axes[TL_MAX_RANK], steps[TL_MAX_RANK];
    int rank = y->shape.rank;
    starts[axis] = start;
    for (int i = 0; i < rank; i++) {
        ends[i] = starts[i] + y->shape.dims[i].extent;
        axes[i] = i;
        steps[i] = 1;
    }
    tl_node *slice = tl_graph_node(g, TL_OP_SLICE, name, 1, &x, 1, &y);
    tl_attr_set_ints(g, slice, "starts", starts, rank);
    tl_attr_set_ints(g, slice, "ends", ends, rank);
    tl_attr_set_ints(g, slice, "axes", axes, rank);
    tl_attr_set_ints(g, slice, "steps", steps, rank);
    return slice;
}

tl_node *tl_replace_node(tl_graph *g, tl_value *y, tl_op op, int input_count,
                         tl_value *const *inputs)
{
    tl_node *old = y->producer;
    tl_node_kill(old);
    return tl_graph_node(g, op, old->name, input_count, inputs, 1, &y);
}

tl_node *tl_sole_user(const tl_value *v, tl_op op)
{
    tl_node *n = !v->is_output && v->use_count == 1 ? v->first_use->node : NULL;
    return n != NULL && n->op == op ? n : NULL;
}

static bool add_factor(tl_product *p, tl_value *v, int times)
{
    for (int i = 0; i < times; i++) {
        if (p->count == TL_MAX_FACTORS)
            return false;
        p->factors[p->count++] = v;
    }
    return true;
}

static bool collect(tl_value *v, bool is_root, int depth, tl_product *p)
{
    double number;
    const tl_node *n = v->producer;
    if (tl_uniform(v, &number)) {
        p->scale *= number;
        return true;
    }
    if (n == NULL || depth > 8 || (!is_root && tl_graph_users(v) != 1))
        return add_factor(p, v, 1);
    if (n->op == TL_OP_MUL)
        return collect(n->inputs[0], false, depth + 1, p) &&
               collect(n->inputs[1], false, depth + 1, p);
    if (n->op == TL_OP_DIV && tl_uniform(n->inputs[1], &number) && number != 0) {
        p->scale /= number;
        return collect(n->inputs[0], false, depth + 1, p);
    }
    if (n->op == TL_OP_POW && tl_uniform(n->inputs[1], &number) && (number == 2 || number == 3))
        return add_factor(p, n->inputs[0], (int)number);
    return add_factor(p, v, 1);
}

bool tl_product_of(tl_value *v, tl_product *out)
{
    *out = (tl_product){ .scale = 1 };
    return collect(v, true, 0, out);
}
