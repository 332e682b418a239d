/* tuner/measure/worker_run.c: the runner's job: load what was built, check it, time it. */
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/clock.h"
#include "tuner/measure/run_device.h"

/* The scratch of all kernels that are timed is the same memory: else which pages it got would be a part of what is compared.
 * Without memory for that they keep their own. */
static void share_scratch(tl_run_state *state, tl_runnable *r)
{
    int64_t bytes = tl_runnable_scratch_bytes(r);
    if (state->incumbent != NULL) /* it may have had no memory for a larger one */
        bytes = tl_max64(bytes, tl_runnable_scratch_bytes(state->incumbent));
    if (state->scratch.base == NULL || state->scratch.mapped < (size_t)bytes) {
        tl_guarded larger;
        if (!tl_huge_create((size_t)bytes, &larger))
            return;
        if (state->incumbent != NULL)
            tl_runnable_use_scratch(state->incumbent, larger.data);
        tl_guarded_free(&state->scratch);
        state->scratch = larger;
    }
    tl_runnable_use_scratch(r, state->scratch.data);
}

bool tl_run_state_create(const tl_worker_config *config, const tl_run_task *task, tl_run_state *out)
{
    tl_pool_options options = { .threads = config->threads, .pin = TL_PIN_AUTO };
    *out = (tl_run_state){ .config = config, .task = task };
    if (tl_pool_create(&options, &out->pool, NULL) != TL_OK) {
        /* fewer cores than there were: threads share them */
        options.pin = TL_PIN_NEVER;
        if (tl_pool_create(&options, &out->pool, NULL) != TL_OK)
            return false;
    }
    if (config->device[0] == '\0')
        out->witness = tl_witness_create();
    else if ((out->bench = tl_bench_device_open(config, task)) == NULL)
        return false;
    out->is_alone = out->bench != NULL;
    for (int i = 0; i < task->program->param_count; i++) {
        bool is_written = tl_param_is_written(task->program->params[i]);
        if (is_written && !tl_guarded_create((size_t)task->sizes[i], &out->outputs[i]))
            return false;
        for (int s = 0; s < TL_INPUT_SETS; s++)
            out->buffers[s][i] = is_written ? out->outputs[i].data : task->inputs[s][i].data;
    }
    return true;
}

typedef struct {
    tl_record_status status;
    tl_diag diag;
    double max_error, check_ns, run_ns;
    tl_run_times times;
} outcome;

static tl_record_status kind_of(tl_status status)
{
    switch (status) {
    case TL_OK:
        return TL_RECORD_OK;
    case TL_WRONG_RESULT:
        return TL_RECORD_WRONG;
    case TL_NO_MEMORY:
        return TL_RECORD_MEMORY;
    case TL_ILLEGAL_SCHEDULE:
    case TL_BAD_ARGUMENT:
    case TL_BAD_MODEL:
    case TL_BAD_TEXT:
    case TL_UNBOUND:
    case TL_UNSUPPORTED:
    case TL_BAD_IR:
    case TL_INTERNAL:
    case TL_IO:
    case TL_DEVICE:
    case TL_BUDGET:
    case TL_INTERRUPTED:
    case TL_STATUS_COUNT:
        break;
    }
    return TL_RECORD_WORKER;
}

/* What a candidate is measured against, as the tuner knows it. */
typedef struct {
    double score, ratio;
} standing;

static void run(tl_run_state *state, int flags, tl_cold cold, int lowering, standing known,
                const tl_built *built, outcome *o)
{
    bool is_label = (flags & TL_RUN_LABEL) && state->incumbent != NULL;
    const tl_run_task *t = state->task;
    tl_runnable *r;
    int64_t start = tl_clock_ns();
    double checked_ns = 0;
    o->times.cold = cold;
    tl_status status = tl_runnable_create(t->jit, state->bench, built, t->dims, state->buffers[0],
                                          t->program->param_count, state->config->threads,
                                          state->config->memory_bytes, &r, &o->diag);
    /* an incumbent that comes back after a child's death was checked before */
    if (status == TL_OK && !(flags & TL_RUN_INCUMBENT))
        status = tl_run_check(state, r, lowering, is_label ? 1 : TL_INPUT_SETS, &o->max_error,
                              &checked_ns, &o->diag);
    int64_t checked = tl_clock_ns();
    o->check_ns = (double)(checked - start);
    o->status = kind_of(status);
    if (state->bench != NULL && status == TL_UNSUPPORTED) /* the device's own compiler refused it */
        o->status = TL_RECORD_BUILD;
    if (status != TL_OK || (flags & TL_RUN_CHECK)) {
        tl_runnable_destroy(r);
        return;
    }
    if (r->bench == NULL)
        share_scratch(state, r);
    tl_contest_result *contest = &o->times.contest;
    if (is_label)
        tl_run_label(state, r, cold, checked_ns, &o->times);
    else if (!(flags & TL_RUN_INCUMBENT))
        tl_run_time(state, r, flags & TL_RUN_CAREFUL, cold, checked_ns, &o->times);
    if (state->incumbent != NULL)
        contest->ratio *= state->incumbent_ratio;
    o->run_ns = (double)(tl_clock_ns() - checked);
    if (state->bench != NULL && state->bench->has_failed) {
        tl_fail(&o->diag, TL_DEVICE, "%s", state->bench->failure.text);
        o->status = TL_RECORD_WORKER;
        tl_runnable_destroy(r);
        return;
    }
    if ((flags & TL_RUN_INCUMBENT) || contest->crowned) {
        if (state->incumbent == NULL)
            state->cold = o->times.cold;
        tl_runnable_destroy(state->incumbent);
        state->incumbent = r;
        state->incumbent_score = flags & TL_RUN_INCUMBENT ? known.score : contest->score_ns;
        state->incumbent_ratio = flags & TL_RUN_INCUMBENT ? known.ratio : contest->ratio;
        r->best_ns = flags & TL_RUN_INCUMBENT ? 0 : contest->time_ns;
    } else {
        tl_runnable_destroy(r);
    }
}

bool tl_run_is_lost(const tl_run_state *state)
{
    return tl_bench_device_is_lost(state->bench);
}

void tl_worker_run(tl_run_state *state, const tl_worker_options *options, const tl_text *body,
                   tl_text *reply)
{
    tl_unpacker u = tl_unpack(body);
    outcome o = { .status = TL_RECORD_WORKER };
    int flags = (int)tl_unpack_int(&u);
    int64_t cold = tl_unpack_int(&u), lowering = tl_unpack_int(&u);
    double peak, l2, copy;
    standing known = { .score = tl_unpack_real(&u) };
    known.ratio = tl_unpack_real(&u);
    double solitude = tl_unpack_real(&u);
    int64_t patience = tl_unpack_int(&u);
    const char *trace = tl_unpack_text(&u);
    tl_built built;
    if (state->witness != NULL)
        tl_witness_learn_solitude(state->witness, solitude);
    state->patience_ns = patience;
    if (options->hook != NULL && !(flags & TL_RUN_INCUMBENT))
        options->hook("run", trace);
    if (!tl_built_unpack(&u, &built) || lowering < 0 || lowering >= state->task->lowering_count ||
        cold < 0 || cold >= TL_COLD_COUNT)
        tl_fail(&o.diag, TL_INTERNAL, "a message was damaged");
    else
        run(state, flags, (tl_cold)cold, (int)lowering, known, &built, &o);
    peak = l2 = copy = 0;
    if (state->witness != NULL)
        tl_witness_best(state->witness, &peak, &l2, &copy);
    tl_pack_int(reply, o.status);
    tl_pack_text(reply, o.diag.text);
    tl_pack_real(reply, o.max_error);
    tl_pack_real(reply, o.check_ns);
    tl_pack_real(reply, o.run_ns);
    tl_pack_real(reply, o.times.contest.time_ns);
    tl_pack_real(reply, o.times.median_ns);
    tl_pack_real(reply, o.times.contest.incumbent_ns);
    tl_pack_real(reply, o.times.contest.score_ns);
    tl_pack_real(reply, o.times.contest.promise);
    tl_pack_real(reply, o.times.contest.alone);
    tl_pack_int(reply, o.times.contest.hopeless);
    tl_pack_int(reply, o.times.contest.disturbed);
    tl_pack_int(reply, o.times.contest.crowned);
    tl_pack_int(reply, o.times.cold);
    tl_pack_int(reply, o.times.contest.discarded);
    tl_pack_real(reply, o.times.contest.ratio);
    tl_pack_real(reply, o.times.contest.ratio_error);
    tl_pack_int(reply, o.times.contest.turns);
    tl_pack_int(reply, o.times.contest.censored);
    tl_pack_real(reply, peak);
    tl_pack_real(reply, l2);
    tl_pack_real(reply, copy);
    tl_pack_real(reply, state->witness != NULL ? tl_witness_solitude(state->witness) : solitude);
    tl_pack_int(reply, patience - state->patience_ns);
    tl_pack_bytes(reply, o.times.contest.times_ns,
                  (size_t)o.times.contest.count * sizeof *o.times.contest.times_ns);
}
