/* tests/tuner/test_corpus.c: data sets as samples: rows, tokens, threads, what is kept; and splits of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ir/program/machine.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/cost/features.h"
#include "tuner/cost/tenset.h"
#include "tests/tuner/synthetic_data.h"
#include "tuner/judge/split.h"
#include "tuner/search/tokens.h"

enum { WORKLOADS = 12, POINTS = 20 };

typedef struct {
    tl_arena *arena;
    char folder[64];
    tl_dataset *set;
    int records;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){ .arena = tl_arena_create(0), .folder = "/tmp/tilth-corpus-XXXXXX" };
    if (f.arena == NULL || mkdtemp(f.folder) == NULL)
        return -1;
    f.set = tl_dataset_create(f.arena);
    for (int i = 0; i < WORKLOADS; i++)
        f.records +=
            add_synthetic(f.arena, f.set, synthetic_task(f.arena, i),
                          &(synthetic_law){ "x86-64-v4", "", POINTS, 1, 0.1, (uint64_t)i });
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tl_text command = { 0 };
    tl_arena_destroy(f->arena);
    tl_text_format(&command, "rm -rf %s", f->folder);
    int code = system(tl_text_get(&command));
    tl_text_free(&command);
    return code;
}

static tl_corpus *open_corpus(const tl_dataset *set, int threads, const char *folder)
{
    tl_corpus *corpus;
    tl_diag diag = { 0 };
    const tl_corpus_options options = {
        .threads = threads, .folder = folder, .build = "test", .keep_after_s = -1
    };
    need(tl_corpus_open(set, &options, &corpus, &diag), &diag);
    return corpus;
}

/* All numbers of a corpus. */
static void digest_of(const tl_corpus *c, char out[33])
{
    tl_digest d;
    tl_digest_start(&d);
    for (int k = 0; k < TL_ROWS_COUNT; k++) {
        const tl_cost_samples *s = &c->samples[k];
        for (int p = 0; p < s->count; p++) {
            size_t width = (size_t)s->shape.row.width;
            tl_digest_add(&d, s->rows + (size_t)s->first_row[p] * width,
                          (size_t)s->row_count[p] * width * sizeof(float));
            tl_digest_add(&d, &s->label[p], sizeof(float));
            tl_digest_add(&d, &s->error[p], sizeof(float));
            width = (size_t)s->shape.decision.width;
            if (s->decisions != NULL)
                tl_digest_add(&d, s->decisions + (size_t)s->first_decision[p] * width,
                              (size_t)s->decision_count[p] * width * sizeof(float));
        }
    }
    tl_digest_text(&d, out);
}

static void a_corpus_has_what_is_computed_of_each_program(void **state)
{
    fixture *f = *state;
    tl_corpus *c = open_corpus(f->set, 1, NULL);
    const tl_cost_samples *ours = &c->samples[TL_ROWS_OURS], *tenset = &c->samples[TL_ROWS_TENSET];
    assert_int_equal(c->count, f->records);
    assert_int_equal(c->lost, 0);
    assert_int_equal(c->task_count, WORKLOADS);
    assert_int_equal(c->domain_count, 1);
    assert_int_equal(ours->shape.row.width, TL_FEATURE_WIDTH);
    assert_int_equal(tenset->shape.row.width, TL_TENSET_WIDTH + TL_TENSET_TAGS);
    int failed = 0;
    for (int p = 0; p < c->count; p++) {
        const tl_data_series *s = c->tasks[ours->task[p]].series;
        const tl_data_record *r = &s->records[p - c->tasks[ours->task[p]].first];
        tl_target target;
        tl_space *space;
        tl_variant v;
        const float *rows;
        tl_diag diag = { 0 };
        need(tl_target_of_fingerprint(s->target, &target, &diag), &diag);
        target.cores = s->cores;
        need(tl_space_create(f->arena, tl_dataset_task(s->task, f->arena), &target, 1, r->kind,
                             &space, &diag),
             &diag);
        need(tl_dataset_build(space, f->arena, r, &v, &diag), &diag);
        assert_int_equal(tl_features_of(f->arena, v.program, &target, &rows), ours->row_count[p]);
        assert_memory_equal(rows, ours->rows + (size_t)ours->first_row[p] * TL_FEATURE_WIDTH,
                            sizeof *rows * TL_FEATURE_WIDTH * (size_t)ours->row_count[p]);
        assert_int_equal(ours->decision_count[p], v.point.count + 1);
        assert_int_equal(tl_tenset_features_of(f->arena, v.program, &rows), tenset->row_count[p]);
        assert_memory_equal(rows,
                            tenset->rows +
                                (size_t)tenset->first_row[p] * (TL_TENSET_WIDTH + TL_TENSET_TAGS),
                            sizeof *rows * TL_TENSET_WIDTH);
        failed += isinf(ours->label[p]) != 0;
        if (r->status == TL_RECORD_OK)
            assert_true(fabs((double)ours->label[p] - log(r->ratio)) < 1e-6);
    }
    assert_in_range(failed, 1, WORKLOADS);
    for (int t = 0; t < c->task_count; t++)
        for (int i = 0; i < ours->shape.workload.width; i++)
            assert_true(isfinite(ours->workloads[t * ours->shape.workload.width + i]));
    tl_corpus_close(c);
}

static void threads_change_nothing(void **state)
{
    fixture *f = *state;
    tl_corpus *one = open_corpus(f->set, 1, NULL), *four = open_corpus(f->set, 4, NULL);
    char a[33], b[33];
    digest_of(one, a);
    digest_of(four, b);
    assert_string_equal(a, b);
    tl_corpus_close(one);
    tl_corpus_close(four);
}

/* The one file in the folder. */
static void find_kept(const fixture *f, tl_text *out)
{
    DIR *dir = opendir(f->folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            tl_text_format(out, "%s/%s", f->folder, e->d_name);
    closedir(dir);
    assert_true(out->size > 0);
}

/* Rows come back from the cache; a file that is damaged anywhere does not. */
static void rows_are_kept(void **state)
{
    fixture *f = *state;
    tl_text path = { 0 }, bytes = { 0 };
    char first[33], again[33];
    tl_corpus *c = open_corpus(f->set, 2, f->folder);
    assert_false(c->was_kept);
    digest_of(c, first);
    tl_corpus_close(c);
    c = open_corpus(f->set, 2, f->folder);
    assert_true(c->was_kept);
    digest_of(c, again);
    assert_string_equal(first, again);
    tl_corpus_close(c);
    find_kept(f, &path);
    need(tl_file_read(tl_text_get(&path), &bytes, NULL), &(tl_diag){ { 0 } });
    tl_random random = tl_random_make(3);
    for (int i = 0; i < 12; i++) {
        tl_text damaged = { 0 };
        size_t size =
            i % 3 == 0 ? (size_t)tl_random_below(&random, (int64_t)bytes.size) : bytes.size;
        tl_text_add_bytes(&damaged, bytes.data, size);
        if (i % 3 != 0) /* beyond the padding between sections, which nobody reads */
            damaged.data[i % 3 == 1 ? tl_random_below(&random, 300)
                                    : (int64_t)size - 1 - tl_random_below(&random, 4000)] ^= 1;
        need(tl_file_write(tl_text_get(&path), damaged.data, damaged.size, NULL),
             &(tl_diag){ { 0 } });
        c = open_corpus(f->set, 2, f->folder);
        digest_of(c, again);
        assert_string_equal(first, again);
        assert_false(c->was_kept);
        tl_corpus_close(c);
        tl_text_free(&damaged);
    }
    /* other records have another key */
    tl_data_series *s = tl_map_at(f->set->series, 0).value;
    s->records[0].ratio *= 2;
    c = open_corpus(f->set, 2, f->folder);
    assert_false(c->was_kept);
    tl_corpus_close(c);
    tl_text_free(&path);
    tl_text_free(&bytes);
}

/* A record of a space that has changed is counted, not learned from. */
static void what_comes_to_another_program_is_lost(void **state)
{
    fixture *f = *state;
    tl_data_series *s = tl_map_at(f->set->series, 3).value;
    s->records[2].program ^= 1;
    tl_corpus *c = open_corpus(f->set, 2, NULL);
    assert_int_equal(c->lost, 1);
    assert_int_equal(c->count, f->records - 1);
    assert_non_null(strstr(c->why, "the rules of its space have changed"));
    tl_corpus_close(c);
}

/* Numbers that no measurement gives do not become labels that no training survives. */
static void labels_are_bounded(void **state)
{
    fixture *f = *state;
    tl_data_series *s = tl_map_at(f->set->series, 0).value;
    s->records[0].ratio = 1e300;
    s->records[1].ratio = 1e-300;
    s->records[2].ratio_error = NAN;
    s->records[3].ratio_error = INFINITY;
    tl_corpus *c = open_corpus(f->set, 1, NULL);
    for (int p = 0; p < 4; p++) {
        assert_true(fabsf(c->samples[0].label[p]) < 17);
        assert_true(c->samples[0].error[p] >= 0 && c->samples[0].error[p] <= 4);
    }
    tl_corpus_close(c);
}

/* Points that nobody measured come behind those of their task that were, without labels; what was measured stays as it is, on
 * however many threads. */
static void points_that_nobody_measured_have_no_label(void **state)
{
    enum { MORE = 6 };
    fixture *f = *state;
    tl_corpus *plain = open_corpus(f->set, 1, NULL), *with[2];
    char digests[2][33];
    int met = 0, unmeasured = 0;
    for (int i = 0; i < 2; i++) {
        tl_diag diag = { 0 };
        const tl_corpus_options options = { .threads = 1 + i, .unmeasured = MORE };
        need(tl_corpus_open(f->set, &options, &with[i], &diag), &diag);
        digest_of(with[i], digests[i]);
    }
    assert_string_equal(digests[0], digests[1]);
    const tl_cost_samples *ours = &with[0]->samples[TL_ROWS_OURS];
    for (int p = 0; p < with[0]->count; p++) {
        const bool is_measured = !isnan(ours->label[p]);
        unmeasured += !is_measured;
        assert_true(ours->row_count[p] > 0 && ours->decision_count[p] > 0);
        if (is_measured)
            assert_int_equal(with[0]->program[p], plain->program[met++]);
    }
    assert_int_equal(met, plain->count);
    assert_in_range(unmeasured, WORKLOADS * MORE / 2, WORKLOADS * MORE);
    tl_corpus_close(plain);
    for (int i = 0; i < 2; i++)
        tl_corpus_close(with[i]);
}

static void nothing_to_learn_from_is_refused(void **state)
{
    fixture *f = *state;
    tl_corpus *c;
    tl_diag diag = { 0 };
    const tl_corpus_options options = { .threads = 1 };
    assert_int_equal(tl_corpus_open(tl_dataset_create(f->arena), &options, &c, &diag), TL_BAD_TEXT);
    assert_non_null(strstr(diag.text, "no records to learn from"));
    for (size_t i = 0; i < tl_map_count(f->set->series); i++) {
        tl_data_series *s = tl_map_at(f->set->series, i).value;
        for (int k = 0; k < s->count; k++)
            s->records[k].program ^= 1;
    }
    assert_int_equal(tl_corpus_open(f->set, &options, &c, &diag), TL_BAD_TEXT);
    assert_non_null(strstr(diag.text, "can be built again"));
    volatile sig_atomic_t stop = 1;
    const tl_corpus_options stopped = { .threads = 2, .stop = &stop };
    assert_int_equal(tl_corpus_open(f->set, &stopped, &c, &diag), TL_INTERRUPTED);
}

/* --- splits ------------------------------------------------------------------------------------------------------- */

static tl_status split(const tl_corpus *c, tl_split_options o, uint8_t *side, tl_split_sizes *sizes,
                       tl_diag *diag)
{
    o.test = o.test > 0 ? o.test : 0.3;
    o.check = 0.2;
    *diag = (tl_diag){ { 0 } };
    return tl_split_make(c, &o, side, sizes, diag);
}

static void sides_share_no_workload(void **state)
{
    fixture *f = *state;
    tl_diag diag;
    tl_split_sizes sizes;
    /* the same workloads on another machine */
    tl_machine machine = tl_machine_built_in;
    tl_text profile = { 0 };
    strcpy(machine.cpu, "Another machine");
    machine.cores = 2;
    tl_machine_seal(&machine, NULL);
    tl_machine_print(&machine, &profile);
    for (int i = 0; i < WORKLOADS; i++)
        add_synthetic(f->arena, f->set, synthetic_task(f->arena, i),
                      &(synthetic_law){ "x86-64-v3",
                                        tl_arena_strdup(f->arena, tl_text_get(&profile)), POINTS, 1,
                                        0.1, (uint64_t)i });
    tl_text_free(&profile);
    tl_corpus *c = open_corpus(f->set, 2, NULL);
    assert_int_equal(c->task_count, 2 * WORKLOADS);
    assert_int_equal(c->workload_count, WORKLOADS);
    assert_int_equal(c->domain_count, 2);
    uint8_t *side = calloc((size_t)c->count, 1);
    int judged = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        tl_side of[WORKLOADS];
        need(split(c, (tl_split_options){ .kind = TL_SPLIT_TASK, .seed = seed }, side, &sizes,
                   &diag),
             &diag);
        for (int p = 0; p < c->count; p++) {
            int w = c->tasks[c->samples[0].task[p]].workload;
            if (c->tasks[c->samples[0].task[p]].first == p && w == c->samples[0].task[p])
                of[w] = (tl_side)side[p];
            assert_int_equal(side[p], of[w]);
        }
        judged += sizes.tasks[TL_SIDE_TEST];
    }
    assert_in_range(judged, 20 * WORKLOADS * 2 / 10, 20 * WORKLOADS * 2 / 2);
    /* by machine: all of one, none of the other */
    need(split(c, (tl_split_options){ .kind = TL_SPLIT_MACHINE, .machine = "Another" }, side,
               &sizes, &diag),
         &diag);
    for (int p = 0; p < c->count; p++)
        assert_true((side[p] == TL_SIDE_TEST) ==
                    (strstr(c->domains[c->samples[0].domain[c->samples[0].task[p]]].name,
                            "Another") != NULL));
    /* within tasks: of each some */
    need(split(c, (tl_split_options){ .kind = TL_SPLIT_WITHIN_TASK, .seed = 3 }, side, &sizes,
               &diag),
         &diag);
    assert_true(sizes.tasks[TL_SIDE_TEST] > WORKLOADS && sizes.tasks[TL_SIDE_TRAIN] > WORKLOADS);
    /* of one network */
    const char *const workloads[] = { c->tasks[4].series->task->workload, "other" };
    const double runs[] = { 1, 2 };
    const tl_network network = { "net", 2, workloads, runs };
    need(split(c,
               (tl_split_options){
                   .kind = TL_SPLIT_MODEL, .held_out = &network, .held_out_count = 1 },
               side, &sizes, &diag),
         &diag);
    for (int p = 0; p < c->count; p++)
        assert_true((side[p] == TL_SIDE_TEST) == (c->tasks[c->samples[0].task[p]].workload == 4));
    free(side);
    tl_corpus_close(c);
}

static void splits_that_say_nothing_are_refused(void **state)
{
    fixture *f = *state;
    tl_diag diag;
    tl_split_sizes sizes;
    tl_corpus *c = open_corpus(f->set, 2, NULL);
    uint8_t *side = calloc((size_t)c->count, 1);
    assert_int_equal(split(c, (tl_split_options){ .kind = TL_SPLIT_MACHINE }, side, &sizes, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "needs records of two machines"));
    assert_int_equal(split(c, (tl_split_options){ .kind = TL_SPLIT_MODEL }, side, &sizes, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "--hold-out"));
    const char *const workloads[] = { "other" };
    const double runs[] = { 1 };
    const tl_network network = { "net", 1, workloads, runs };
    assert_int_equal(split(c,
                           (tl_split_options){
                               .kind = TL_SPLIT_MODEL, .held_out = &network, .held_out_count = 1 },
                           side, &sizes, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "leaves nothing to be judged on"));
    assert_int_equal(split(c, (tl_split_options){ .kind = TL_SPLIT_TASK, .test = 0.999999 }, side,
                           &sizes, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "leaves nothing to learn from"));
    free(side);
    tl_corpus_close(c);
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static float token_value(tl_cost_token kind, const float *token, const char *column)
{
    char name[48];
    for (int i = 0; i < tl_cost_token_width(kind); i++) {
        tl_cost_token_name(kind, i, name);
        if (strcmp(name, column) == 0)
            return token[i];
    }
    fail_msg("there is no column %s", column);
    return 0;
}

static void tokens_say_what_was_decided(void **state)
{
    fixture *f = *state;
    tl_target target;
    tl_space *space;
    tl_variant v;
    tl_diag diag = { 0 };
    const float *decisions;
    const tl_data_series *s = tl_map_at(f->set->series, 2).value;
    const int width = tl_cost_token_width(TL_COST_TOKEN_DECISION);
    const tl_wish wishes[] = { { "gemm.sketch", 3 }, { "gemm.k.3", 6 } };
    need(tl_target_named("x86-64-v4", &target, &diag), &diag);
    target.cores = 2;
    need(tl_space_create(f->arena, tl_dataset_task(s->task, f->arena), &target, 1, TL_SPACE_PLAIN,
                         &space, &diag),
         &diag);
    need(tl_space_build(space, f->arena, 0, wishes, 2, &v, &diag), &diag);
    tl_tokens *tokens = tl_tokens_create(f->arena, space);
    int count = tl_tokens_of_point(tokens, f->arena, &v.point, &decisions);
    assert_int_equal(count, v.point.count + 1);
    bool found = false;
    for (int i = 0; i < v.point.count; i++) {
        const float *token = decisions + (i + 1) * width;
        const tl_decision *d = &v.point.decisions[i];
        assert_true(token_value(TL_COST_TOKEN_DECISION, token, "is_plain") == 1);
        assert_true(token_value(TL_COST_TOKEN_DECISION, token, "value") ==
                    tl_feature_log((double)d->options[d->taken]));
        assert_true((token_value(TL_COST_TOKEN_DECISION, token, "is_default") == 1) ==
                    (d->taken == d->initial));
        if (strcmp(d->name, "gemm.k.3") == 0) {
            found = true;
            assert_true(token_value(TL_COST_TOKEN_DECISION, token, "axis") == tl_feature_log(48));
            assert_true(token_value(TL_COST_TOKEN_DECISION, token, "part") == 3);
            assert_true(token_value(TL_COST_TOKEN_DECISION, token, "divides") == 1);
            assert_true(token_value(TL_COST_TOKEN_DECISION, token, "block_reduce") ==
                        tl_feature_log(48));
        }
    }
    assert_true(found);
    float workload[256], machine[256];
    assert_true(tl_cost_token_width(TL_COST_TOKEN_WORKLOAD) <= 256 &&
                tl_cost_token_width(TL_COST_TOKEN_MACHINE) <= 256);
    tl_cost_token_of_workload(tokens, "gemm_relu", 1000, 100, workload);
    assert_true(token_value(TL_COST_TOKEN_WORKLOAD, workload, "intensity") == tl_feature_log(10));
    assert_true(token_value(TL_COST_TOKEN_WORKLOAD, workload, "reduce1") == tl_feature_log(48));
    assert_true(token_value(TL_COST_TOKEN_WORKLOAD, workload, "threads") == tl_feature_log(1));
    tl_cost_token_of_machine(&target, machine);
    assert_true(token_value(TL_COST_TOKEN_MACHINE, machine, "vector_bits") == tl_feature_log(512));
    assert_true(token_value(TL_COST_TOKEN_MACHINE, machine, "profile.fma_per_cycle") ==
                tl_feature_log(2));
    /* every column has a name of its own */
    for (int k = 0; k < TL_COST_TOKEN_COUNT; k++)
        for (int i = 0; i < tl_cost_token_width((tl_cost_token)k); i++)
            for (int j = 0; j < i; j++) {
                char a[48], b[48];
                tl_cost_token_name((tl_cost_token)k, i, a);
                tl_cost_token_name((tl_cost_token)k, j, b);
                assert_string_not_equal(a, b);
            }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(a_corpus_has_what_is_computed_of_each_program),
        TEST(threads_change_nothing),
        TEST(rows_are_kept),
        TEST(what_comes_to_another_program_is_lost),
        TEST(labels_are_bounded),
        TEST(points_that_nobody_measured_have_no_label),
        TEST(nothing_to_learn_from_is_refused),
        TEST(sides_share_no_workload),
        TEST(splits_that_say_nothing_are_refused),
        TEST(tokens_say_what_was_decided),
    };
    return cmocka_run_group_tests_name("corpora", tests, NULL, NULL);
}
