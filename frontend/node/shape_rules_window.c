/* frontend/node/shape_rules_window.c: what slides a window: convolutions and pools, 1 to 3 spatial axes.
 *
 *     out = (in + pad_before + pad_after - ((kernel - 1)*dilation + 1)) / stride + 1 */
#include "frontend/node/shape_rules.h"
#include <inttypes.h>
#include <string.h>
#include "runtime/base/checked.h"

enum { MAX_SPATIAL = 3 };
#define LARGEST \
    ((int64_t)1 << 31) /* of every extent and attribute here: sums and products stay small */

typedef struct {
    int axes;
    int64_t in[MAX_SPATIAL], kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
    int64_t before[MAX_SPATIAL], after[MAX_SPATIAL], out[MAX_SPATIAL];
    bool ceil;
} window;

/* An attribute of `count` numbers in least..LARGEST, or all `otherwise` when it is missing. */
static tl_status read_list(tl_graph *g, const tl_node *n, const char *name, int count,
                           int64_t least, int64_t otherwise, int64_t *out, tl_diag *diag)
{
    const int64_t *given;
    int given_count = tl_attr_ints(n, name, &given);
    if (given_count > 0 && given_count != count)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s %s should have %d numbers", name,
                            tl_extents_text(g, given_count, given), count);
    for (int i = 0; i < count; i++) {
        out[i] = given_count > 0 ? given[i] : otherwise;
        if (out[i] < least || out[i] > LARGEST)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "%s: %" PRId64 " is not in %" PRId64 "..%" PRId64, name, out[i],
                                least, LARGEST);
    }
    return TL_OK;
}

/* Resolves auto_pad into pads and computes the output extents; all attributes are written back in full. */
static tl_status solve(tl_graph *g, tl_node *n, window *w, tl_diag *diag)
{
    int64_t pads[2 * MAX_SPATIAL];
    const char *mode = tl_attr_string(n, "auto_pad", "NOTSET");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
    TL_TRY(read_list(g, n, "strides", w->axes, 1, 1, w->stride, diag));
    TL_TRY(read_list(g, n, "dilations", w->axes, 1, 1, w->dilation, diag));
    TL_TRY(read_list(g, n, "pads", 2 * w->axes, 0, 0, pads, diag));
    if (!upper && !lower && strcmp(mode, "VALID") != 0 && strcmp(mode, "NOTSET") != 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "auto_pad '%.40s' is unknown", mode);

    for (int i = 0; i < w->axes; i++) {
        int64_t reach;
        if (w->in[i] > LARGEST || w->kernel[i] < 1 || w->kernel[i] > LARGEST ||
            tl_mul_overflows(w->kernel[i] - 1, w->dilation[i], &reach) || reach > LARGEST * 2)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "a window of %" PRId64 " times %" PRId64 " over %" PRId64
                                " is out of range",
                                w->kernel[i], w->dilation[i], w->in[i]);
        reach++;
        w->before[i] = pads[i];
        w->after[i] = pads[w->axes + i];
        if (strcmp(mode, "NOTSET") != 0)
            w->before[i] = w->after[i] = 0;
        if (upper || lower) {
            int64_t out = tl_ceildiv(w->in[i], w->stride[i]);
            int64_t total = tl_max64((out - 1) * w->stride[i] + reach - w->in[i], 0);
            w->before[i] = lower ? tl_ceildiv(total, 2) : total / 2;
            w->after[i] = total - w->before[i];
        }
        int64_t span = w->in[i] + w->before[i] + w->after[i] - reach;
        if (span < 0)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "a window of %" PRId64 " is larger than the padded input %s", reach,
                                tl_value_text(g, n->inputs[0]));
        w->out[i] = (w->ceil ? tl_ceildiv(span, w->stride[i]) : span / w->stride[i]) + 1;
        if (w->ceil && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->before[i])
            w->out[i]--; /* no window starts in the padding behind */
        pads[i] = w->before[i];
        pads[w->axes + i] = w->after[i];
    }
    tl_attr_set_ints(g, n, "strides", w->stride, w->axes);
    tl_attr_set_ints(g, n, "dilations", w->dilation, w->axes);
    tl_attr_set_ints(g, n, "pads", pads, 2 * w->axes);
    tl_attr_remove(n, "auto_pad");
    return TL_OK;
}

static tl_status spatial_input(tl_graph *g, const tl_node *n, window *w, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    w->axes = x->shape.rank - 2;
    if (w->axes < 1 || w->axes > MAX_SPATIAL)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "%s should have 1 to %d spatial axes",
                            tl_value_text(g, x), MAX_SPATIAL);
    for (int i = 0; i < w->axes; i++)
        w->in[i] = tl_extent(x, 2 + i);
    return tl_not_bool(g, n, diag);
}

static tl_status set_window_output(tl_graph *g, tl_node *n, const window *w, int64_t channels,
                                   tl_diag *diag)
{
    int64_t extents[2 + MAX_SPATIAL] = { tl_extent(n->inputs[0], 0), channels };
    for (int i = 0; i < w->axes; i++)
        extents[2 + i] = w->out[i];
    return tl_set_output(g, n, 0, n->inputs[0]->dtype, 2 + w->axes, extents, diag);
}

tl_status tl_shape_rule_conv(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *weight = n->inputs[1], *bias = tl_node_input(n, 2);
    int64_t group = tl_attr_int(n, "group", 1), channels;
    window w = { 0 };
    TL_TRY(spatial_input(g, n, &w, diag));
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    if (weight->shape.rank != x->shape.rank || group < 1 ||
        tl_mul_overflows(tl_extent(weight, 1), group, &channels) || channels != tl_extent(x, 1) ||
        tl_extent(weight, 0) % group != 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "weights %s in %" PRId64 " groups do not fit the input %s",
                            tl_value_text(g, weight), group, tl_value_text(g, x));
    if (bias != NULL) {
        TL_TRY(tl_same_dtype(g, n, 0, 2, diag));
        if (bias->shape.rank != 1 || tl_extent(bias, 0) != tl_extent(weight, 0))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "bias %s does not fit weights %s",
                                tl_value_text(g, bias), tl_value_text(g, weight));
    }
    for (int i = 0; i < w.axes; i++)
        w.kernel[i] = tl_extent(weight, 2 + i);
    TL_TRY(solve(g, n, &w, diag));
    tl_attr_set_int(g, n, "group", group);
    return set_window_output(g, n, &w, tl_extent(weight, 0), diag);
}

tl_status tl_shape_rule_pool(tl_graph *g, tl_node *n, tl_diag *diag)
{
    window w = { .ceil = tl_attr_int(n, "ceil_mode", 0) != 0 };
    TL_TRY(spatial_input(g, n, &w, diag));
    TL_TRY(read_list(g, n, "kernel_shape", w.axes, 1, 0, w.kernel, diag));
    TL_TRY(solve(g, n, &w, diag));
    return set_window_output(g, n, &w, tl_extent(n->inputs[0], 1), diag);
}

tl_status tl_shape_rule_global_pool(tl_graph *g, tl_node *n, tl_diag *diag)
{
    window w = { 0 };
    TL_TRY(spatial_input(g, n, &w, diag));
    for (int i = 0; i < w.axes; i++)
        w.out[i] = 1;
    return set_window_output(g, n, &w, tl_extent(n->inputs[0], 1), diag);
}
