/* tests/tuner/test_policy.c: every policy on a real space with an invented clock: a function of the point's answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/map.h"
#include "tests/tuner/small_gemm.h"
#include "tuner/search/search.h"

typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_space *space;
} fixture;

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

static int set_up(void **state)
{
    static fixture f;
    tl_diag diag = { 0 };
    f.arena = tl_arena_create(0);
    if (tl_target_named("x86-64-v4", &f.target, &diag) != TL_OK ||
        tl_space_create(f.arena, &gemm, &f.target, 1, TL_SPACE_FULL, &f.space, &diag) != TL_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return -1;
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    tl_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

/* --- the clock ------------------------------------------------------------------------------------------------------ */

static int64_t answer(const char *trace, const char *role, int64_t otherwise)
{
    const char *end = strchr(trace, '\n'), *found = strstr(trace, role);
    return found != NULL && found < end ? strtoll(found + strlen(role), NULL, 10) : otherwise;
}

typedef double objective(const char *trace);

/* Each decision has its best value, whatever the others are. */
static double separable(const char *trace)
{
    double columns = (double)answer(trace, ".columns=", 1),
           rows = (double)answer(trace, ".rows=", 1);
    double unroll = (double)answer(trace, ".unroll=", 0);
    return 1000 + 100 * fabs(columns - 3) + 10 * fabs(rows - 5) + fabs(unroll - 2);
}

/* A ridge with dents: the right number of rows depends on the columns. */
static double rugged(const char *trace)
{
    double columns = (double)answer(trace, ".columns=", 1),
           rows = (double)answer(trace, ".rows=", 1);
    double unroll = (double)answer(trace, ".unroll=", 0);
    double work = columns * rows;
    return 1000 + 20 * fabs(work - 12) + 40 * ((int)(columns + rows) % 3) + fabs(unroll - 4);
}

/* A run of a policy: its proposals and their times. */
enum { MOST = 600 };
typedef struct {
    int count;
    char programs[MOST][17];
    double times[MOST], best;
    char best_trace[400];
    char *origins[MOST];
} history;

static history *run_search(const fixture *f, const char *name, const tl_search *with,
                           objective *time, int trials, int batch)
{
    tl_diag diag = { 0 };
    tl_policy *policy;
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    assert_true(trials <= MOST);
    h->best = 1e300;
    const tl_policy_type *type = tl_policy_find(name);
    assert_non_null(type);
    need(type->create(with, &policy, &diag), &diag);
    while (h->count < trials) {
        tl_arena *arena = tl_arena_create(0);
        tl_proposal proposals[64];
        static tl_result results[64];
        int count = 0, ask = trials - h->count < batch ? trials - h->count : batch;
        need(policy->type->propose(policy, arena, ask, proposals, &count, &diag), &diag);
        assert_true(count <= ask);
        for (int i = 0; i < count; i++) {
            double t = time(proposals[i].candidate.trace);
            results[i] = (tl_result){ .status = t > 0 ? TL_RECORD_OK : TL_RECORD_CRASH,
                                      .time_ns = t,
                                      .score_ns = t };
            strcpy(h->programs[h->count], proposals[i].program);
            h->origins[h->count] = strdup(proposals[i].origin);
            h->times[h->count++] = t;
            if (t > 0 && t < h->best) {
                h->best = t;
                snprintf(h->best_trace, sizeof h->best_trace, "%.399s",
                         proposals[i].candidate.trace);
            }
        }
        need(policy->type->learn(policy, proposals, results, count, &diag), &diag);
        tl_arena_destroy(arena);
        if (count < ask)
            break;
    }
    policy->type->destroy(policy);
    (void)f;
    return h;
}

static void forget(history *h)
{
    for (int i = 0; i < h->count; i++)
        free(h->origins[i]);
    free(h);
}

static tl_search search_of(const fixture *f, uint64_t seed)
{
    return (tl_search){ .task = &gemm, .space = f->space, .target = &f->target, .seed = seed };
}

/* --- what all of them promise ----------------------------------------------------------------------------------------- */

static void all_are_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < tl_policy_count; i++)
        assert_ptr_equal(tl_policy_find(tl_policies[i]->name), tl_policies[i]);
    assert_null(tl_policy_find("nothing"));
}

/* Nothing twice, the default first, and the end is reported: at the end all have seen the same programs. */
static void each_sees_the_whole_space_once(void **state)
{
    const fixture *f = *state;
    tl_diag diag = { 0 };
    tl_variant plain;
    need(tl_space_build(f->space, f->arena, 0, NULL, 0, &plain, &diag), &diag);
    int size = 0;
    for (int p = 0; p < tl_policy_count; p++) {
        tl_search search = search_of(f, 3);
        history *h = run_search(f, tl_policies[p]->name, &search, separable, MOST, 64);
        tl_map *seen = tl_map_create(f->arena);
        assert_string_equal(h->programs[0], plain.hash);
        assert_string_equal(h->origins[0], "default");
        for (int i = 0; i < h->count; i++) {
            if (tl_map_has(seen, h->programs[i]))
                fail_msg("%s proposed %s twice", tl_policies[p]->name, h->programs[i]);
            tl_map_put(seen, h->programs[i], h);
        }
        assert_true(h->count < MOST);
        size = size == 0 ? h->count : size;
        assert_int_equal(h->count, size);
        forget(h);
    }
    assert_true(size > 100);
}

static void the_same_seed_decides_the_same(void **state)
{
    const fixture *f = *state;
    for (int p = 0; p < tl_policy_count; p++) {
        tl_search search = search_of(f, 7), other = search_of(f, 8);
        history *a = run_search(f, tl_policies[p]->name, &search, rugged, 80, 16);
        history *b = run_search(f, tl_policies[p]->name, &search, rugged, 80, 16);
        history *c = run_search(f, tl_policies[p]->name, &other, rugged, 80, 16);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->programs, b->programs, sizeof a->programs[0] * (size_t)a->count);
        if (strcmp(tl_policies[p]->name, "random") == 0)
            assert_memory_not_equal(a->programs, c->programs,
                                    sizeof a->programs[0] * (size_t)a->count);
        forget(a);
        forget(b);
        forget(c);
    }
}

/* What cannot be measured does not stop a search, nor is it tried again. */
static double half_fails(const char *trace)
{
    return answer(trace, ".rows=", 1) % 2 == 0 ? -1 : separable(trace);
}

static double all_fail(const char *trace)
{
    (void)trace;
    return -1;
}

static void failures_are_survived(void **state)
{
    const fixture *f = *state;
    for (int p = 0; p < tl_policy_count; p++) {
        tl_search search = search_of(f, 5);
        history *h = run_search(f, tl_policies[p]->name, &search, half_fails, 100, 10);
        assert_int_equal(h->count, 100);
        assert_true(h->best < 1e300);
        forget(h);
        h = run_search(f, tl_policies[p]->name, &search, all_fail, 100, 10);
        assert_int_equal(h->count, 100);
        forget(h);
    }
}

/* Records of this machine are not tried again; those of another are tried first, the best of them foremost. */
static void records_are_used(void **state)
{
    const fixture *f = *state;
    tl_search search = search_of(f, 11);
    tl_diag diag = { 0 };
    char fingerprint[160];
    tl_target_fingerprint(&f->target, 1, fingerprint);
    tl_random random = tl_random_make(1);
    enum { KNOWN = 20 };
    static tl_record known[KNOWN];
    tl_map *tried = tl_map_create(f->arena);
    for (int i = 0; i < KNOWN; i++) {
        tl_variant v;
        need(tl_space_sample(f->space, f->arena, &random, &v, &diag), &diag);
        known[i] = (tl_record){ .target = fingerprint,
                                .revision = TL_CODEGEN_REVISION,
                                .lowering = "direct",
                                .trace = v.trace,
                                .program = tl_arena_strdup(f->arena, v.hash),
                                .status = i % 5 == 4 ? TL_RECORD_CRASH : TL_RECORD_OK,
                                .score_ns = separable(v.trace),
                                .threads = 1 };
        tl_map_put(tried, v.hash, &known[i]);
    }
    search.known = known;
    search.known_count = KNOWN;
    for (int p = 0; p < tl_policy_count; p++) {
        history *h = run_search(f, tl_policies[p]->name, &search, separable, 100, 32);
        for (int i = 0; i < h->count; i++)
            assert_false(tl_map_has(tried, h->programs[i]));
        forget(h);
    }
    const tl_record *best = NULL;
    for (int i = 0; i < KNOWN; i++) {
        known[i].revision = TL_CODEGEN_REVISION - 1;
        if (known[i].status == TL_RECORD_OK && (best == NULL || known[i].score_ns < best->score_ns))
            best = &known[i];
    }
    for (int p = 0; p < tl_policy_count; p++) {
        history *h = run_search(f, tl_policies[p]->name, &search, separable, 5, 5);
        assert_string_equal(h->origins[0], "default");
        if (strcmp(h->programs[0], best->program) != 0) {
            assert_string_equal(h->programs[1], best->program);
            assert_string_equal(h->origins[1], "record");
        }
        forget(h);
    }
}

/* --- what some of them promise ---------------------------------------------------------------------------------------- */

static double least(const fixture *f, objective *time, int *size)
{
    tl_search search = search_of(f, 1);
    history *h = run_search(f, "random", &search, time, MOST, 64);
    double best = h->best;
    *size = h->count;
    forget(h);
    return best;
}

static void descent_finds_the_bottom(void **state)
{
    const fixture *f = *state;
    int size;
    double bottom = least(f, separable, &size);
    tl_search search = search_of(f, 1);
    history *h = run_search(f, "droplet", &search, separable, 80, 8);
    assert_true(size > 2 * h->count);
    assert_true(h->best == bottom);
    forget(h);
}

/* The mean over seeds of the best after so many trials. */
static double mean_best(const fixture *f, const char *name, objective *time, int trials)
{
    enum { SEEDS = 4 };
    double sum = 0;
    for (int i = 0; i < SEEDS; i++) {
        tl_search search = search_of(f, 100 + (uint64_t)i);
        history *h = run_search(f, name, &search, time, trials, 16);
        sum += h->best;
        forget(h);
    }
    return sum / SEEDS;
}

/* What is told of results is used: with the same number of trials it comes closer to the bottom than chance. */
static void auto_beats_chance(void **state)
{
    const fixture *f = *state;
    int size;
    double bottom = least(f, rugged, &size);
    assert_true(size > 160);
    double chance = mean_best(f, "random", rugged, 48) - bottom;
    assert_true(chance > 0);
    assert_true(mean_best(f, "auto", rugged, 48) - bottom < 0.7 * chance);
}

/* A space that no search sees the end of. */
static const char large_text[] = "kernel gemm(A: f32[60, 64], B: f32[64, 96], out C: f32[60, 96])\n"
                                 "  for i in 0..60\n"
                                 "    for j in 0..96\n"
                                 "      for k in 0..64\n"
                                 "        block gemm\n"
                                 "          spatial i, j\n"
                                 "          reduce k\n"
                                 "          C[i, j] = sum(A[i, k]*B[k, j])\n";
static const tl_measure_lowering large_direct = { "direct", large_text, 0, 0 };

/* Its first batch is random; what its trees choose afterwards is closer to the bottom than chance. */
static void evolution_beats_chance(void **state)
{
    enum { BATCH = 64, TRIALS = 2 * BATCH };
    const fixture *f = *state;
    tl_diag diag = { 0 };
    tl_measure_task task = gemm;
    tl_space *space;
    task.lowerings = &large_direct;
    need(tl_space_create(f->arena, &task, &f->target, 1, TL_SPACE_FULL, &space, &diag), &diag);
    tl_search search = search_of(f, 100);
    search.task = &task;
    search.space = space;
    history *h = run_search(f, "evolution", &search, separable, TRIALS, BATCH);
    history *r = run_search(f, "random", &search, separable, TRIALS, BATCH);
    double learned = 0, chance = 0;
    assert_int_equal(h->count, TRIALS);
    assert_int_equal(r->count, TRIALS);
    for (int i = BATCH; i < TRIALS; i++) {
        learned += (h->times[i] - 1000) / BATCH;
        chance += (r->times[i] - 1000) / BATCH;
    }
    assert_true(learned < 0.7 * chance);
    forget(h);
    forget(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_found_by_name),
        cmocka_unit_test_setup_teardown(each_sees_the_whole_space_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_same_seed_decides_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_are_survived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_are_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(descent_finds_the_bottom, set_up, tear_down),
        cmocka_unit_test_setup_teardown(auto_beats_chance, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evolution_beats_chance, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
