/* schedule/next_steps.c: every primitive with every set of arguments, loop by loop; each legal one as the text that says it. */
#include "schedule/next_steps.h"
#include <inttypes.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "schedule/step_arguments.h"

enum { MAX_LOOPS = 96, LEAST_LANES = 4 };

/* Draws answer nothing of what is asked here, and a remark means what its author wants it to. */
static const bool is_passed_over[TL_PRIM_COUNT] = {
    [TL_PRIM_loops] = true,
    [TL_PRIM_annotate] = true,
    [TL_PRIM_sample_perfect_tile] = true,
    [TL_PRIM_sample_categorical] = true,
    [TL_PRIM_sample_compute_location] = true,
};

typedef struct {
    tl_step_trials trials;
    tl_arena *arena;
    const char *trace;
    tl_map *programs; /* hashes of those that were met */
    tl_next_step *steps;
    int count, capacity, tried;
    const tl_stmt *loops[MAX_LOOPS];
    int loop_count;
} listing;

static bool collect_loop(const tl_stmt *stmt, void *context)
{
    listing *l = context;
    if (stmt->kind == TL_STMT_LOOP && l->loop_count < MAX_LOOPS)
        l->loops[l->loop_count++] = stmt;
    return true;
}

static bool is_new(listing *l, const tl_program *program)
{
    const char *hash = tl_arena_format(l->arena, "%016" PRIx64, tl_program_hash(program));
    if (tl_map_has(l->programs, hash))
        return false;
    tl_map_put(l->programs, hash, l);
    return true;
}

/* ---- text ---- */

static bool is_word_of(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t size = strlen(word);
    for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word))
        if ((p == text || strchr(letters, p[-1]) == NULL) &&
            (p[size] == '\0' || strchr(letters, p[size]) == NULL))
            return true;
    return false;
}

/* A name for a loop that neither the trace nor `taken` has. */
static const char *fresh_name(listing *l, const tl_var *var, const char *taken)
{
    const char *name = var->name;
    for (int i = 2; is_word_of(l->trace, name) || is_word_of(taken, name); i++)
        name = tl_arena_format(l->arena, "%s_%d", var->name, i);
    return name;
}

typedef struct {
    const tl_var *var;
    const char *name; /* NULL: the trace has one */
} named_loop;

/* A block under the loop: loops(BLOCK) gives its name. */
static bool find_block(const tl_stmt *stmt, void *context)
{
    const tl_block **found = context;
    if (stmt->kind == TL_STMT_BLOCK && *found == NULL)
        *found = stmt->u.block;
    return *found == NULL;
}

/* "_, k = loops(gemm)" for the loops without a name around that block; they have one then. */
static bool name_loops(listing *l, const tl_block *block, named_loop *loops, int count,
                       tl_text *out)
{
    tl_path path = tl_schedule_path_to_block(l->trials.schedule, block->name);
    tl_text names = { 0 };
    bool any = false;
    int around = 0;
    for (int i = 0; i < path.count; i++) {
        if (path.stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const char *name = "_";
        for (int k = 0; k < count; k++)
            if (loops[k].var == path.stmts[i]->u.loop.var && loops[k].name != NULL &&
                loops[k].name[0] == '\0') {
                tl_text taken = { 0 };
                tl_text_format(&taken, "%s %s", tl_text_get(out), tl_text_get(&names));
                name = loops[k].name = fresh_name(l, loops[k].var, tl_text_get(&taken));
                tl_text_free(&taken);
                any = true;
            }
        tl_text_format(&names, "%s%s", around++ ? ", " : "", name);
    }
    if (any)
        tl_text_format(out, "%s = loops(%s)\n", tl_text_get(&names), block->name);
    tl_text_free(&names);
    return any;
}

/* The step's lines; NULL: a loop that holds no block cannot be named. */
static const char *text_of(listing *l, const tl_step_choice *choices, int count)
{
    named_loop loops[TL_MAX_ARGS];
    tl_step_choice own[TL_MAX_ARGS] = { 0 };
    tl_text out = { 0 };
    int loop_count = 0;
    bool ok = true;
    for (int i = 0; i < count; i++) {
        own[i] = choices[i];
        if (choices[i].arg.kind == TL_ARG_LOOP)
            loops[loop_count++] =
                (named_loop){ choices[i].var,
                              l->trials.replay == NULL ||
                                      tl_replay_name(l->trials.replay, choices[i].var) == NULL
                                  ? ""
                                  : NULL };
    }
    for (int k = 0; k < loop_count && ok; k++) {
        const tl_block *block = NULL;
        if (loops[k].name == NULL || loops[k].name[0] != '\0')
            continue;
        for (int i = 0; i < l->loop_count; i++)
            if (l->loops[i]->u.loop.var == loops[k].var)
                tl_stmt_visit(l->loops[i], find_block, &block);
        ok = block != NULL && name_loops(l, block, loops, loop_count, &out);
    }
    for (int i = 0, k = 0; i < count; i++)
        if (own[i].arg.kind == TL_ARG_LOOP) {
            if (loops[k].name != NULL) {
                tl_var *named = TL_NEW(l->arena, tl_var);
                *named = *own[i].var;
                named->name = loops[k].name;
                own[i].var = named;
            }
            k++;
        }
    tl_step_print(&l->trials, own, count, &out);
    const char *text = ok && !out.failed ? tl_arena_strdup(l->arena, tl_text_get(&out)) : NULL;
    tl_text_free(&out);
    return text;
}

static void note_step(tl_step_trials *trials, const tl_step_choice *choices, int count,
                      const tl_schedule *after, tl_status status, const char *why)
{
    listing *l = trials->user;
    (void)why;
    l->tried++;
    if (status != TL_OK || trials->word_is_free || !is_new(l, tl_schedule_program(after)))
        return;
    const char *text = text_of(l, choices, count);
    if (text == NULL)
        return;
    TL_ROOM(l->arena, l->steps, l->count, l->capacity);
    l->steps[l->count++] =
        (tl_next_step){ tl_prim_infos[trials->prim].name, text, tl_schedule_program(after) };
}

static void try_all(listing *l, bool with_loop)
{
    tl_step_trials_begin(&l->trials);
    for (int prim = 0; prim < TL_PRIM_COUNT && l->tried < TL_NEXT_STEPS_TRIED; prim++)
        if (!is_passed_over[prim] && (strchr(tl_prim_infos[prim].in, 'L') != NULL) == with_loop)
            tl_step_trials_run(&l->trials, prim);
}

int tl_next_steps(const tl_schedule *s, const tl_replay *replay, const char *trace,
                  const tl_target *target, const tl_next_step **out, bool *complete)
{
    static const int64_t numbers[] = { 1, 2, 8 };
    int64_t factors[] = { 2, 4, 8, 16, 32, 64, tl_target_lanes(target, TL_F32) };
    bool is_listed = factors[6] < LEAST_LANES;
    for (int i = 0; i < 6; i++)
        is_listed = is_listed || factors[i] == factors[6];
    tl_arena *arena = tl_schedule_arena(s);
    listing *l = TL_NEW(arena, listing);
    *l = (listing){ .trials = { .schedule = s,
                                .replay = replay,
                                .numbers = numbers,
                                .number_count = 3,
                                .factors = factors,
                                .factor_count = 6 + !is_listed,
                                .tried = note_step },
                    .arena = arena,
                    .trace = trace,
                    .programs = tl_map_create(arena) };
    l->trials.user = l;
    (void)is_new(l, tl_schedule_program(s));
    tl_stmt_visit(tl_schedule_program(s)->body, collect_loop, l);
    try_all(l, false);
    for (int i = 0; i < l->loop_count && l->tried < TL_NEXT_STEPS_TRIED; i++) {
        l->trials.loop = l->loops[i];
        try_all(l, true);
    }
    *out = l->steps;
    if (complete != NULL)
        *complete = l->tried < TL_NEXT_STEPS_TRIED;
    return l->count;
}
