/* tuner/model/verdict.c: whether what the tuner found makes the whole model faster, and which of it is kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "codegen/codegen.h"
#include "runtime/base/map.h"
#include "tuner/model/verdict_private.h"
#include "tuner/run/environment.h"

const char *tl_verdict_fate_text(tl_verdict_fate fate)
{
    static const char *const texts[TL_VERDICT_FATE_COUNT] = {
        [TL_VERDICT_KEPT] = "kept",
        [TL_VERDICT_SAME] = "the default is as good",
        [TL_VERDICT_SLOWER] = "not faster inside the model",
        [TL_VERDICT_WRONG] = "outputs differ with it",
        [TL_VERDICT_MISS] = "the record no longer fits",
    };
    return texts[fate];
}

/* Takes a workload's pick away. */
static void fall_back(tl_verdict_state *s, tl_verdict_workload *w, tl_verdict_fate fate)
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

/* Workloads whose pick was a miss, or compiles to what the default does. Returns whether any fell back. */
static bool drop_idle_picks(tl_verdict_state *s)
{
    const tl_tunable_step *base = s->base->steps, *tuned = s->tuned->steps;
    int before = s->pick_count;
    for (int i = 0; i < s->tuned->step_count; i++) {
        tl_verdict_workload *w = tl_verdict_find(s, tuned[i].workload);
        if (w == NULL || w->fate != TL_VERDICT_KEPT)
            continue;
        if (!tuned[i].is_picked)
            fall_back(s, w, TL_VERDICT_MISS);
        else if (strcmp(base[i].code, tuned[i].code) == 0)
            fall_back(s, w, TL_VERDICT_SAME);
    }
    return s->pick_count < before;
}

/* Sums over the steps of each workload, of both models. */
static tl_status compare_kernels(tl_verdict_state *s, double seconds, tl_diag *diag)
{
    tl_tunable_build *const builds[2] = { s->base, s->tuned };
    int64_t *least[2];
    TL_TRY(tl_verdict_time_steps(s, builds, seconds, least, diag));
    for (int i = 0; i < s->out->workload_count; i++)
        s->workloads[i].untuned_ns = s->workloads[i].tuned_ns = 0;
    for (int i = 0; i < s->base->step_count; i++) {
        tl_verdict_workload *w = tl_verdict_find(s, s->base->steps[i].workload);
        if (w == NULL)
            continue;
        w->untuned_ns += (double)least[0][i];
        w->tuned_ns += (double)least[1][i];
    }
    return TL_OK;
}

static bool drop_slower(tl_verdict_state *s)
{
    int before = s->pick_count;
    for (int i = 0; i < s->out->workload_count; i++) {
        tl_verdict_workload *w = &s->workloads[i];
        if (w->fate == TL_VERDICT_KEPT && w->tuned_ns > w->untuned_ns * (1 - TL_VERDICT_LEAST_GAIN))
            fall_back(s, w, TL_VERDICT_SLOWER);
    }
    return s->pick_count < before;
}

/* Key of each workload of the build once, in the order of the steps. */
static const char **list_workloads(const tl_verdict_state *s, const tl_tunable_build *build,
                                   int *count)
{
    const char **keys = TL_NEW_ARRAY(s->arena, const char *, build->step_count);
    tl_map *seen = tl_map_create(s->arena);
    *count = 0;
    for (int i = 0; i < build->step_count; i++) {
        const char *key = build->steps[i].workload;
        if (key == NULL || tl_map_find(seen, key) != NULL)
            continue;
        keys[(*count)++] = tl_arena_strdup(s->arena, key);
        tl_map_put(seen, key, seen);
    }
    return keys;
}

/* The best records of the model's workloads. */
static void collect(tl_verdict_state *s)
{
    tl_picks best;
    int count;
    const char **keys = list_workloads(s, s->base, &count);
    if (s->o->picks != NULL)
        best = (tl_picks){ .count = s->o->pick_count, .picks = s->o->picks };
    else
        tl_picks_best(s->store, s->arena, &s->model->query, keys, count, &best);
    s->picks = tl_arena_copy(s->arena, best.picks, sizeof *s->picks * (size_t)best.count,
                             _Alignof(tl_pick));
    s->pick_count = s->out->workload_count = best.count;
    s->workloads = TL_NEW_ARRAY(s->arena, tl_verdict_workload, best.count);
    for (int i = 0; i < best.count; i++) {
        tl_verdict_workload *w = &s->workloads[i];
        w->workload = best.picks[i].workload;
        for (int k = s->base->step_count - 1; k >= 0; k--) {
            const tl_tunable_step *step = &s->base->steps[k];
            if (step->workload == NULL || strcmp(step->workload, w->workload) != 0)
                continue;
            w->kernel = tl_arena_strdup(s->arena, step->kernel);
            w->occurrences++;
        }
        w->alone_ns = best.picks[i].score_ns * w->occurrences;
    }
}

static int by_weight(const void *a, const void *b)
{
    const tl_verdict_workload *x = a, *y = b;
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

static tl_status write_choice(tl_verdict_state *s, tl_diag *diag)
{
    const tl_model_verdict *v = s->out;
    const tl_picks_query *query = &s->model->query;
    const tl_picks kept = { .count = v->kept ? s->pick_count : 0, .picks = s->picks };
    const char *slash = strrchr(s->model->path, '/');
    char target[160];
    tl_text picks = { 0 }, environment = { 0 };
    tl_target_fingerprint(query->target, query->threads, target);
    tl_picks_print(&kept, &picks);
    tl_environment_text(NULL, &environment);
    const tl_choice choice = { .model = query->model,
                               .name = slash != NULL ? slash + 1 : s->model->path,
                               .target = target,
                               .numerics = tl_numerics_text(query->numerics),
                               .threads = query->threads,
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
static tl_status decide(tl_verdict_state *s, tl_diag *diag)
{
    tl_model_verdict *v = s->out;
    TL_TRY(tl_verdict_build_tuned(s, diag));
    if (drop_idle_picks(s))
        TL_TRY(tl_verdict_build_tuned(s, diag));
    TL_TRY(tl_verdict_make_right(s, diag));
    if (s->o->untimed) {
        v->kept = s->pick_count > 0;
        return TL_OK;
    }
    if (s->pick_count > 0) {
        TL_TRY(compare_kernels(s, TL_VERDICT_SHARE_KERNELS * s->seconds, diag));
        if (drop_slower(s)) {
            TL_TRY(tl_verdict_build_tuned(s, diag));
            TL_TRY(tl_verdict_make_right(s, diag)); /* what is left is another set */
        }
    }
    if (s->pick_count == 0) /* nothing differs from untuned */
        return TL_OK;
    bool is_faster;
    double rest = (1 - TL_VERDICT_SHARE_KERNELS - TL_VERDICT_SHARE_WHOLE) * s->seconds;
    TL_TRY(tl_verdict_compare_whole(s, s->tuned, TL_VERDICT_SHARE_WHOLE * s->seconds, &is_faster,
                                    diag));
    if (!is_faster && v->ratio >= 1)
        return TL_OK;
    /* once more, later: what was luck does not come twice; twice as long when it was not sure */
    return tl_verdict_compare_whole(s, s->tuned, is_faster ? rest : 2 * rest, &v->kept, diag);
}

static tl_status settle(tl_verdict_state *s, tl_diag *diag)
{
    tl_model_verdict *v = s->out;
    const tl_tunable_type *type = s->model->type;
    TL_TRY(tl_verdict_build(s, NULL, 0, "", &s->base, diag));
    TL_TRY(type->draw_inputs(s->base, s->o->seed, TL_VERDICT_INPUT_SETS, diag));
    collect(s);
    TL_TRY(decide(s, diag));
    if (!s->o->untimed)
        TL_TRY(tl_verdict_try_form(s, diag));
    for (int i = 0; i < v->workload_count; i++) {
        v->kept_count += s->workloads[i].fate == TL_VERDICT_KEPT;
        v->wrong_count += s->workloads[i].fate == TL_VERDICT_WRONG;
        v->fallback_count +=
            s->workloads[i].fate == TL_VERDICT_SLOWER || s->workloads[i].fate == TL_VERDICT_WRONG;
    }
    if (v->workload_count > 0)
        qsort(s->workloads, (size_t)v->workload_count, sizeof *s->workloads, by_weight);
    v->workloads = s->workloads;
    if (s->o->dry || v->workload_count == 0)
        return TL_OK;
    TL_TRY(write_choice(s, diag));
    type->keep(!v->kept ? s->base : v->form[0] != '\0' ? s->shaped : s->tuned);
    return TL_OK;
}

tl_status tl_verdict_reach(tl_arena *arena, tl_tunable *model, tl_records *store,
                           const tl_verdict_options *options, tl_model_verdict *out, tl_diag *diag)
{
    tl_verdict_state s = { .arena = arena,
                           .model = model,
                           .o = options,
                           .out = out,
                           .store = store,
                           .seconds =
                               options->seconds > 0 ? options->seconds : TL_VERDICT_SECONDS };
    s.deadline_ns = tl_verdict_clock_ns(&s) + (int64_t)(s.seconds * 1e9);
    *out = (tl_model_verdict){
        .ratio = 1, .ratio_low = 1, .ratio_high = 1, .part = { 1, 1, 1 }, .form = ""
    };
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    tl_status status;
    if (TL_ARENA_GUARD(arena))
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", model->path);
    else
        status = settle(&s, diag);
    tl_arena_guard_restore(arena, &outer);
    tl_verdict_close(&s, &s.shaped);
    tl_verdict_close(&s, &s.tuned);
    tl_verdict_close(&s, &s.base);
    return status;
}
