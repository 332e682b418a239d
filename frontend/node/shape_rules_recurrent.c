/* frontend/node/shape_rules_recurrent.c: cells that run over time. */
#include <inttypes.h>
#include <string.h>
#include "frontend/lower/recurrent.h"
#include "frontend/node/shape_rules.h"

const tl_cell_info tl_cell_infos[TL_CELL_COUNT] = {
#define CELL(name, text, gates, activations) { text, gates, activations },
#include "frontend/lower/recurrent_cells.def"
#undef CELL
};

const tl_activation_info tl_activation_infos[TL_ACTIVATION_COUNT] = {
#define ACTIVATION(name, text, has_alpha, alpha, has_beta, beta) \
    { text, has_alpha, alpha, has_beta, beta },
#include "frontend/lower/recurrent_activations.def"
#undef ACTIVATION
};

bool tl_cell_of(const tl_node *n, tl_cell *out)
{
    const char *text = tl_attr_string(n, "cell", "");
    for (int i = 0; i < TL_CELL_COUNT; i++)
        if (strcmp(tl_cell_infos[i].text, text) == 0) {
            *out = (tl_cell)i;
            return true;
        }
    return false;
}

tl_recurrent_sizes tl_recurrent_sizes_of(const tl_node *n)
{
    const tl_shape *x = &n->inputs[TL_RECURRENT_X]->shape,
                   *weights = &n->inputs[TL_RECURRENT_WEIGHTS]->shape;
    int64_t directions = weights->dims[0].extent;
    return (tl_recurrent_sizes){ directions, x->dims[0].extent / directions, x->dims[1].extent,
                                 weights->dims[2].extent };
}

static tl_status check_attributes(const tl_node *n, tl_cell *cell, tl_diag *diag)
{
    if (!tl_cell_of(n, cell))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "there is no cell '%.40s'",
                            tl_attr_string(n, "cell", ""));
    const int64_t *activations;
    const tl_attr *alpha = tl_attr_find(n, "alpha"), *beta = tl_attr_find(n, "beta");
    int count = tl_attr_ints(n, "activations", &activations);
    if (count != tl_cell_infos[*cell].activations || alpha == NULL || alpha->count != count ||
        beta == NULL || beta->count != count)
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "a cell %s has %d activations, each with alpha and beta",
                            tl_cell_infos[*cell].text, tl_cell_infos[*cell].activations);
    for (int i = 0; i < count; i++)
        if (activations[i] < 0 || activations[i] >= TL_ACTIVATION_COUNT)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "there is no activation %" PRId64,
                                activations[i]);
    return TL_OK;
}

/* Whether v has these extents, or, when it may broadcast, 1 in the place of some and no leading ones. */
static bool fits(const tl_value *v, int rank, const int64_t *extents, bool broadcasts)
{
    if (v->shape.rank > rank || (!broadcasts && v->shape.rank != rank))
        return false;
    for (int i = 1; i <= v->shape.rank; i++) {
        int64_t extent = tl_extent(v, v->shape.rank - i);
        if (extent != extents[rank - i] && !(broadcasts && extent == 1))
            return false;
    }
    return true;
}

tl_status tl_shape_rule_recurrent(tl_graph *g, tl_node *n, tl_diag *diag)
{
    tl_cell cell;
    TL_TRY(check_attributes(n, &cell, diag));
    const tl_value *x = n->inputs[TL_RECURRENT_X], *weights = n->inputs[TL_RECURRENT_WEIGHTS];
    bool is_lstm = cell == TL_CELL_LSTM;
    int gates = tl_cell_infos[cell].gates;
    if (x->shape.rank != 3 || weights->shape.rank != 3 || tl_extent(weights, 0) < 1 ||
        tl_extent(x, 0) % tl_extent(weights, 0) != 0 ||
        tl_extent(weights, 1) != gates * tl_extent(weights, 2) ||
        tl_extent(x, 2) != tl_extent(weights, 1))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s and %s are no steps of a cell %s",
                            tl_value_text(g, x), tl_value_text(g, weights),
                            tl_cell_infos[cell].text);

    tl_recurrent_sizes z = tl_recurrent_sizes_of(n);
    const struct {
        int rank;
        int64_t extents[3];
        bool broadcasts, required, allowed;
    } rules[TL_RECURRENT_INPUTS] = {
        [TL_RECURRENT_STATE] = { 3, { z.directions, z.batch, z.hidden }, true, true, true },
        [TL_RECURRENT_MEMORY] = { 3, { z.directions, z.batch, z.hidden }, true, is_lstm, is_lstm },
        [TL_RECURRENT_LIVE] = { 2, { z.directions * z.steps, z.batch }, false, false, true },
        [TL_RECURRENT_PEEPHOLE] = { 2, { z.directions, 3 * z.hidden }, false, false, is_lstm },
        [TL_RECURRENT_BIAS] = { 2,
                                { z.directions, z.hidden },
                                false,
                                false,
                                cell == TL_CELL_GRU_LINEAR },
    };
    TL_TRY(tl_same_dtype(g, n, TL_RECURRENT_X, TL_RECURRENT_WEIGHTS, diag));
    for (int i = TL_RECURRENT_STATE; i < TL_RECURRENT_INPUTS; i++) {
        const tl_value *v = tl_node_input(n, i);
        if (v == NULL && rules[i].required)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "a cell %s needs input %d",
                                tl_cell_infos[cell].text, i);
        if (v == NULL)
            continue;
        if (!rules[i].allowed)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "a cell %s has no input %d",
                                tl_cell_infos[cell].text, i);
        if (!fits(v, rules[i].rank, rules[i].extents, rules[i].broadcasts))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s does not fit %s", tl_value_text(g, v),
                                tl_extents_text(g, rules[i].rank, rules[i].extents));
        if (i != TL_RECURRENT_LIVE)
            TL_TRY(tl_same_dtype(g, n, TL_RECURRENT_X, i, diag));
        else if (v->dtype != TL_BOOL)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s is not bool", tl_value_text(g, v));
    }
    bool both = is_lstm && tl_attr_int(n, "keeps_memory", 0) != 0;
    int64_t extents[3] = { tl_extent(x, 0) * (both ? 2 : 1), z.batch, z.hidden };
    return tl_set_output(g, n, 0, x->dtype, 3, extents, diag);
}
