/* tests/tuner/test_learn.c: products of matrices beside the plain sum, and the way back of every layer and loss
 * beside differences of what goes forwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"
#include "tuner/learn/functions.h"
#include "tuner/learn/layers.h"
#include "tuner/learn/losses.h"
#include "tuner/learn/multiply.h"
#include "tuner/learn/multiply_private.h"
#include "tuner/learn/weights.h"

static tl_random dice;

static float *draw(int count)
{
    float *x = malloc(sizeof *x * (size_t)(count + 1));
    assert_non_null(x);
    for (int i = 0; i < count; i++)
        x[i] = (float)tl_random_normal(&dice);
    return x;
}

/* --- products --------------------------------------------------------------------------------------------------------- */

/* Every element is the sum over k in its order, each addition fused where tiles do that. */
static float plain_sum(int k, tl_matrix_view a, tl_matrix_view b, int i, int j, float sum)
{
    for (int p = 0; p < k; p++) {
        const float x = a.data[(size_t)i * a.row + (size_t)p * a.column];
        const float y = b.data[(size_t)p * b.row + (size_t)j * b.column];
        sum = tl_multiply_x86() != NULL ? fmaf(x, y, sum) : x * y + sum;
    }
    return sum;
}

static void check_product(int m, int n, int k, bool a_turned, bool b_turned, bool add)
{
    float *a = draw(m * k), *b = draw(k * n), *c = draw(m * (n + 3)), *kept = draw(m * (n + 3));
    const tl_matrix_view va = a_turned ? tl_transposed(tl_rows_of(a, m)) : tl_rows_of(a, k);
    const tl_matrix_view vb = b_turned ? tl_transposed(tl_rows_of(b, k)) : tl_rows_of(b, n);
    memcpy(kept, c, sizeof *c * (size_t)(m * (n + 3)));
    tl_multiply(m, n, k, va, vb, c, (size_t)n + 3, add);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n + 3; j++) {
            const float was = kept[i * (n + 3) + j];
            const float want = j < n ? plain_sum(k, va, vb, i, j, add ? was : 0) : was;
            assert_memory_equal(&c[i * (n + 3) + j], &want, sizeof want);
        }
    free(a);
    free(b);
    free(c);
    free(kept);
}

static void products_are_sums_in_order(void **state)
{
    (void)state;
    static const int sizes[][3] = { { 1, 1, 1 },   { 12, 32, 7 },   { 13, 33, 5 },   { 6, 16, 300 },
                                    { 25, 1, 40 }, { 40, 150, 20 }, { 3, 129, 257 }, { 5, 4, 0 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 8; how++)
            check_product(sizes[i][0], sizes[i][1], sizes[i][2], how & 1, how & 2, how & 4);
}

static void exponentials_are_right(void **state)
{
    (void)state;
    float x[1003];
    for (int i = 0; i < 1003; i++)
        x[i] = -90 + 180.0F * (float)i / 1002;
    float y[1003];
    memcpy(y, x, sizeof x);
    tl_exp_floats(y, 1003);
    for (int i = 0; i < 1003; i++) {
        const double want = exp(fmin(fmax((double)x[i], -87), 88));
        assert_true(fabs((double)y[i] - want) <= 3e-7 * want);
    }
}

/* --- ways back -------------------------------------------------------------------------------------------------------- */

/* A function of one array, and the derivative of the weighted sum of its outputs that it claims. */
typedef struct {
    int count; /* of numbers that it depends on */
    float *x, *d_x;
    int out_count;
    float *out, *weight;
    void (*run)(void *user);
    void *user;
} slope_check;

static double value_of(const slope_check *c)
{
    double sum = 0;
    c->run(c->user);
    for (int i = 0; i < c->out_count; i++)
        sum += (double)c->out[i] * (double)c->weight[i];
    return sum;
}

static void check_slopes(const slope_check *c, double tolerance)
{
    for (int i = 0; i < c->count; i++) {
        const float kept = c->x[i], step = 1e-2F;
        c->x[i] = kept + step;
        const double up = value_of(c);
        c->x[i] = kept - step;
        const double down = value_of(c);
        c->x[i] = kept;
        const double want = (up - down) / (2 * (double)step), got = (double)c->d_x[i];
        if (fabs(want - got) > tolerance * (1 + fabs(want)))
            fail_msg("number %d: %g, by differences %g", i, got, want);
    }
}

enum { ROWS = 7, IN = 10, OUT = 6 };

typedef struct {
    float *x, *weight, *bias, *y, *normal, *inverse, *shares;
    tl_attention_shape shape;
} layer_run;

static void run_linear(void *user)
{
    const layer_run *l = user;
    tl_linear(ROWS, IN, OUT, l->x, l->weight, l->bias, l->y);
}

static void linear_goes_back(void **state)
{
    (void)state;
    layer_run l = {
        draw(ROWS * IN), draw(IN * OUT), draw(OUT), draw(ROWS * OUT), NULL, NULL, NULL, { 0 }
    };
    float *d_y = draw(ROWS * OUT), d_x[ROWS * IN], d_weight[IN * OUT] = { 0 }, d_bias[OUT] = { 0 };
    tl_linear_back(ROWS, IN, OUT, l.x, l.weight, d_y, d_x, false, d_weight, d_bias);
    slope_check c = { ROWS * IN, l.x, d_x, ROWS * OUT, l.y, d_y, run_linear, &l };
    check_slopes(&c, 1e-3);
    c.count = IN * OUT, c.x = l.weight, c.d_x = d_weight;
    check_slopes(&c, 1e-3);
    c.count = OUT, c.x = l.bias, c.d_x = d_bias;
    check_slopes(&c, 1e-3);
    free(l.x);
    free(l.weight);
    free(l.bias);
    free(l.y);
    free(d_y);
}

static void run_norm(void *user)
{
    const layer_run *l = user;
    tl_layer_norm(ROWS, IN, l->x, l->weight, l->bias, l->normal, l->inverse, l->y);
}

static void layer_norm_goes_back(void **state)
{
    (void)state;
    layer_run l = { draw(ROWS * IN), draw(IN),        draw(IN), draw(ROWS * IN),
                    draw(ROWS * IN), draw(ROWS * IN), NULL,     { 0 } };
    float *d_y = draw(ROWS * IN), d_x[ROWS * IN], d_gain[IN] = { 0 }, d_bias[IN] = { 0 };
    run_norm(&l);
    tl_layer_norm_back(ROWS, IN, l.normal, l.inverse, l.weight, d_y, d_x, false, d_gain, d_bias);
    slope_check c = { ROWS * IN, l.x, d_x, ROWS * IN, l.y, d_y, run_norm, &l };
    check_slopes(&c, 2e-3);
    c.count = IN, c.x = l.weight, c.d_x = d_gain;
    check_slopes(&c, 2e-3);
    c.x = l.bias, c.d_x = d_bias;
    check_slopes(&c, 2e-3);
    free(l.x);
    free(l.weight);
    free(l.bias);
    free(l.y);
    free(l.normal);
    free(l.inverse);
    free(d_y);
}

static void run_gelu(void *user)
{
    const layer_run *l = user;
    tl_gelu(ROWS * IN, l->x, l->y);
}

static void run_relu(void *user)
{
    const layer_run *l = user;
    tl_relu(ROWS * IN, l->x, l->y);
}

static void gates_go_back(void **state)
{
    (void)state;
    layer_run l = { .x = draw(ROWS * IN), .y = draw(ROWS * IN) };
    float *d_y = draw(ROWS * IN), d_x[ROWS * IN];
    tl_gelu_back(ROWS * IN, l.x, d_y, d_x);
    slope_check c = { ROWS * IN, l.x, d_x, ROWS * IN, l.y, d_y, run_gelu, &l };
    check_slopes(&c, 1e-3);
    for (int i = 0; i < ROWS * IN; i++)
        l.x[i] += l.x[i] > 0 ? 0.1F : -0.1F; /* away from the corner */
    run_relu(&l);
    tl_relu_back(ROWS * IN, l.y, d_y, d_x);
    c.run = run_relu;
    check_slopes(&c, 1e-3);
    free(l.x);
    free(l.y);
    free(d_y);
}

enum { WIDTH = 8, HEADS = 2 };
static const int segments[] = { 0, 3, 4, 4, ROWS };

static void run_attention(void *user)
{
    const layer_run *l = user;
    tl_attention(&l->shape, l->x, l->shares, l->y);
}

static void attention_goes_back(void **state)
{
    (void)state;
    layer_run l = { .x = draw(ROWS * 3 * WIDTH),
                    .y = draw(ROWS * WIDTH),
                    .shape = { 4, WIDTH, HEADS, segments } };
    assert_int_equal(tl_attention_shares(&l.shape), HEADS * (9 + 1 + 9));
    l.shares = draw(HEADS * 19);
    float *d_y = draw(ROWS * WIDTH), d_x[ROWS * 3 * WIDTH], room[9];
    run_attention(&l);
    tl_attention_back(&l.shape, l.x, l.shares, d_y, d_x, room);
    const slope_check c = { ROWS * 3 * WIDTH, l.x, d_x, ROWS * WIDTH, l.y, d_y, run_attention, &l };
    check_slopes(&c, 2e-3);
    free(l.x);
    free(l.y);
    free(l.shares);
    free(d_y);
}

static const float scales[] = { 0.5F, 2, 1, -1 };

static void run_sum(void *user)
{
    const layer_run *l = user;
    tl_segment_sum(4, segments, WIDTH, l->x, scales, l->y);
}

static void segments_go_back(void **state)
{
    (void)state;
    layer_run l = { .x = draw(ROWS * WIDTH), .y = draw(4 * WIDTH) };
    float *d_y = draw(4 * WIDTH), d_x[ROWS * WIDTH];
    tl_segment_sum_back(4, segments, WIDTH, scales, d_y, d_x);
    const slope_check c = { ROWS * WIDTH, l.x, d_x, 4 * WIDTH, l.y, d_y, run_sum, &l };
    check_slopes(&c, 1e-3);
    free(l.x);
    free(l.y);
    free(d_y);
}

/* --- losses ----------------------------------------------------------------------------------------------------------- */

enum { GROUP = 9 };
typedef struct {
    tl_loss_group group;
    bool ranks, probing;
} loss_run;

static double loss_of(const loss_run *l)
{
    double constant;
    float unused[2 * GROUP] = { 0 };
    tl_loss_group group = l->group;
    if (l->probing) {
        group.d_mean = unused;
        group.d_spread = unused + GROUP;
    }
    return l->ranks ? tl_loss_rank(&group, 1, 0.5) : tl_loss_likelihood(&group, &constant);
}

static void check_loss(loss_run *l, float *x, const float *slope)
{
    l->probing = true;
    for (int i = 0; i < GROUP; i++) {
        const float kept = x[i], step = 2e-3F;
        x[i] = kept + step;
        const double up = loss_of(l);
        x[i] = kept - step;
        const double down = loss_of(l);
        x[i] = kept;
        const double want = (up - down) / (2 * (double)step);
        if (fabs(want - (double)slope[i]) > 5e-3 * (1 + fabs(want)))
            fail_msg("%s, number %d: %g, by differences %g", l->ranks ? "rank" : "likelihood", i,
                     (double)slope[i], want);
    }
}

static void losses_go_back(void **state)
{
    (void)state;
    float *mean = draw(GROUP), *spread = draw(GROUP), *label = draw(GROUP);
    float error[GROUP], weight[GROUP];
    for (int i = 0; i < GROUP; i++) {
        error[i] = 0.05F * (float)(i % 3);
        weight[i] = 0.5F + (float)(i % 2);
    }
    label[4] = INFINITY; /* it failed */
    label[7] = 12;       /* far off: where the loss is linear */
    for (int ranks = 0; ranks < 2; ranks++) {
        float d_mean[GROUP] = { 0 }, d_spread[GROUP] = { 0 };
        loss_run l = { { GROUP, mean, spread, label, error, weight, d_mean, d_spread },
                       ranks,
                       false };
        loss_of(&l);
        check_loss(&l, mean, d_mean);
        if (!ranks)
            check_loss(&l, spread, d_spread);
    }
    /* nothing can be said of one, or of failures alone */
    float d[2] = { 0 }, failed[] = { INFINITY, INFINITY };
    const tl_loss_group none = { 2, mean, spread, failed, error, weight, d, d };
    double constant;
    assert_true(tl_loss_rank(&none, 1, 1) == 0 && tl_loss_likelihood(&none, &constant) == 0);
    assert_true(d[0] == 0 && d[1] == 0);
    free(mean);
    free(spread);
    free(label);
}

/* Adam finds the least of a bowl; what is fixed stays. */
static void adam_descends(void **state)
{
    (void)state;
    tl_weights w = { 0 };
    tl_random random = tl_random_make(1);
    const int matrix = tl_weights_add(&w, TL_WEIGHTS_MATRIX, 2, 3, "bowl%d", 1);
    const int fixed = tl_weights_add(&w, TL_WEIGHTS_FIXED, 1, 2, "centre");
    assert_true(tl_weights_allocate(&w) && tl_weights_allocate_moments(&w));
    tl_weights_draw(&w, &random);
    tl_weights_of(&w, fixed)[1] = 7;
    assert_string_equal(w.slices[matrix].name, "bowl1");
    for (int step = 1; step <= 600; step++) {
        float *x = tl_weights_of(&w, matrix), *d = tl_weights_gradient_of(&w, matrix);
        tl_weights_forget_gradients(&w);
        for (int i = 0; i < 6; i++)
            d[i] = 2 * (x[i] - (float)i);
        const double norm = tl_weights_clip(&w, 1);
        double clipped = 0;
        for (int i = 0; i < 6; i++)
            clipped += (double)d[i] * (double)d[i];
        assert_true(norm <= 1 || fabs(clipped - 1) < 1e-5);
        tl_weights_step(&w, step, 0.05, 0);
    }
    for (int i = 0; i < 6; i++)
        assert_true(fabsf(tl_weights_of(&w, matrix)[i] - (float)i) < 0.05F);
    assert_true(tl_weights_of(&w, fixed)[1] == 7);
    assert_true(tl_weights_are_numbers(&w));
    tl_weights_of(&w, matrix)[3] = NAN;
    assert_false(tl_weights_are_numbers(&w));
    tl_weights_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums_in_order),
        cmocka_unit_test(exponentials_are_right),
        cmocka_unit_test(linear_goes_back),
        cmocka_unit_test(layer_norm_goes_back),
        cmocka_unit_test(gates_go_back),
        cmocka_unit_test(attention_goes_back),
        cmocka_unit_test(segments_go_back),
        cmocka_unit_test(losses_go_back),
        cmocka_unit_test(adam_descends),
    };
    dice = tl_random_make(7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
