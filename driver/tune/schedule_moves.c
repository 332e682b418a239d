/* driver/tune/schedule_moves.c: --moves: what can be done next, for programs that look for schedules as people do: every legal
 * step, every other answer to a decision of the sketch rules; with what a cost model expects of each, and, for the first few,
 * with what was measured. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/cli/session.h"
#include "driver/tune/schedule_moves.h"
#include "driver/tune/kernel_task.h"
#include "runtime/base/array.h"
#include "schedule/next_steps.h"
#include "tuner/cost/cost_list.h"
#include "tuner/cost/cost_model.h"
#include "tuner/cost/features.h"
#include "tuner/search/space.h"

typedef struct {
    const char *kind, *primitive; /* primitive: NULL of a decision */
    const char *text;             /* lines for the trace, or "conv.rows=4" */
    const char *trace; /* a decision's whole new trace; NULL of a step, whose text is added */
    const tl_program *program;
    double expected; /* how many times as fast as now */
    int number;      /* in the order in which they were found */
    bool tried;
    tl_findings findings;
    tl_beside beside;
} move;

typedef struct {
    const tl_study *study;
    const tl_walk *walk;
    tl_arena *arena;
    move *moves;
    int count, capacity;
    bool complete;
} listing;

static void add_move(listing *l, const move *m)
{
    TL_ROOM(l->arena, l->moves, l->count, l->capacity);
    l->moves[l->count] = *m;
    l->moves[l->count].number = l->count;
    l->count++;
}

static void add_steps(listing *l)
{
    const tl_next_step *steps;
    int count = tl_next_steps(l->walk->schedule, l->walk->replay, l->walk->script->text,
                              &l->study->target, &steps, &l->complete);
    for (int i = 0; i < count; i++)
        add_move(l, &(move){ .kind = "step",
                             .primitive = steps[i].primitive,
                             .text = steps[i].text,
                             .program = steps[i].program });
}

/* ---- other answers ---- */

/* Every option of the decision but the one that is taken, the rest as it is. */
static tl_status add_answers(listing *l, const tl_space *space, const tl_variant *now, int which,
                             tl_diag *diag)
{
    const tl_point *point = &now->point;
    tl_wish *wishes = TL_NEW_ARRAY(l->arena, tl_wish, point->count);
    for (int i = 0; i < point->count; i++) {
        const tl_decision *d = &point->decisions[i];
        wishes[i] = (tl_wish){ d->name, d->options[d->taken] };
    }
    const tl_decision *d = &point->decisions[which];
    for (int option = 0; option < d->count; option++) {
        tl_variant v;
        if (option == d->taken)
            continue;
        wishes[which].value = d->options[option];
        tl_status status =
            tl_space_build(space, l->arena, point->lowering, wishes, point->count, &v, NULL);
        if (status == TL_ILLEGAL_SCHEDULE || (status == TL_OK && strcmp(v.hash, now->hash) == 0))
            continue;
        if (status != TL_OK)
            return tl_fail(diag, status, "%s=%lld cannot be built", d->name,
                           (long long)d->options[option]);
        add_move(l, &(move){ .kind = "decision",
                             .text = tl_arena_format(l->arena, "%s=%lld", d->name,
                                                     (long long)d->options[option]),
                             .trace = v.trace,
                             .program = v.program });
    }
    return TL_OK;
}

/* When the trace is a point of the kernel's space: the default schedule, or one whose first line says so, with nothing added. */
static tl_status add_decisions(listing *l, tl_diag *diag)
{
    tl_tune_list list;
    tl_space *space;
    tl_wish *wishes = NULL;
    int lowering = 0, wish_count = 0;
    tl_space_kind kind;
    size_t mark;
    tl_variant now;
    char hash[17];

    if (!tl_point_kind(l->walk->script->text, &kind, &mark))
        kind = TL_SPACE_FULL;
    tl_tune_tasks_of_kernel(l->study, &list);
    TL_TRY(tl_space_create(l->arena, list.tasks[0].measure, &l->study->target, l->study->threads,
                           kind, &space, diag));
    (void)tl_point_read(space, l->arena, l->walk->script->text, &lowering, &wishes, &wish_count);
    if (tl_space_build(space, l->arena, lowering, wishes, wish_count, &now, NULL) != TL_OK)
        return TL_OK;
    snprintf(hash, sizeof hash, "%016" PRIx64, tl_program_hash(tl_walk_program(l->walk)));
    for (int i = 0; i < now.point.count && strcmp(hash, now.hash) == 0; i++)
        TL_TRY(add_answers(l, space, &now, i, diag));
    return TL_OK;
}

/* ---- what is expected of them ---- */

static tl_status expect_all(listing *l, const char *name, tl_diag *diag)
{
    tl_cost_model *model;
    int count = l->count + 1;
    float *mean = TL_NEW_ARRAY(l->arena, float, count);
    tl_cost_list list = { .arena = l->arena, .shape = tl_sample_shape_of_rows() };
    for (int i = 0; i < count; i++) {
        const float *rows;
        const tl_program *p = i == 0 ? tl_walk_program(l->walk) : l->moves[i - 1].program;
        int row_count = tl_features_of(l->arena, p, &l->study->target, &rows);
        tl_cost_list_add(&list, rows, row_count, NULL, 0);
    }
    const tl_cost_samples programs =
        tl_cost_list_samples(&list, NULL, NULL, &l->study->target.machine);
    TL_TRY(tl_cost_model_create(name, NULL, 1, &model, diag));
    bool knows = tl_cost_model_predict(model, &programs, mean, NULL);
    tl_cost_model_destroy(model);
    for (int i = 0; i < l->count; i++)
        l->moves[i].expected = knows ? exp((double)mean[0] - (double)mean[i + 1]) : 1;
    return TL_OK;
}

static int fastest_first(const void *a, const void *b)
{
    const move *x = a, *y = b;
    if (x->expected != y->expected)
        return x->expected > y->expected ? -1 : 1;
    return x->number - y->number;
}

/* ---- trying ---- */

static void try_move(const listing *l, double seconds, move *m)
{
    tl_diag diag = { 0 };
    m->tried = true;
    tl_findings_make(l->study, m->program, false, true, seconds, &m->findings);
    if (!m->findings.verified)
        return;
    tl_status status = tl_measure_beside(l->study, tl_walk_program(l->walk), m->program, seconds,
                                         &m->beside, &diag);
    if (status != TL_OK) {
        m->findings.defect = "cannot be run";
        snprintf(m->findings.problem, sizeof m->findings.problem, "%.*s",
                 (int)sizeof m->findings.problem - 1, diag.text);
    }
}

/* ---- saying ---- */

static void print_json(const move *m)
{
    tl_text out = { 0 };
    tl_text_format(&out, "{\"record\":\"move\",\"kind\":\"%s\",\"primitive\":", m->kind);
    tl_json_add_text(&out, m->primitive != NULL ? m->primitive : "");
    tl_text_add(&out, ",\"text\":");
    tl_json_add_text(&out, m->text);
    tl_text_format(&out, ",\"expected\":%.4g,\"hash\":\"%016" PRIx64 "\"", m->expected,
                   tl_program_hash(m->program));
    if (m->trace != NULL) {
        tl_text_add(&out, ",\"trace\":");
        tl_json_add_text(&out, m->trace);
    }
    if (m->tried)
        tl_findings_json(&m->findings, &out);
    if (m->beside.turns > 0)
        tl_text_format(&out,
                       ",\"speedup\":%.4g,\"speedup_low\":%.4g,\"speedup_high\":%.4g,\"turns\":%d,"
                       "\"now_ns\":%.0f,\"then_ns\":%.0f",
                       m->beside.speedup.median, fmax(m->beside.speedup.low, 0),
                       fmin(m->beside.speedup.high, 1e6), m->beside.turns, m->beside.standard_ns,
                       m->beside.ns);
    printf("%s}\n", tl_text_get(&out));
    tl_text_free(&out);
}

static void print_text(const move *m)
{
    printf("%8.3f ", m->expected);
    if (m->beside.turns > 0)
        printf("%8.3f  ", m->beside.speedup.median);
    else
        printf("%8s  ", m->tried ? m->findings.failed ? "WRONG" : "-" : "");
    for (const char *p = m->text; *p != '\0'; p++) {
        putchar(*p);
        if (*p == '\n')
            printf("%19s", "");
    }
    printf("\n");
}

static void print_head(const listing *l, const tl_schedule_options *o, int shown)
{
    if (o->json) {
        printf("{\"record\":\"moves\",\"moves\":%d,\"shown\":%d,\"complete\":%s,\"model\":",
               l->count, shown, l->complete ? "true" : "false");
        tl_print_json_text(o->model);
        printf(",\"hash\":\"%016" PRIx64 "\"}\n", tl_program_hash(tl_walk_program(l->walk)));
        return;
    }
    tl_print_styled(stdout, TL_STYLE_BOLD, "%s", l->study->naive->name);
    printf(" under %s: %d legal moves%s", l->walk->script->file, l->count,
           l->complete ? "" : ", and more that were not tried");
    printf(shown < l->count ? ", the first %d\n" : "\n", shown);
    printf("expected measured  times as fast as it is now; model: %s\n", o->model);
}

tl_status tl_schedule_moves_check(const tl_schedule_options *o, tl_diag *diag)
{
    if (o->tries < 0 || o->tries > TL_NEXT_STEPS_TRIED)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--try: %lld is not in 0..%d", (long long)o->tries,
                       TL_NEXT_STEPS_TRIED);
    if (o->limit < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--limit: %lld is below 0", (long long)o->limit);
    if (tl_cost_model_find(o->model) == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--model: there is no cost model '%s'", o->model);
    return TL_OK;
}

tl_status tl_schedule_moves(const tl_study *study, const tl_walk *walk,
                            const tl_schedule_options *o, tl_diag *diag)
{
    listing l = { .study = study, .walk = walk, .arena = study->arena };
    add_steps(&l);
    TL_TRY(add_decisions(&l, diag));
    TL_TRY(expect_all(&l, o->model, diag));
    if (l.count > 0)
        qsort(l.moves, (size_t)l.count, sizeof *l.moves, fastest_first);
    int shown = o->limit > 0 && o->limit < l.count ? (int)o->limit : l.count;
    print_head(&l, o, shown);
    for (int i = 0; i < shown; i++) {
        if (i < o->tries)
            try_move(&l, o->seconds, &l.moves[i]);
        if (o->json)
            print_json(&l.moves[i]);
        else
            print_text(&l.moves[i]);
        fflush(stdout);
    }
    return TL_OK;
}
