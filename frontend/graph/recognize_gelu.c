/* frontend/graph/recognize_gelu.c: GELU back from its pieces, in whatever order its factors were multiplied.
 *
 *     0.5 * x * (1 + erf(x / sqrt(2)))                               ->  Gelu(x)
 *     0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))        ->  Gelu(x) {approximate = "tanh"} */
#include "frontend/graph/graph_passes.h"
#include <math.h>
#include "frontend/node/graph_questions.h"

static bool all_are(const tl_product *p, const tl_value *x, int count)
{
    for (int i = 0; i < p->count; i++)
        if (p->factors[i] != x)
            return false;
    return p->count == count;
}

/* v = x / sqrt(2) */
static bool is_erf_argument(tl_value *v, const tl_value *x)
{
    tl_product p;
    return tl_product_of(v, &p) && tl_close(p.scale, sqrt(0.5), x->dtype) && all_are(&p, x, 1);
}

/* v = sqrt(2/pi) * (x + 0.044715*x^3), or with x taken out of the bracket */
static bool is_tanh_argument(tl_value *v, const tl_value *x)
{
    tl_product p, cubic;
    if (!tl_product_of(v, &p) || !tl_close(p.scale, sqrt(2 / acos(-1)), x->dtype))
        return false;
    if (p.count == 1) {
        tl_value *other = tl_other_input(tl_producer(p.factors[0], TL_OP_ADD), x);
        return other != NULL && tl_product_of(other, &cubic) &&
               tl_close(cubic.scale, 0.044715, x->dtype) && all_are(&cubic, x, 3);
    }
    for (int i = 0; p.count == 2 && i < 2; i++) {
        tl_value *other = tl_beside_uniform(tl_producer(p.factors[i], TL_OP_ADD), 1);
        if (p.factors[1 - i] == x && other != NULL && tl_product_of(other, &cubic) &&
            tl_close(cubic.scale, 0.044715, x->dtype) && all_are(&cubic, x, 2))
            return true;
    }
    return false;
}

/* t = 1 + erf(..x..) or 1 + tanh(..x..): which of the two GELUs x * t / 2 is, NULL for neither */
static const char *form_of(const tl_value *t, const tl_value *x)
{
    tl_value *inner = tl_beside_uniform(tl_producer(t, TL_OP_ADD), 1);
    tl_node *erf = tl_producer(inner, TL_OP_ERF), *tanh_node = tl_producer(inner, TL_OP_TANH);
    if (erf != NULL && is_erf_argument(erf->inputs[0], x))
        return "none";
    if (tanh_node != NULL && is_tanh_argument(tanh_node->inputs[0], x))
        return "tanh";
    return NULL;
}

static void recognize(tl_graph *g, tl_node *n)
{
    tl_product p;
    if (!tl_product_of(n->outputs[0], &p) || p.count != 2 ||
        !tl_close(p.scale, 0.5, n->outputs[0]->dtype))
        return;
    for (int i = 0; i < 2; i++) {
        tl_value *x = p.factors[1 - i];
        const char *form = form_of(p.factors[i], x);
        if (form != NULL && tl_same_shape(x, n->outputs[0])) {
            tl_node *gelu = tl_replace_node(g, n->outputs[0], TL_OP_GELU, 1, &x);
            tl_attr_set_string(g, gelu, "approximate", form);
            return;
        }
    }
}

tl_status tl_recognize_gelu(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && (g->nodes[i]->op == TL_OP_MUL || g->nodes[i]->op == TL_OP_DIV))
            recognize(g, g->nodes[i]);
    return TL_OK;
}
