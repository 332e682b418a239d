/* tests/tuner/test_cost_model.c: cost models learn, keep what they learned in files, refuse files that are no
 * models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tuner/cost/cost_model.h"
#include "tuner/cost/features.h"

enum { PROGRAMS = 300, FEW_ROWS = 4, MOST_ROWS = 40, DECISIONS = 3, DECISION = 5, TOKEN = 4 };

/* Programs of one statement to `most`; what they are worth is hidden in two columns, summed over the statements.
 * Decisions know it, too, all in all. */
typedef struct {
    tl_cost_samples set;
    int first_row[PROGRAMS + 1], row_count[PROGRAMS], task[PROGRAMS];
    int first_decision[PROGRAMS], decision_count[PROGRAMS];
    float decisions[PROGRAMS * DECISIONS * DECISION], workload[TOKEN], machine[TOKEN];
    float rows[PROGRAMS * MOST_ROWS * TL_FEATURE_WIDTH], label[PROGRAMS];
} lesson;

static lesson *make_long_lesson(uint64_t seed, int hidden, int most)
{
    tl_random random = tl_random_make(seed);
    lesson *l = calloc(1, sizeof *l);
    assert_non_null(l);
    for (int p = 0; p < PROGRAMS; p++) {
        int count = 1 + (int)tl_random_below(&random, most);
        double worth = 0;
        for (int r = 0; r < count; r++) {
            float *row = &l->rows[(l->first_row[p] + r) * TL_FEATURE_WIDTH];
            for (int c = 0; c < TL_FEATURE_WIDTH; c++)
                row[c] = (float)tl_random_unit(&random);
            worth += (row[hidden] > 0.5F ? 0.2 : 0.02) * (double)row[hidden + 24] * FEW_ROWS / most;
        }
        l->first_row[p + 1] = l->first_row[p] + count;
        for (int d = 0; d < DECISIONS; d++) {
            float *decision = &l->decisions[(p * DECISIONS + d) * DECISION];
            for (int c = 0; c < DECISION; c++)
                decision[c] = (float)tl_random_unit(&random);
            decision[2] = (float)(log(worth) * (d == 1 ? 2 : 0.5));
        }
        l->first_decision[p] = p * DECISIONS;
        l->decision_count[p] = DECISIONS;
        l->row_count[p] = count;
        l->label[p] = -(float)log(fmin(worth, 1));
    }
    l->set = (tl_cost_samples){ .shape = tl_sample_shape_of_rows(),
                                .count = PROGRAMS,
                                .task_count = 1,
                                .domain_count = 1,
                                .first_row = l->first_row,
                                .row_count = l->row_count,
                                .rows = l->rows,
                                .first_decision = l->first_decision,
                                .decision_count = l->decision_count,
                                .decisions = l->decisions,
                                .workloads = l->workload,
                                .machines = l->machine,
                                .task = l->task,
                                .label = l->label };
    l->set.shape.decision = (tl_columns){ DECISION, "decisions-of-a-test" };
    l->set.shape.workload = (tl_columns){ TOKEN, "workloads-of-a-test" };
    l->set.shape.machine = (tl_columns){ TOKEN, "machines-of-a-test" };
    return l;
}

static lesson *make_lesson(uint64_t seed, int hidden)
{
    return make_long_lesson(seed, hidden, FEW_ROWS);
}

static tl_cost_model *make_model(const char *name, uint64_t seed)
{
    tl_cost_model *model;
    tl_diag diag = { 0 };
    if (tl_cost_model_create(name, NULL, seed, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return model;
}

/* Of pairs, how many are in the right order. */
static double order(const float *score, const float *label)
{
    double right = 0, pairs = 0;
    for (int i = 0; i < PROGRAMS; i++)
        for (int j = 0; j < i; j++) {
            right += (score[i] > score[j]) == (label[i] > label[j]);
            pairs++;
        }
    return right / pairs;
}

static void teach(tl_cost_model *model, const lesson *l)
{
    tl_diag diag = { 0 };
    if (tl_cost_model_train(model, &l->set, NULL, NULL, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static void trees_learn_what_is_hidden(void **state)
{
    (void)state;
    lesson *l = make_lesson(1, 7), *other = make_lesson(2, 7), *third = make_lesson(3, 9);
    tl_cost_model *model = make_model("trees", 1);
    static float score[PROGRAMS];
    assert_false(tl_cost_model_predict(model, &l->set, score, NULL));
    for (int i = 0; i < PROGRAMS; i++)
        assert_true(score[i] == 0);
    teach(model, l);
    assert_true(tl_cost_model_predict(model, &l->set, score, NULL));
    assert_true(order(score, l->label) > 0.93);
    assert_true(tl_cost_model_predict(model, &other->set, score, NULL));
    assert_true(order(score, other->label) > 0.8);
    /* it starts anew with each lesson */
    teach(model, third);
    tl_cost_model_predict(model, &l->set, score, NULL);
    assert_true(order(score, l->label) < 0.7);
    tl_cost_model_destroy(model);
    free(l);
    free(other);
    free(third);
}

/* The rows of a long program do not all take the whole step. */
static void trees_learn_of_long_programs(void **state)
{
    (void)state;
    lesson *l = make_long_lesson(1, 7, MOST_ROWS), *other = make_long_lesson(2, 7, MOST_ROWS);
    tl_cost_model *model = make_model("trees", 1);
    static float score[PROGRAMS];
    teach(model, l);
    tl_cost_model_predict(model, &l->set, score, NULL);
    float least = INFINITY; /* the best is worth 1 */
    for (int i = 0; i < PROGRAMS; i++)
        least = fminf(least, l->label[i]);
    for (int i = 0; i < PROGRAMS; i++)
        assert_true(fabsf(expf(-score[i]) - expf(least - l->label[i])) < 0.2F);
    assert_true(order(score, l->label) > 0.93);
    tl_cost_model_predict(model, &other->set, score, NULL);
    assert_true(order(score, other->label) > 0.8);
    tl_cost_model_destroy(model);
    free(l);
    free(other);
}

static void the_same_lesson_gives_the_same_bits(void **state)
{
    (void)state;
    lesson *l = make_lesson(3, 7);
    static float a[PROGRAMS], b[PROGRAMS];
    for (int i = 0; i < tl_cost_model_count; i++) {
        tl_cost_model *x = make_model(tl_cost_models[i]->name, 5),
                      *y = make_model(tl_cost_models[i]->name, 5);
        teach(x, l);
        teach(y, l);
        teach(y, l);
        assert_true(tl_cost_model_predict(x, &l->set, a, NULL));
        assert_true(tl_cost_model_predict(y, &l->set, b, NULL));
        assert_memory_equal(a, b, sizeof a);
        tl_cost_model_destroy(x);
        tl_cost_model_destroy(y);
    }
    free(l);
}

static void spoil(const char *path, size_t at)
{
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    assert_int_equal(tl_file_read(path, &file, &diag), TL_OK);
    file.data[at % file.size] ^= 4;
    assert_int_equal(tl_file_write(path, file.data, file.size, &diag), TL_OK);
    tl_text_free(&file);
}

static void cut(const char *path, size_t size)
{
    assert_int_equal(truncate(path, (off_t)size), 0);
}

static void must_not_load(const char *path, const char *why)
{
    tl_cost_model *model = NULL;
    tl_diag diag = { 0 };
    assert_int_equal(tl_cost_model_load(path, &model, &diag), TL_BAD_TEXT);
    assert_null(model);
    if (strstr(diag.text, why) == NULL)
        fail_msg("%s", diag.text);
}

static tl_cost_model *load(const char *path)
{
    tl_cost_model *model;
    tl_diag diag = { 0 };
    if (tl_cost_model_load(path, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return model;
}

/* Every model, trained or not, says after it was kept in a file what it said before; a file that is damaged, cut or
 * another's is refused. */
static void a_file_keeps_it(void **state)
{
    (void)state;
    lesson *l = make_lesson(4, 7);
    char path[] = "/tmp/test_cost_model.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    tl_diag diag = { 0 };
    static float before[PROGRAMS], after[PROGRAMS], sure[PROGRAMS], sure_after[PROGRAMS];
    for (int i = 0; i < tl_cost_model_count; i++) {
        tl_cost_model *a = make_model(tl_cost_models[i]->name, 1), *b;
        bool known = tl_cost_model_predict(a, &l->set, before, sure);
        assert_int_equal(tl_cost_model_save(a, path, &diag), TL_OK);
        tl_cost_model_destroy(b = load(path));
        teach(a, l);
        assert_int_equal(tl_cost_model_save(a, path, &diag), TL_OK);
        b = load(path);
        known = tl_cost_model_predict(a, &l->set, before, sure);
        assert_true(known == tl_cost_model_predict(b, &l->set, after, sure_after));
        if (tl_cost_models[i] != tl_cost_model_find("random")) {
            assert_memory_equal(before, after, sizeof before);
            assert_memory_equal(sure, sure_after, sizeof sure);
        }
        struct stat whole;
        assert_int_equal(stat(path, &whole), 0);
        for (size_t at = 3; at < (size_t)whole.st_size; at += (size_t)whole.st_size / 40 + 1) {
            spoil(path, at);
            must_not_load(path, path);
            assert_int_equal(tl_cost_model_save(a, path, &diag), TL_OK);
            cut(path, at);
            must_not_load(path, path);
            assert_int_equal(tl_cost_model_save(a, path, &diag), TL_OK);
        }
        tl_cost_model_destroy(a);
        tl_cost_model_destroy(b);
    }
    cut(path, 0);
    must_not_load(path, "no sound cost model");
    assert_int_equal(tl_file_write(path, "tilth cost model 9\n", 19, &diag), TL_OK);
    must_not_load(path, "version 9");
    unlink(path);
    tl_cost_model *model;
    assert_int_not_equal(tl_cost_model_load(path, &model, &diag), TL_OK);
    free(l);
}

static void settings_are_checked(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    tl_cost_model *model;
    assert_int_equal(tl_cost_model_create("trees", "rounds=20 depth=3", 1, &model, &diag), TL_OK);
    tl_text said = { 0 };
    tl_cost_model_describe(model, &said);
    assert_non_null(strstr(tl_text_get(&said), "20 rounds of boosting, trees of depth 3"));
    tl_text_free(&said);
    tl_cost_model_destroy(model);
    static const char *const wrong[][2] = { { "trees", "leaves=4" },   { "trees", "rounds" },
                                            { "trees", "rounds=0" },   { "trees", "rounds=3x" },
                                            { "random", "rounds=20" }, { "oracle", "" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(tl_cost_model_create(wrong[i][0], wrong[i][1], 1, &model, &diag),
                         TL_BAD_ARGUMENT);
}

/* What is no number would spoil all that a model knows. */
static void no_number_is_refused(void **state)
{
    (void)state;
    lesson *l = make_lesson(5, 7);
    tl_diag diag = { 0 };
    for (int i = 0; i < tl_cost_model_count; i++) {
        tl_cost_model *model = make_model(tl_cost_models[i]->name, 1);
        float kept = l->rows[TL_FEATURE_WIDTH + 3];
        l->rows[TL_FEATURE_WIDTH + 3] = NAN;
        assert_int_equal(tl_cost_model_train(model, &l->set, NULL, NULL, &diag), TL_BAD_ARGUMENT);
        assert_int_equal(tl_cost_model_adapt(model, &l->set, NULL, &diag), TL_BAD_ARGUMENT);
        l->rows[TL_FEATURE_WIDTH + 3] = kept;
        tl_cost_model_destroy(model);
    }
    free(l);
}

/* More of anything that costs time is never faster. */
static void the_analytic_model_prefers_less(void **state)
{
    (void)state;
    static const int costs[] = { TL_FEATURE_cycles,        TL_FEATURE_lines_from_l2,
                                 TL_FEATURE_lines_from_l3, TL_FEATURE_lines_from_memory,
                                 TL_FEATURE_serial_starts, TL_FEATURE_serial_iterations };
    tl_cost_model *model = make_model("analytic", 1);
    for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
        static float rows[2][TL_FEATURE_WIDTH];
        int first_row[] = { 0, 1 }, task[] = { 0, 0 };
        float time[2];
        for (int i = 0; i < 2; i++) {
            for (int f = 0; f < TL_FEATURE_WIDTH; f++)
                rows[i][f] = 0;
            rows[i][TL_FEATURE_parallel_balance] = 1;
            rows[i][TL_FEATURE_cycles] = tl_feature_log(10000);
        }
        rows[1][costs[c]] = tl_feature_log(20000);
        const tl_cost_samples set = { .shape = tl_sample_shape_of_rows(),
                                      .count = 2,
                                      .task_count = 1,
                                      .domain_count = 1,
                                      .first_row = first_row,
                                      .row_count = (const int[]){ 1, 1 },
                                      .rows = &rows[0][0],
                                      .task = task };
        assert_true(tl_cost_model_predict(model, &set, time, NULL));
        assert_true(time[0] < time[1]);
        rows[0][TL_FEATURE_parallel_balance] = 0.25F; /* three of four cores wait */
        rows[1][costs[c]] = rows[0][costs[c]];
        tl_cost_model_predict(model, &set, time, NULL);
        assert_true(time[0] > time[1]);
    }
    tl_cost_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_learn_what_is_hidden),
        cmocka_unit_test(trees_learn_of_long_programs),
        cmocka_unit_test(the_same_lesson_gives_the_same_bits),
        cmocka_unit_test(a_file_keeps_it),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(no_number_is_refused),
        cmocka_unit_test(the_analytic_model_prefers_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
