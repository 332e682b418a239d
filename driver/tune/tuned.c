/* driver/tune/tuned.c: whether what the tuner found makes the whole model faster, and which of it is kept. */
#include "runtime/base/statistics.h"
#include "driver/tune/tuned_private.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "codegen/codegen.h"
#include "runtime/base/clock.h"
#include "tuner/run/environment.h"

enum { MAX_PAIRS = 400, LEAST_PAIRS = 12, LEAST_RUNS = 2, STEP_RUNS = 400 };
#define BLOCK_NS 20000000 /* a sample is the shortest of as many runs as fill this */

const char *tl_tuned_fate_text(tl_tuned_fate fate)
{
    static const char *const texts[TL_TUNED_FATE_COUNT] = {
        [TL_TUNED_KEPT] = "kept",
        [TL_TUNED_SAME] = "the default is as good",
        [TL_TUNED_SLOWER] = "not faster inside the model",
        [TL_TUNED_WRONG] = "outputs differ with it",
        [TL_TUNED_MISS] = "the record no longer fits",
    };
    return texts[fate];
}

static bool is_stopped(const tl_tuned_state *s)
{
    return s->o->stop != NULL && *s->o->stop != 0;
}

static tl_status check_stop(const tl_tuned_state *s, tl_diag *diag)
{
    return is_stopped(s) ? tl_fail(diag, TL_INTERRUPTED, "stopped before the model was compared")
                         : TL_OK;
}

void tl_tuned_tell(const tl_tuned_state *s, const char *stage)
{
    double left = (double)(s->deadline_ns - tl_clock_ns()) * 1e-9;
    if (s->o->progress != NULL)
        s->o->progress(s->o->user, stage, left > 0 ? left : 0);
}

static void close_side(tl_tuned_side *x)
{
    tl_runner_destroy(x->runner);
    tl_model_destroy(x->model);
    *x = (tl_tuned_side){ 0 };
}

tl_status tl_tuned_open(const tl_tuned_state *s, const tl_pick *picks, int count, const char *form,
                        tl_tuned_side *out, tl_diag *diag)
{
    const tl_pick *own = /* the model looks at them while it lives */
        count > 0 ? tl_arena_copy(s->arena, picks, sizeof *picks * (size_t)count, _Alignof(tl_pick))
                  : NULL;
    close_side(out);
    const tl_picks given = { .count = count, .picks = own, .form = form, .uid = "" };
    tl_model_options options = *s->options;
    options.picks = &given;
    options.keep_programs = true; /* so that it is known which picks were misses */
    options.inspect_only = options.compile_only = false;
    options.threads = s->threads;
    TL_TRY(tl_model_load(s->path, &options, &out->model, diag));
    return tl_runner_create(tl_model_executable(out->model), s->options->pool, s->threads,
                            &out->runner, diag);
}

const tl_executable_spec *tl_tuned_spec(const tl_tuned_side *x)
{
    return tl_executable_info(tl_model_executable(x->model));
}

tl_status tl_tuned_run(const tl_tuned_side *x, const tl_bindings *b, int64_t *step_ns,
                       tl_diag *diag)
{
    return tl_runner_run(x->runner, b->in, b->out, step_ns, diag);
}

static const char *object_key(const tl_executable_spec *spec, int step)
{
    const char *key =
        spec->steps[step].kernel >= 0 ? spec->kernels[spec->steps[step].kernel].key : NULL;
    return key != NULL ? key : "";
}

/* One flag a step of `x`: not the same code as in `y`. Where the steps are not the same ones, all differ. */
static const bool *find_differing(const tl_tuned_state *s, const tl_tuned_side *x,
                                  const tl_tuned_side *y)
{
    const tl_executable_spec *a = tl_tuned_spec(x), *b = tl_tuned_spec(y);
    bool *differs = TL_NEW_ARRAY(s->arena, bool, a->step_count);
    for (int i = 0; i < a->step_count; i++)
        differs[i] =
            a->step_count != b->step_count || strcmp(object_key(a, i), object_key(b, i)) != 0;
    return differs;
}

/* The shortest of the runs that fill a block of time, of two at least: the whole, and the steps that differ alone. */
static tl_status sample(const tl_tuned_state *s, const tl_tuned_side *x, const bool *differs,
                        int64_t *step_ns, double *whole, double *part, tl_diag *diag)
{
    int64_t start = tl_clock_ns(), end = start;
    *whole = *part = INFINITY;
    for (int n = 0; n < LEAST_RUNS || end - start < BLOCK_NS; n++) {
        int64_t before = tl_clock_ns();
        double sum = 0;
        TL_TRY(tl_tuned_run(x, &s->sets[0], step_ns, diag));
        end = tl_clock_ns();
        for (int i = 0; i < tl_tuned_spec(x)->step_count; i++)
            sum += differs[i] ? (double)step_ns[i] : 0;
        *whole = fmin(*whole, (double)(end - before));
        *part = fmin(*part, sum);
    }
    return TL_OK;
}

tl_status tl_tuned_compare(const tl_tuned_state *s, const tl_tuned_side *a, const tl_tuned_side *b,
                           double seconds, tl_tuned_comparison *out, tl_diag *diag)
{
    const tl_tuned_side *sides[2] = { a, b };
    const bool *differs[2] = { find_differing(s, a, b), find_differing(s, b, a) };
    int64_t *step_ns[2];
    double *ratios = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS), *whole[2];
    double *part_ratios = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS), part[2], unused;
    int64_t end = tl_clock_ns() + (int64_t)(seconds * 1e9);
    int n = 0;
    for (int k = 0; k < 2; k++) {
        whole[k] = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS);
        step_ns[k] = TL_NEW_ARRAY(s->arena, int64_t, tl_tuned_spec(sides[k])->step_count);
        TL_TRY(sample(s, sides[k], differs[k], step_ns[k], &unused, &unused, diag)); /* warm */
    }
    while (n < MAX_PAIRS && (n < LEAST_PAIRS || tl_clock_ns() < end)) {
        TL_TRY(check_stop(s, diag));
        for (int k = 0; k < 2; k++) {
            int i = (k + n) % 2;
            TL_TRY(sample(s, sides[i], differs[i], step_ns[i], &whole[i][n], &part[i], diag));
        }
        ratios[n] = whole[1][n] / whole[0][n];
        part_ratios[n] = part[1] / part[0];
        n++;
        tl_tuned_tell(s, "comparing the model");
    }
    out->ratio = tl_median_interval(ratios, n);
    out->part = tl_median_interval(part_ratios, n);
    out->ns[0] = tl_median_interval(whole[0], n).median;
    out->ns[1] = tl_median_interval(whole[1], n).median;
    out->pairs = n;
    return TL_OK;
}

bool tl_tuned_is_faster(const tl_tuned_comparison *c)
{
    return c->ratio.high < 1 || (c->ratio.median < 1 && c->part.high < 1);
}

tl_status tl_tuned_compare_whole(tl_tuned_state *s, const tl_tuned_side *with, double seconds,
                                 bool *is_faster, tl_diag *diag)
{
    tl_tuned_comparison c;
    TL_TRY(tl_tuned_compare(s, &s->base, with, seconds, &c, diag));
    s->out->ratio = c.ratio.median;
    s->out->ratio_low = c.ratio.low;
    s->out->ratio_high = c.ratio.high;
    s->out->part = c.part;
    s->out->untuned_ns = c.ns[0];
    s->out->tuned_ns = c.ns[1];
    s->out->pairs = c.pairs;
    *is_faster = tl_tuned_is_faster(&c);
    return TL_OK;
}

tl_tuned_workload *tl_tuned_find(const tl_tuned_state *s, const char *key)
{
    for (int i = 0; i < s->out->workload_count; i++)
        if (key != NULL && strcmp(s->workloads[i].workload, key) == 0)
            return &s->workloads[i];
    return NULL;
}

/* Takes a workload's pick away. */
static void fall_back(tl_tuned_state *s, tl_tuned_workload *w, tl_tuned_fate fate)
{
    w->fate = fate;
    for (int i = 0; i < s->pick_count; i++)
        if (strcmp(s->picks[i].workload, w->workload) == 0) {
            memmove(&s->picks[i], &s->picks[i + 1],
                    sizeof *s->picks * (size_t)(s->pick_count - i - 1));
            s->pick_count--;
            return;
        }
}

tl_status tl_tuned_build(tl_tuned_state *s, tl_diag *diag)
{
    tl_tuned_tell(s, "building");
    TL_TRY(check_stop(s, diag));
    return tl_tuned_open(s, s->picks, s->pick_count, "", &s->tuned, diag);
}

/* Workloads whose pick was a miss, or compiles to what the default does. Returns whether any fell back. */
static bool drop_idle_picks(tl_tuned_state *s)
{
    const tl_model_facts *facts = tl_model_get_facts(s->tuned.model);
    const tl_executable_spec *base = tl_tuned_spec(&s->base), *tuned = tl_tuned_spec(&s->tuned);
    int before = s->pick_count;
    for (int i = 0; i < facts->kernel_count; i++) {
        tl_tuned_workload *w = tl_tuned_find(s, facts->kernels[i].workload);
        if (w == NULL || w->fate != TL_TUNED_KEPT)
            continue;
        if (facts->kernels[i].pick == NULL)
            fall_back(s, w, TL_TUNED_MISS);
        else if (strcmp(object_key(base, i), object_key(tuned, i)) == 0)
            fall_back(s, w, TL_TUNED_SAME);
    }
    return s->pick_count < before;
}

tl_status tl_tuned_time_steps(tl_tuned_state *s, const tl_tuned_side *const sides[2],
                              double seconds, int64_t *least[2], tl_diag *diag)
{
    int64_t *now[2];
    for (int k = 0; k < 2; k++) {
        int count = tl_tuned_spec(sides[k])->step_count;
        now[k] = TL_NEW_ARRAY(s->arena, int64_t, count);
        least[k] = TL_NEW_ARRAY(s->arena, int64_t, count);
        for (int i = 0; i < count; i++)
            least[k][i] = INT64_MAX;
        TL_TRY(tl_tuned_run(sides[k], &s->sets[0], NULL, diag));
    }
    int64_t end = tl_clock_ns() + (int64_t)(seconds * 1e9);
    for (int n = 0; n < STEP_RUNS && (n < LEAST_PAIRS || tl_clock_ns() < end); n++) {
        TL_TRY(check_stop(s, diag));
        tl_tuned_tell(s, "comparing kernels");
        for (int k = 0; k < 2; k++) {
            int which = (k + n) % 2;
            TL_TRY(tl_tuned_run(sides[which], &s->sets[0], now[which], diag));
            for (int i = 0; i < tl_tuned_spec(sides[which])->step_count; i++)
                if (now[which][i] < least[which][i])
                    least[which][i] = now[which][i];
        }
    }
    return TL_OK;
}

/* Sums over the steps of each workload, of both models. */
static tl_status compare_kernels(tl_tuned_state *s, double seconds, tl_diag *diag)
{
    const tl_tuned_side *sides[2] = { &s->base, &s->tuned };
    int64_t *least[2];
    TL_TRY(tl_tuned_time_steps(s, sides, seconds, least, diag));
    for (int i = 0; i < s->out->workload_count; i++)
        s->workloads[i].untuned_ns = s->workloads[i].tuned_ns = 0;
    for (int i = 0; i < tl_tuned_spec(&s->base)->step_count; i++) {
        tl_tuned_workload *w = tl_tuned_find(s, tl_tuned_spec(&s->base)->steps[i].workload);
        if (w == NULL)
            continue;
        w->untuned_ns += (double)least[0][i];
        w->tuned_ns += (double)least[1][i];
    }
    return TL_OK;
}

static bool drop_slower(tl_tuned_state *s)
{
    int before = s->pick_count;
    for (int i = 0; i < s->out->workload_count; i++) {
        tl_tuned_workload *w = &s->workloads[i];
        if (w->fate == TL_TUNED_KEPT && w->tuned_ns > w->untuned_ns * (1 - TL_TUNED_LEAST_GAIN))
            fall_back(s, w, TL_TUNED_SLOWER);
    }
    return s->pick_count < before;
}

/* The best records of the model's workloads. */
static void collect(tl_tuned_state *s, const tl_target *target)
{
    const tl_model_facts *facts = tl_model_get_facts(s->base.model);
    const char **keys = TL_NEW_ARRAY(s->arena, const char *, facts->kernel_count);
    tl_picks best;
    int count = 0;
    for (int i = 0; i < facts->kernel_count; i++)
        if (facts->kernels[i].same_as == i)
            keys[count++] = tl_arena_strdup(s->arena, facts->kernels[i].workload);
    const tl_picks_query query = { .model = facts->identity,
                                   .target = target,
                                   .numerics = s->options->numerics,
                                   .threads = s->threads };
    tl_picks_best(s->store, s->arena, &query, keys, count, &best);
    s->picks = tl_arena_copy(s->arena, best.picks, sizeof *s->picks * (size_t)best.count,
                             _Alignof(tl_pick));
    s->pick_count = s->out->workload_count = best.count;
    s->workloads = TL_NEW_ARRAY(s->arena, tl_tuned_workload, best.count);
    for (int i = 0; i < best.count; i++) {
        tl_tuned_workload *w = &s->workloads[i];
        w->workload = best.picks[i].workload;
        for (int k = facts->kernel_count - 1; k >= 0; k--)
            if (strcmp(facts->kernels[k].workload, w->workload) == 0) {
                w->kernel = tl_arena_strdup(s->arena, facts->kernels[k].kernel->name);
                w->occurrences++;
            }
        w->alone_ns = best.picks[i].score_ns * w->occurrences;
    }
}

static int by_weight(const void *a, const void *b)
{
    const tl_tuned_workload *x = a, *y = b;
    double difference = fmax(y->untuned_ns, y->alone_ns) - fmax(x->untuned_ns, x->alone_ns);
    return difference > 0 ? 1 : difference < 0 ? -1 : strcmp(x->workload, y->workload);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* JSON and SQL know no infinity. */
static double limited(double value)
{
    return isfinite(value) ? value : value > 0 ? 1e9 : 0;
}

static tl_status write_choice(tl_tuned_state *s, tl_diag *diag)
{
    const tl_tuned_verdict *v = s->out;
    const tl_model_facts *facts = tl_model_get_facts(s->base.model);
    const tl_picks kept = { .count = v->kept ? s->pick_count : 0, .picks = s->picks };
    const char *slash = strrchr(s->path, '/');
    char target[160];
    tl_text picks = { 0 }, environment = { 0 };
    tl_target_fingerprint(facts->target, s->threads, target);
    tl_picks_print(&kept, &picks);
    tl_environment_text(NULL, &environment);
    const tl_choice choice = { .model = facts->identity,
                               .name = slash != NULL ? slash + 1 : s->path,
                               .target = target,
                               .numerics = tl_numerics_text(s->options->numerics),
                               .threads = s->threads,
                               .revision = TL_CODEGEN_REVISION,
                               .kept = v->kept,
                               .form = v->form,
                               .picks = tl_text_get(&picks),
                               .untuned_ns = v->untuned_ns,
                               .tuned_ns = v->tuned_ns,
                               .ratio = limited(v->ratio),
                               .ratio_low = limited(v->ratio_low),
                               .ratio_high = limited(v->ratio_high),
                               .pairs = v->pairs,
                               .max_error = v->max_error,
                               .environment = tl_text_get(&environment),
                               .session = s->o->session != NULL ? s->o->session : "",
                               .created_us = now_us() };
    tl_status status = picks.failed || environment.failed
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : tl_records_add_choice(s->store, &choice, diag);
    tl_text_free(&picks);
    tl_text_free(&environment);
    return status;
}

/* With the picks that are left: outputs, kernels that do not gain, the whole. */
static tl_status decide(tl_tuned_state *s, tl_diag *diag)
{
    tl_tuned_verdict *v = s->out;
    TL_TRY(tl_tuned_build(s, diag));
    if (drop_idle_picks(s))
        TL_TRY(tl_tuned_build(s, diag));
    TL_TRY(tl_tuned_make_right(s, diag));
    if (s->pick_count > 0) {
        TL_TRY(compare_kernels(s, TL_TUNED_SHARE_KERNELS * s->seconds, diag));
        if (drop_slower(s)) {
            TL_TRY(tl_tuned_build(s, diag));
            TL_TRY(tl_tuned_make_right(s, diag)); /* what is left is another set */
        }
    }
    if (s->pick_count == 0) /* nothing differs from untuned */
        return TL_OK;
    bool is_faster;
    double rest = (1 - TL_TUNED_SHARE_KERNELS - TL_TUNED_SHARE_WHOLE) * s->seconds;
    TL_TRY(
        tl_tuned_compare_whole(s, &s->tuned, TL_TUNED_SHARE_WHOLE * s->seconds, &is_faster, diag));
    if (!is_faster && v->ratio >= 1)
        return TL_OK;
    /* once more, later: what was luck does not come twice; twice as long when it was not sure */
    return tl_tuned_compare_whole(s, &s->tuned, is_faster ? rest : 2 * rest, &v->kept, diag);
}

static tl_status settle(tl_tuned_state *s, tl_diag *diag)
{
    tl_tuned_verdict *v = s->out;
    TL_TRY(tl_tuned_open(s, NULL, 0, "", &s->base, diag));
    for (int i = 0; i < TL_TUNED_INPUT_SETS; i++)
        TL_TRY(tl_bindings_make(s->arena, tl_model_executable(s->base.model), NULL,
                                s->o->seed + (uint64_t)i, &s->sets[i], diag));
    collect(s, tl_model_get_facts(s->base.model)->target);
    TL_TRY(decide(s, diag));
    TL_TRY(tl_tuned_try_form(s, diag));
    for (int i = 0; i < v->workload_count; i++) {
        v->kept_count += s->workloads[i].fate == TL_TUNED_KEPT;
        v->wrong_count += s->workloads[i].fate == TL_TUNED_WRONG;
        v->fallback_count +=
            s->workloads[i].fate == TL_TUNED_SLOWER || s->workloads[i].fate == TL_TUNED_WRONG;
    }
    if (v->workload_count > 0)
        qsort(s->workloads, (size_t)v->workload_count, sizeof *s->workloads, by_weight);
    v->workloads = s->workloads;
    if (s->o->dry || v->workload_count == 0)
        return TL_OK;
    TL_TRY(write_choice(s, diag));
    tl_model_store(!v->kept             ? s->base.model
                   : v->form[0] != '\0' ? s->shaped.model
                                        : s->tuned.model);
    return TL_OK;
}

tl_status tl_tuned_settle(tl_arena *arena, const char *path, const tl_model_options *model,
                          tl_records *store, const tl_tuned_options *options, tl_tuned_verdict *out,
                          tl_diag *diag)
{
    tl_tuned_state s = { .arena = arena,
                         .path = path,
                         .options = model,
                         .o = options,
                         .out = out,
                         .store = store,
                         .threads =
                             model->threads > 0 ? model->threads : tl_pool_threads(model->pool),
                         .seconds = options->seconds > 0 ? options->seconds : TL_TUNED_SECONDS };
    s.deadline_ns = tl_clock_ns() + (int64_t)(s.seconds * 1e9);
    *out = (tl_tuned_verdict){
        .ratio = 1, .ratio_low = 1, .ratio_high = 1, .part = { 1, 1, 1 }, .form = ""
    };
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    tl_status status;
    if (TL_ARENA_GUARD(arena))
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    else
        status = settle(&s, diag);
    tl_arena_guard_restore(arena, &outer);
    for (int i = 0; i < TL_TUNED_INPUT_SETS; i++)
        tl_bindings_free(&s.sets[i]);
    close_side(&s.shaped);
    close_side(&s.tuned);
    close_side(&s.base);
    return status;
}
