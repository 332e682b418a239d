/* tests/tuner/test_networks.c: cost models that are networks: their gradients, what they learn, that training can
 * be killed and goes on with the same bits, what masks reach, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tuner/cost/cost_model.h"
#include "tuner/cost/features.h"

enum {
    TASKS = 12,
    EACH = 24,
    PROGRAMS = TASKS * EACH,
    ROWS = 3,
    DECISIONS = 4,
    DECISION = 6,
    TOKEN = 5
};

static const char *const networks[] = { "mlp", "attention", "screener" };
/* Small, so that every weight can be moved. */
static const char *const small[] = { "hidden=6", "width=8 heads=2 inner=5 layers=2", "hidden=5" };
enum { NETWORKS = 3 };

/* Tasks of programs whose time is that which the analytic model expects, times what one decision and one column of the
 * statements do, which depends on the task. */
typedef struct {
    tl_cost_samples samples;
    int first_row[PROGRAMS], row_count[PROGRAMS], first_decision[PROGRAMS],
        decision_count[PROGRAMS];
    int task[PROGRAMS];
    float rows[PROGRAMS * ROWS * TL_FEATURE_WIDTH], decisions[PROGRAMS * DECISIONS * DECISION];
    float workloads[TASKS * TOKEN], machine[TOKEN], label[PROGRAMS], error[PROGRAMS];
    double standard_ns[TASKS];
} lesson;

static void draw_program(lesson *l, int p, tl_random *random)
{
    const int task = p / EACH;
    double effect = 0;
    l->task[p] = task;
    l->first_row[p] = p * ROWS;
    l->row_count[p] = 1 + p % ROWS;
    l->first_decision[p] = p * DECISIONS;
    l->decision_count[p] = DECISIONS - p % 2;
    float *rows = &l->rows[p * ROWS * TL_FEATURE_WIDTH];
    for (int i = 0; i < ROWS * TL_FEATURE_WIDTH; i++)
        rows[i] = 0;
    for (int r = 0; r < l->row_count[p]; r++) {
        float *row = rows + r * TL_FEATURE_WIDTH;
        row[TL_FEATURE_parallel_balance] = 1;
        row[TL_FEATURE_cycles] = 10 + (float)(2 * tl_random_unit(random));
        row[TL_FEATURE_body_bytes] = (float)tl_random_unit(random);
        effect += (double)row[TL_FEATURE_body_bytes] / l->row_count[p];
    }
    for (int i = 0; i < DECISIONS * DECISION; i++)
        l->decisions[p * DECISIONS * DECISION + i] = (float)tl_random_unit(random);
    const double chosen = (double)l->decisions[p * DECISIONS * DECISION + 2];
    const double cycles = tl_analytic_cycles(NULL, rows, l->row_count[p]);
    l->label[p] =
        (float)(log(cycles) - 7 + effect + chosen * (double)l->workloads[task * TOKEN + 1]);
    l->error[p] = 0.01F;
}

static lesson *make_lesson(uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    lesson *l = calloc(1, sizeof *l);
    assert_non_null(l);
    for (int i = 0; i < TASKS * TOKEN; i++)
        l->workloads[i] = (float)(2 * tl_random_unit(&random) - 1);
    for (int p = 0; p < PROGRAMS; p++)
        draw_program(l, p, &random);
    for (int t = 0; t < TASKS; t++)
        l->standard_ns[t] = 1000;
    l->samples = (tl_cost_samples){ .shape = tl_sample_shape_of_rows(),
                                    .count = PROGRAMS,
                                    .task_count = TASKS,
                                    .domain_count = 1,
                                    .first_row = l->first_row,
                                    .row_count = l->row_count,
                                    .rows = l->rows,
                                    .first_decision = l->first_decision,
                                    .decision_count = l->decision_count,
                                    .decisions = l->decisions,
                                    .task = l->task,
                                    .workloads = l->workloads,
                                    .machines = l->machine,
                                    .label = l->label,
                                    .error = l->error,
                                    .standard_ns = l->standard_ns };
    l->samples.shape.decision = (tl_columns){ DECISION, "decisions" };
    l->samples.shape.workload = (tl_columns){ TOKEN, "workloads" };
    l->samples.shape.machine = (tl_columns){ TOKEN, "machines" };
    return l;
}

static tl_cost_model *make_model(const char *name, const char *settings, uint64_t seed)
{
    tl_cost_model *model;
    tl_diag diag = { 0 };
    if (tl_cost_model_create(name, settings, seed, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return model;
}

static void teach(tl_cost_model *model, const tl_cost_samples *samples,
                  const tl_cost_samples *held_out, const tl_train_options *options)
{
    tl_diag diag = { 0 };
    if (tl_cost_model_train(model, samples, held_out, options, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

/* Of pairs of one task, how many are in the right order. */
static double order(tl_cost_model *model, const tl_cost_samples *s)
{
    static float mean[PROGRAMS], variance[PROGRAMS];
    double right = 0, pairs = 0;
    assert_true(tl_cost_model_predict(model, s, mean, variance));
    for (int i = 0; i < s->count; i++)
        for (int j = 0; j < i; j++) {
            if (s->task[i] != s->task[j])
                continue;
            right += (mean[i] > mean[j]) == (s->label[i] > s->label[j]);
            pairs++;
        }
    return right / pairs;
}

/* --- gradients -------------------------------------------------------------------------------------------------------- */

static double loss_of(tl_cost_model *model, const tl_cost_samples *s)
{
    double loss;
    tl_diag diag = { 0 };
    /* the ranking has steps where two programs change places: test_learn.c has it */
    const tl_train_options o = { .rank = -1 };
    if (tl_cost_model_gradients(model, s, &o, &loss, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return loss;
}

/* Along a random direction in each array: whether the loss goes as its gradient says. */
static void gradients_are_slopes(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    tl_random random = tl_random_make(9);
    bool wanted[TASKS] = { true, true };
    tl_arena *arena = tl_arena_create(0);
    const tl_cost_samples few = tl_cost_samples_select(arena, &l->samples, wanted);
    for (int n = 0; n < NETWORKS; n++) {
        tl_cost_model *model = make_model(networks[n], small[n], 3);
        teach(model, &l->samples, NULL, &(tl_train_options){ .epochs = 2 });
        const tl_parameter *parameters;
        const int count = tl_cost_model_parameters(model, &parameters);
        assert_true(count > 8);
        for (int i = 0; i < count; i++) /* away from zero, where norms turn quickly */
            for (int j = 0; j < parameters[i].rows * parameters[i].columns; j++)
                parameters[i].value[j] += 0.2F * (float)tl_random_normal(&random);
        for (int i = 0; i < count; i++) {
            const tl_parameter *x = &parameters[i];
            const int size = x->rows * x->columns;
            float *direction = malloc(sizeof *direction * (size_t)size);
            float *kept = malloc(sizeof *kept * (size_t)size);
            double want = 0;
            loss_of(model, &few);
            for (int j = 0; j < size; j++) {
                direction[j] = (float)tl_random_normal(&random);
                want += (double)direction[j] * (double)x->gradient[j];
            }
            const double step = 4e-4 / sqrt(size);
            memcpy(kept, x->value, sizeof *kept * (size_t)size);
            for (int j = 0; j < size; j++)
                x->value[j] = kept[j] + (float)step * direction[j];
            const double up = loss_of(model, &few);
            for (int j = 0; j < size; j++)
                x->value[j] = kept[j] - (float)step * direction[j];
            const double got = (up - loss_of(model, &few)) / (2 * step);
            memcpy(x->value, kept, sizeof *kept * (size_t)size);
            if (fabs(want - got) > 0.03 * fabs(got) + 0.02)
                fail_msg("%s, %s: %g, by differences %g", networks[n], x->name, want, got);
            free(direction);
            free(kept);
        }
        tl_cost_model_destroy(model);
    }
    tl_arena_destroy(arena);
    free(l);
}

/* --- learning --------------------------------------------------------------------------------------------------------- */

static void networks_learn_what_is_hidden(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    static const double least[] = { 0.8, 0.9, 0.6 };
    bool held_out[TASKS] = { false }, learned[TASKS];
    for (int t = 0; t < TASKS; t++)
        learned[t] = !(held_out[t] = t % 4 == 1);
    tl_arena *arena = tl_arena_create(0);
    const tl_cost_samples in = tl_cost_samples_select(arena, &l->samples, learned);
    const tl_cost_samples out = tl_cost_samples_select(arena, &l->samples, held_out);
    assert_int_equal(in.count + out.count, PROGRAMS);
    for (int n = 0; n < NETWORKS; n++) {
        tl_cost_model *model = make_model(networks[n], NULL, 1);
        float mean[1] = { 5 }, variance[1];
        tl_cost_samples one = in;
        one.count = 1;
        assert_false(tl_cost_model_predict(model, &one, mean, variance));
        assert_true(mean[0] == 0 && variance[0] == 1);
        teach(model, &in, &out, &(tl_train_options){ .epochs = 40, .batch = 48 });
        if (order(model, &in) < least[n] || order(model, &out) < least[n] - 0.15)
            fail_msg("%s: %.3f and %.3f of pairs in order", networks[n], order(model, &in),
                     order(model, &out));
        tl_text said = { 0 };
        tl_cost_model_describe(model, &said);
        assert_non_null(strstr(tl_text_get(&said), "from 216 programs, held-out loss"));
        tl_text_free(&said);
        tl_cost_model_destroy(model);
    }
    tl_arena_destroy(arena);
    free(l);
}

/* Of rows that are not ours the analytic model knows nothing: attention learns from them alone, and goes through a file. */
static void attention_reads_rows_of_others(void **state)
{
    (void)state;
    enum { WIDTH = 2 };
    lesson *l = make_lesson(1);
    static float rows[PROGRAMS * ROWS * WIDTH], kept[PROGRAMS], read[PROGRAMS];
    for (int r = 0; r < PROGRAMS * ROWS; r++) {
        rows[WIDTH * r] = l->rows[r * TL_FEATURE_WIDTH + TL_FEATURE_cycles];
        rows[WIDTH * r + 1] = l->rows[r * TL_FEATURE_WIDTH + TL_FEATURE_body_bytes];
    }
    l->samples.rows = rows;
    l->samples.shape.row = (tl_columns){ WIDTH, "0123456789abcdef0123456789abcdef" };
    tl_cost_model *model = make_model("attention", "width=32 inner=32", 1), *again;
    teach(model, &l->samples, NULL, &(tl_train_options){ .epochs = 60, .batch = 48 });
    if (order(model, &l->samples) < 0.8)
        fail_msg("%.3f of pairs in order", order(model, &l->samples));
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    assert_int_equal(tl_cost_model_pack(model, &file, &diag), TL_OK);
    assert_int_equal(tl_cost_model_unpack("it", file.data, file.size, &again, &diag), TL_OK);
    assert_true(tl_cost_model_predict(model, &l->samples, kept, NULL));
    assert_true(tl_cost_model_predict(again, &l->samples, read, NULL));
    assert_memory_equal(kept, read, sizeof kept);
    tl_text_free(&file);
    tl_cost_model_destroy(again);
    tl_cost_model_destroy(model);
    free(l);
}

/* What is new is learned; what was known is not lost. */
static void adapting_goes_on(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    tl_diag diag = { 0 };
    tl_cost_model *model = make_model("attention", "width=32 inner=32", 1);
    teach(model, &l->samples, NULL, &(tl_train_options){ .epochs = 30, .batch = 48 });
    const double before = order(model, &l->samples);
    lesson *other = make_lesson(2);
    const double strange = order(model, &other->samples);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tl_cost_model_adapt(model, &other->samples, NULL, &diag), TL_OK);
    assert_true(order(model, &other->samples) > strange);
    assert_true(order(model, &l->samples) > before - 0.05);
    /* samples of other columns are refused, and it stays what it was */
    const double now = order(model, &l->samples);
    other->samples.shape.decision = (tl_columns){ DECISION, "decisions-of-another-revision" };
    assert_int_equal(tl_cost_model_adapt(model, &other->samples, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "decisions"));
    assert_true(order(model, &l->samples) == now);
    tl_cost_model_destroy(model);
    free(l);
    free(other);
}

/* The screener comes to say of points without labels what its teacher says. */
static void a_screener_is_taught(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    tl_cost_model *judge = make_model("attention", "width=32 inner=32", 1);
    tl_cost_model *screener = make_model("screener", NULL, 1);
    teach(judge, &l->samples, NULL, &(tl_train_options){ .epochs = 30, .batch = 48 });
    static float kept[PROGRAMS];
    memcpy(kept, l->label, sizeof kept);
    for (int p = 0; p < PROGRAMS; p++)
        l->label[p] = NAN;
    tl_diag diag = { 0 };
    assert_int_equal(tl_cost_model_train(screener, &l->samples, NULL, NULL, &diag),
                     TL_BAD_ARGUMENT);
    teach(screener, &l->samples, NULL,
          &(tl_train_options){ .epochs = 60, .batch = 48, .teacher = judge });
    memcpy(l->label, kept, sizeof kept);
    if (order(screener, &l->samples) < 0.6)
        fail_msg("%.3f of pairs in order", order(screener, &l->samples));
    tl_cost_model_destroy(judge);
    tl_cost_model_destroy(screener);
    free(l);
}

/* --- interrupted ------------------------------------------------------------------------------------------------------ */

typedef struct {
    volatile sig_atomic_t stop;
    int steps_left;
} interruption;

static void count_down(void *user, const tl_train_progress *progress)
{
    interruption *i = user;
    (void)progress;
    if (i->steps_left > 0 && --i->steps_left == 0)
        i->stop = 1;
}

static void said_by(tl_cost_model *model, const lesson *l, float mean[PROGRAMS])
{
    assert_true(tl_cost_model_predict(model, &l->samples, mean, NULL));
}

static void training_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    lesson *l = make_lesson(4), *other = make_lesson(5);
    char path[] = "/tmp/test_networks.XXXXXX";
    close(mkstemp(path));
    static float whole[PROGRAMS], pieces[PROGRAMS];
    for (int n = 0; n < NETWORKS; n++) {
        tl_train_options o = { .epochs = 5, .batch = 48 };
        tl_cost_model *model = make_model(networks[n], small[n], 3);
        teach(model, &l->samples, &other->samples, &o);
        said_by(model, l, whole);
        tl_cost_model_destroy(model);
        unlink(path);
        for (int steps = 1;; steps++) { /* each time somewhere else */
            interruption i = { 0, steps };
            tl_diag diag = { 0 };
            o.checkpoint = path;
            o.stop = &i.stop;
            o.listen = count_down;
            o.user = &i;
            model = make_model(networks[n], small[n], 3);
            const tl_status status =
                tl_cost_model_train(model, &l->samples, &other->samples, &o, &diag);
            if (status == TL_OK)
                break;
            assert_int_equal(status, TL_INTERRUPTED);
            assert_int_equal(access(path, F_OK), 0);
            assert_false(tl_cost_model_predict(model, &l->samples, pieces, NULL));
            tl_cost_model_destroy(model);
        }
        said_by(model, l, pieces);
        assert_memory_equal(whole, pieces, sizeof whole);
        assert_int_not_equal(access(path, F_OK), 0);
        tl_cost_model_destroy(model);
        /* a checkpoint that is damaged, or of another lesson, is none */
        assert_int_equal(tl_file_write(path, "tilth training state 1", 22, &(tl_diag){ 0 }), TL_OK);
        model = make_model(networks[n], small[n], 3);
        o.stop = NULL;
        o.listen = NULL;
        teach(model, &l->samples, &other->samples, &o);
        said_by(model, l, pieces);
        assert_memory_equal(whole, pieces, sizeof whole);
        tl_cost_model_destroy(model);
    }
    free(l);
    free(other);
}

/* --- masks ------------------------------------------------------------------------------------------------------------ */

static void freeze_rows(void *user, const tl_parameter *parameters, int count)
{
    int *steps = user;
    (*steps)++;
    for (int i = 0; i < count; i++)
        if (strncmp(parameters[i].name, "rows", 4) == 0)
            memset(parameters[i].gradient, 0,
                   sizeof(float) * (size_t)(parameters[i].rows * parameters[i].columns));
}

static void a_mask_reaches_gradients(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    tl_diag diag = { 0 };
    tl_cost_model *model = make_model("mlp", "hidden=8", 1);
    teach(model, &l->samples, NULL, &(tl_train_options){ .epochs = 1 });
    const tl_parameter *p;
    static float first[8 * 300], last[8 * 2];
    int steps = 0, count = tl_cost_model_parameters(model, &p);
    assert_string_equal(p[0].name, "rows1.weight");
    assert_string_equal(p[count - 2].name, "output.weight");
    memcpy(first, p[0].value, sizeof(float) * (size_t)(p[0].rows * 8));
    memcpy(last, p[count - 2].value, sizeof last);
    const tl_train_options o = { .before_step = freeze_rows, .user = &steps, .decay = -1 };
    assert_int_equal(tl_cost_model_adapt(model, &l->samples, &o, &diag), TL_OK);
    assert_true(steps > 0);
    count = tl_cost_model_parameters(model, &p);
    assert_memory_equal(first, p[0].value, sizeof(float) * (size_t)(p[0].rows * 8));
    assert_memory_not_equal(last, p[count - 2].value, sizeof last);
    tl_cost_model_destroy(model);
    free(l);
}

/* --- files that somebody made up -------------------------------------------------------------------------------------- */

static void must_not_unpack(const tl_text *file, const char *why)
{
    tl_cost_model *model = NULL;
    tl_diag diag = { 0 };
    assert_int_equal(tl_cost_model_unpack("made-up", file->data, file->size, &model, &diag),
                     TL_BAD_TEXT);
    assert_null(model);
    if (strstr(diag.text, why) == NULL)
        fail_msg("%s", diag.text);
}

static void values_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    lesson *l = make_lesson(1);
    tl_diag diag = { 0 };
    for (int n = 0; n < NETWORKS; n++) {
        tl_cost_model *model = make_model(networks[n], small[n], 1);
        teach(model, &l->samples, NULL, &(tl_train_options){ .epochs = 1 });
        const tl_parameter *p;
        static const float bad[] = { NAN, INFINITY, 1e30F };
        const int count = tl_cost_model_parameters(model, &p);
        float *value = p[count - 1].value;
        const float kept = *value;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            tl_text file = { 0 };
            *value = bad[i];
            assert_int_equal(tl_cost_model_pack(model, &file, &diag), TL_OK);
            must_not_unpack(&file, "no number");
            tl_text_free(&file);
        }
        /* and a model that says what is no number is not believed */
        static float mean[PROGRAMS];
        *value = NAN;
        assert_false(tl_cost_model_predict(model, &l->samples, mean, NULL));
        assert_true(mean[3] == 0);
        *value = kept;
        assert_true(tl_cost_model_predict(model, &l->samples, mean, NULL));
        /* columns of another revision */
        tl_cost_samples other = l->samples;
        other.shape.decision.digest[0] = 'x';
        other.shape.row.digest[0] = 'x';
        assert_int_equal(tl_cost_model_fits(model, &other.shape, &diag), TL_BAD_ARGUMENT);
        assert_false(tl_cost_model_predict(model, &other, mean, NULL));
        tl_cost_model_destroy(model);
    }
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(networks_learn_what_is_hidden),
        cmocka_unit_test(attention_reads_rows_of_others),
        cmocka_unit_test(adapting_goes_on),
        cmocka_unit_test(a_screener_is_taught),
        cmocka_unit_test(training_goes_on_with_the_same_bits),
        cmocka_unit_test(a_mask_reaches_gradients),
        cmocka_unit_test(values_that_are_no_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
