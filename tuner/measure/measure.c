/* tuner/measure/measure.c: what all measurers have in common. */
#include "tuner/measure/measure_private.h"
#include <assert.h>
#include <string.h>
#include "codegen/codegen.h"
#include "ir/program/program.h"

void tl_measurer_destroy(tl_measurer *m)
{
    if (m != NULL)
        m->type->destroy(m);
}

tl_status tl_measurer_add_task(tl_measurer *m, const tl_measure_task *task, int *out, tl_diag *diag)
{
    return m->type->add_task(m, task, out, diag);
}

tl_status tl_measurer_submit(tl_measurer *m, int task, const tl_candidate *candidates, int count,
                             int64_t *ticket, tl_diag *diag)
{
    int64_t ignored;
    return m->type->submit(m, task, candidates, count, ticket != NULL ? ticket : &ignored, diag);
}

tl_status tl_measurer_next(tl_measurer *m, double timeout_s, tl_result *out, tl_diag *diag)
{
    return m->type->next(m, timeout_s, out, diag);
}

void tl_measurer_pump(tl_measurer *m)
{
    m->type->pump(m);
}

int64_t tl_measurer_queued(const tl_measurer *m)
{
    return m->type->queued(m);
}

void tl_measurer_forget(tl_measurer *m, int task)
{
    m->type->forget(m, task);
}

void tl_measurer_leave_core(const tl_measurer *m)
{
    m->type->leave_core(m);
}

int64_t tl_measurer_clock(const tl_measurer *m)
{
    return m->type->clock(m);
}

void tl_measurer_stats(const tl_measurer *m, tl_measure_stats *out)
{
    m->type->stats(m, out);
}

void tl_measure_bound(const char *program_text, double *rtol, double *ttol)
{
    tl_program *program;
    *rtol = 1e-5;
    *ttol = 1e-5;
    tl_arena *arena = tl_arena_create(0);
    if (arena != NULL && !TL_ARENA_GUARD(arena) &&
        tl_program_parse(arena, program_text, "program", &program, NULL) == TL_OK)
        *rtol = *ttol = tl_program_error_bound(program);
    tl_arena_destroy(arena);
}

void tl_result_to_record(const tl_measure_task *task, const tl_candidate *candidate,
                         const tl_result *result, tl_record *out)
{
    assert(candidate->lowering >= 0 && candidate->lowering < task->lowering_count);
    *out = (tl_record){
        .workload = task->workload,
        .class_key = "",
        .family = "",
        .target = "",
        .numerics = "strict",
        .lowering = task->lowerings[candidate->lowering].name,
        .trace = candidate->trace != NULL ? candidate->trace : "",
        .program = result->program,
        .status = result->status,
        .reason = result->reason,
        .time_ns = result->time_ns,
        .median_ns = result->median_ns,
        .incumbent_ns = result->incumbent_ns,
        .score_ns = result->score_ns,
        .time_count = result->time_count,
        .times_ns = result->times_ns,
        .hopeless = result->hopeless,
        .disturbed = result->disturbed,
        .cold = result->cold,
        .max_error = result->max_error,
        .build_ns = result->build_ns,
        .run_ns = result->check_ns + result->run_ns,
        .revision = TL_CODEGEN_REVISION,
        .environment = "",
        .session = "",
        .origin = "",
        .standard = result->standard,
        .ratio = result->ratio,
        .ratio_error = result->ratio_error,
        .turns = result->turns,
        .alone = result->turns > 0 ? result->alone : 0,
        .censored = tl_censored_texts[result->censored],
        .machine = "",
    };
}
