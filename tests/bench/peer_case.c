#include "tests/bench/peer.h"

int64_t case_out(const peer_case *c, int axis)
{
    int64_t padded = c->size + c->window[axis] / 2 * 2;
    return (padded - c->window[axis]) / c->stride + 1;
}

static case_shape matmul_operand(const peer_case *c, int operand)
{
    const int64_t axes[CASE_OPERANDS][2] = {
        [CASE_A] = { c->m, c->k }, [CASE_B] = { c->k, c->n }, [CASE_RESULT] = { c->m, c->n }
    };
    const int64_t *d = axes[operand];
    if (d[0] == 0)
        return (case_shape){ 0 };
    return c->batch == 1 ? (case_shape){ 2, { d[0], d[1] } }
                         : (case_shape){ 3, { c->batch, d[0], d[1] } };
}

static case_shape image_operand(const peer_case *c, int operand)
{
    switch (operand) {
    case CASE_A:
        return (case_shape){ 4, { 1, c->channels, c->size, c->size } };
    case CASE_RESULT:
        return (case_shape){ 4, { 1, c->filters, case_out(c, 0), case_out(c, 1) } };
    case CASE_B:
        if (c->op == CASE_CONV)
            return (case_shape){
                4, { c->filters, c->channels / c->groups, c->window[0], c->window[1] }
            };
        return (case_shape){ 0 };
    default:
        return c->op == CASE_CONV ? (case_shape){ 1, { c->filters } } : (case_shape){ 0 };
    }
}

case_shape case_operand(const peer_case *c, int operand)
{
    if (c->op == CASE_MATMUL)
        return matmul_operand(c, operand);
    if (c->op == CASE_CONV || c->op == CASE_MAX_POOL)
        return image_operand(c, operand);
    if (operand == CASE_A || operand == CASE_RESULT)
        return (case_shape){ 2, { c->m, c->n } };
    return c->op == CASE_LAYER_NORM ? (case_shape){ 1, { c->n } } : (case_shape){ 0 };
}

int64_t case_elements(const peer_case *c, int operand)
{
    case_shape shape = case_operand(c, operand);
    int64_t count = shape.rank > 0;
    for (int i = 0; i < shape.rank; i++)
        count *= shape.dims[i];
    return count;
}

double case_flops(const peer_case *c)
{
    if (c->op == CASE_MATMUL)
        return 2.0 * (double)(c->batch * c->m * c->n * c->k);
    if (c->op != CASE_CONV)
        return 0;
    return 2.0 * (double)case_elements(c, CASE_RESULT) *
           (double)(c->channels / c->groups * c->window[0] * c->window[1]);
}
