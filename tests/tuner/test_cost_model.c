/* tests/tuner/test_cost_model.c: cost models learn, keep what they learned in files, refuse files that are no models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tuner/cost/cost_model.h"
#include "tuner/cost/features.h"

enum { PROGRAMS = 300, FEW_ROWS = 4, MOST_ROWS = 40 };

/* Programs of one statement to `most`; what they are worth is hidden in two columns, summed over the statements. */
typedef struct {
    tl_feature_set set;
    int first_row[PROGRAMS + 1], task[PROGRAMS];
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
        l->label[p] = (float)fmin(worth, 1);
    }
    l->set = (tl_feature_set){ PROGRAMS, TL_FEATURE_WIDTH, l->first_row, l->rows, l->task, NULL };
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
    const tl_cost_model_type *type = tl_cost_model_find(name);
    assert_non_null(type);
    if (type->create(seed, &model, &diag) != TL_OK)
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
    if (model->type->update(model, &l->set, l->label, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static void trees_learn_what_is_hidden(void **state)
{
    (void)state;
    lesson *l = make_lesson(1, 7), *other = make_lesson(2, 7), *third = make_lesson(3, 9);
    tl_cost_model *model = make_model("trees", 1);
    static float score[PROGRAMS];
    assert_false(model->type->predict(model, &l->set, score));
    for (int i = 0; i < PROGRAMS; i++)
        assert_true(score[i] == 0);
    teach(model, l);
    assert_true(model->type->predict(model, &l->set, score));
    assert_true(order(score, l->label) > 0.93);
    assert_true(model->type->predict(model, &other->set, score));
    assert_true(order(score, other->label) > 0.8);
    /* it starts anew with each lesson */
    teach(model, third);
    model->type->predict(model, &l->set, score);
    assert_true(order(score, l->label) < 0.7);
    model->type->destroy(model);
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
    model->type->predict(model, &l->set, score);
    for (int i = 0; i < PROGRAMS; i++)
        assert_true(fabsf(score[i] - l->label[i]) < 0.2F);
    assert_true(order(score, l->label) > 0.93);
    model->type->predict(model, &other->set, score);
    assert_true(order(score, other->label) > 0.8);
    model->type->destroy(model);
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
        assert_true(x->type->predict(x, &l->set, a));
        assert_true(y->type->predict(y, &l->set, b));
        assert_memory_equal(a, b, sizeof a);
        x->type->destroy(x);
        y->type->destroy(y);
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

static void a_file_keeps_it(void **state)
{
    (void)state;
    lesson *l = make_lesson(4, 7);
    char path[] = "/tmp/test_cost_model.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    tl_diag diag = { 0 };
    static float before[PROGRAMS], after[PROGRAMS];
    tl_cost_model *a = make_model("trees", 1), *b = make_model("trees", 1);
    assert_int_equal(a->type->save(a, path, &diag), TL_OK); /* one that has learned nothing, too */
    assert_int_equal(b->type->load(b, path, &diag), TL_OK);
    assert_false(b->type->predict(b, &l->set, after));
    teach(a, l);
    a->type->predict(a, &l->set, before);
    assert_int_equal(a->type->save(a, path, &diag), TL_OK);
    assert_int_equal(b->type->load(b, path, &diag), TL_OK);
    assert_true(b->type->predict(b, &l->set, after));
    assert_memory_equal(before, after, sizeof before);

    /* what is damaged, cut or another's is refused, and the model stays what it was */
    tl_cost_model *analytic = make_model("analytic", 1);
    assert_int_equal(analytic->type->load(analytic, path, &diag), TL_BAD_TEXT);
    for (size_t at = 3; at < 4000; at += 331) {
        assert_int_equal(a->type->save(a, path, &diag), TL_OK);
        spoil(path, at);
        assert_int_equal(b->type->load(b, path, &diag), TL_BAD_TEXT);
        assert_int_equal(a->type->save(a, path, &diag), TL_OK);
        cut(path, at);
        assert_int_equal(b->type->load(b, path, &diag), TL_BAD_TEXT);
    }
    cut(path, 0);
    assert_int_equal(b->type->load(b, path, &diag), TL_BAD_TEXT);
    unlink(path);
    assert_int_not_equal(b->type->load(b, path, &diag), TL_OK);
    assert_true(b->type->predict(b, &l->set, after));
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(analytic->type->save(analytic, path, &diag), TL_OK);
    assert_int_equal(analytic->type->load(analytic, path, &diag), TL_OK);
    assert_int_equal(b->type->load(b, path, &diag), TL_BAD_TEXT);
    unlink(path);
    a->type->destroy(a);
    b->type->destroy(b);
    analytic->type->destroy(analytic);
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
        int first_row[] = { 0, 1, 2 }, task[] = { 0, 0 };
        float score[2];
        for (int i = 0; i < 2; i++) {
            for (int f = 0; f < TL_FEATURE_WIDTH; f++)
                rows[i][f] = 0;
            rows[i][TL_FEATURE_parallel_balance] = 1;
            rows[i][TL_FEATURE_cycles] = tl_feature_log(10000);
        }
        rows[1][costs[c]] = tl_feature_log(20000);
        tl_feature_set set = { 2, TL_FEATURE_WIDTH, first_row, &rows[0][0], task, NULL };
        assert_true(model->type->predict(model, &set, score));
        assert_true(score[0] > score[1]);
        rows[0][TL_FEATURE_parallel_balance] = 0.25F; /* three of four cores wait */
        rows[1][costs[c]] = rows[0][costs[c]];
        model->type->predict(model, &set, score);
        assert_true(score[0] < score[1]);
    }
    model->type->destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_learn_what_is_hidden),
        cmocka_unit_test(trees_learn_of_long_programs),
        cmocka_unit_test(the_same_lesson_gives_the_same_bits),
        cmocka_unit_test(a_file_keeps_it),
        cmocka_unit_test(the_analytic_model_prefers_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
