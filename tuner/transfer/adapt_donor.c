/* tuner/transfer/adapt_donor.c: one donor's schedule as a candidate of another kernel.
 *
 *     answers   # point: direct conv.rows=8 conv.columns=2   ->   conv.rows=7, the nearest on offer, conv.columns=2
 *     trace     split(i, [_, 8]) on 60 iterations             ->   the same with a guard; a divisor; a smaller power of two
 *
 * Answers obey the rules of the space that they are read into (the register rule, what divides), and need one build; a trace is
 * taken step by step, whatever space it is from, and many ways may be tried. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "schedule/trace.h"
#include "tuner/transfer/transfer_private.h"

const char *tl_transfer_route_text(tl_transfer_route route)
{
    static const char *const texts[TL_ROUTE_COUNT] = {
#define ROUTE(name, text, words) [TL_ROUTE_##name] = text,
#include "tuner/transfer/routes.def"
#undef ROUTE
    };
    return texts[route];
}

/* What was taken where the donor had something else. */
static const char *describe(tl_arena *arena, const tl_point *point, const tl_wish *wishes,
                            int count)
{
    const char *text = "";
    for (int i = 0; i < point->count; i++)
        for (int w = 0; w < count; w++) {
            const tl_decision *d = &point->decisions[i];
            int64_t taken = d->options[d->taken];
            if (strcmp(wishes[w].name, d->name) == 0 && wishes[w].value != taken)
                text = tl_arena_format(arena, "%s%s%s %" PRId64 " (%" PRId64 ")", text,
                                       *text ? ", " : "", d->name, taken, wishes[w].value);
        }
    return text;
}

static tl_status by_answers(const tl_space *space, const tl_donor *donor, tl_arena *arena,
                            tl_adapted *out, tl_diag *diag)
{
    int lowering, count;
    tl_wish *wishes;
    tl_variant v;
    if (!tl_point_read(space, arena, donor->record->trace, &lowering, &wishes, &count))
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "record %.10s names no point of this space",
                       donor->record->uid);
    TL_TRY(tl_space_build(space, arena, lowering, wishes, count, &v, diag));
    *out = (tl_adapted){ .route = TL_ROUTE_ANSWERS,
                         .adapted = describe(arena, &v.point, wishes, count),
                         .lowering = lowering,
                         .trace = v.trace,
                         .scheduled = v.program,
                         .point = v.point };
    memcpy(out->program, v.hash, sizeof out->program);
    return TL_OK;
}

static int find_lowering(const tl_measure_task *task, const char *name)
{
    for (int i = 0; i < task->lowering_count; i++)
        if (strcmp(task->lowerings[i].name, name) == 0)
            return i;
    return -1;
}

/* Lines as one sentence. */
static const char *join_lines(tl_arena *arena, const char *lines)
{
    char *text = tl_arena_strdup(arena, lines);
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = ';';
    return text;
}

static tl_status by_trace(const tl_space *space, const tl_donor *donor, tl_arena *arena,
                          tl_adapted *out, tl_diag *diag)
{
    const tl_measure_task *task = tl_space_task(space);
    int lowering = find_lowering(task, donor->record->lowering);
    tl_trace *trace;
    tl_text report = { 0 };
    if (lowering < 0)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "%s has no lowering %s", task->name,
                       donor->record->lowering);
    TL_TRY(tl_trace_parse(arena, donor->record->trace, "record", tl_space_target(space), &trace,
                          diag));
    tl_schedule *s =
        tl_schedule_create(arena, tl_space_program(space, lowering), tl_space_target(space), false);
    tl_status status = tl_trace_adapt(trace, s, &report, diag);
    const char *changes = report.failed ? "" : join_lines(arena, tl_text_get(&report));
    tl_text_free(&report);
    TL_TRY(status);
    *out = (tl_adapted){ .route = TL_ROUTE_TRACE,
                         .adapted = changes,
                         .lowering = lowering,
                         .trace = tl_trace_text(arena, tl_schedule_trace(s)),
                         .scheduled = tl_schedule_program(s) };
    snprintf(out->program, sizeof out->program, "%016" PRIx64, tl_program_hash(out->scheduled));
    return TL_OK;
}

static bool is_misfit(tl_status status)
{
    return status == TL_ILLEGAL_SCHEDULE || status == TL_BAD_TEXT || status == TL_UNSUPPORTED ||
           status == TL_BAD_ARGUMENT;
}

tl_status tl_transfer_adapt(const tl_space *space, const tl_donor *donor, bool only_trace,
                            tl_arena *arena, tl_adapted *out, tl_diag *diag)
{
    tl_status status = TL_ILLEGAL_SCHEDULE;
    if (!only_trace)
        status = by_answers(space, donor, arena, out, diag);
    if (is_misfit(status))
        status = by_trace(space, donor, arena, out, diag);
    return is_misfit(status) ? TL_ILLEGAL_SCHEDULE : status;
}
