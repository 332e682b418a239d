/* schedule/legal_steps.c: tries every primitive that takes a loop on copies of a schedule, so that a new primitive is explained
 * without being named here. */
#include "schedule/legal_steps.h"
#include <assert.h>
#include <string.h>
#include "schedule/analysis.h"
#include "schedule/step_arguments.h"

enum { MAX_SHOWN = 3 };

const char *tl_prim_name(int index)
{
    return index >= 0 && index < TL_PRIM_COUNT ? tl_prim_infos[index].name : NULL;
}

const char *tl_prim_arguments(int index)
{
    return index >= 0 && index < TL_PRIM_COUNT ? tl_prim_infos[index].in : NULL;
}

typedef struct {
    tl_step_trials trials;
    tl_text *out, allowed, refused;
    bool has_refusal; /* of the primitive that is tried */
} explanation;

/* What the loop is. */

static bool tell_block(const tl_stmt *stmt, void *context)
{
    explanation *x = context;
    const tl_step_trials *q = &x->trials;
    tl_arena *arena = q->schedule->arena;
    static const char *const kinds[] = {
        [TL_ITER_SPATIAL] = "spatial", [TL_ITER_REDUCE] = "reduce", [TL_ITER_ORDERED] = "ordered"
    };
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *b = stmt->u.block;
    const tl_var *var = q->loop->u.loop.var;
    bool drives = false;
    for (int i = 0; i < b->iter_count; i++) {
        if (!tl_expr_uses_var(b->iters[i].binding, var))
            continue;
        drives = true;
        tl_text_format(x->out, "  drives the %s iter %s = %s of block %s\n",
                       kinds[b->iters[i].kind], b->iters[i].var->name,
                       tl_expr_text(arena, b->iters[i].binding), b->name);
    }
    if (!drives)
        tl_text_format(x->out, "  drives no iter of block %s: it repeats it\n", b->name);
    for (int s = 0; s < b->store_count; s++) {
        const tl_expr *accesses[16] = { NULL };
        int count = 1 + tl_collect_loads(b->stores[s].value, accesses + 1, 15);
        accesses[0] = tl_load(arena, b->stores[s].buffer, b->stores[s].indices);
        tl_text_format(x->out, "  one iteration on, %s moves in", b->name);
        for (int i = 0; i < count; i++) {
            const tl_expr *bound = tl_block_bind(arena, b, accesses[i]);
            int64_t stride = tl_access_stride(arena, bound->u.buffer, bound->args, var);
            tl_text_format(x->out, "%s %s by ", i ? "," : "", bound->u.buffer->name);
            if (stride == TL_NOT_AFFINE)
                tl_text_add(x->out, "no constant");
            else
                tl_text_format(x->out, "%lld", (long long)stride);
        }
        tl_text_add(x->out, " elements\n");
    }
    return true;
}

static void tell_loop(explanation *x)
{
    const tl_step_trials *q = &x->trials;
    tl_text *out = x->out;
    const tl_var *var = q->loop->u.loop.var;
    tl_path path = tl_schedule_path_to_loop(q->schedule, var);
    tl_text_format(out, "loop %s", tl_step_loop_name(q, var));
    if (strcmp(tl_step_loop_name(q, var), var->name) != 0)
        tl_text_format(out, " (%s in the program)", var->name);
    tl_text_format(out, ": %s, 0..%s", tl_loop_kind_infos[q->loop->u.loop.kind].text,
                   tl_expr_text(q->schedule->arena, q->loop->u.loop.extent));
    const char *before = ", inside of ";
    for (int i = 0; i < path.count - 1; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP) {
            tl_text_format(out, "%s%s", before, tl_step_loop_name(q, path.stmts[i]->u.loop.var));
            before = ", ";
        }
    tl_text_add(out, "\n");
    tl_stmt_visit(q->loop, tell_block, x);
}

/* The first few that are legal, and the first sentence of those that are not. What is said of a wrong word is not the point. */
static void note_trial(tl_step_trials *q, const tl_step_choice *choices, int count,
                       const tl_schedule *after, tl_status status, const char *why)
{
    explanation *x = q->user;
    (void)after;
    if (status == TL_OK && q->legal <= MAX_SHOWN) {
        tl_text_add(&x->allowed, "    ");
        tl_step_print(q, choices, count, &x->allowed);
        tl_text_add(&x->allowed, "\n");
    } else if (status != TL_OK && !x->has_refusal && !q->word_is_free) {
        x->has_refusal = true;
        tl_text_add(&x->refused, "    ");
        tl_step_print(q, choices, count, &x->refused);
        tl_text_format(&x->refused, "\n        %.*s\n", (int)strcspn(why, "\n"), why);
    }
}

void tl_schedule_why(const tl_schedule *s, const tl_replay *replay, const tl_stmt *loop,
                     tl_text *out)
{
    static const int64_t one = 1, small = 0;
    assert(loop->kind == TL_STMT_LOOP);
    tl_text refused = { 0 };
    explanation x = { .out = out,
                      .trials = { .schedule = s,
                                  .replay = replay,
                                  .loop = loop,
                                  .numbers = &one,
                                  .number_count = 1,
                                  .factors = &small,
                                  .factor_count = 1,
                                  .tried = note_trial } };
    x.trials.user = &x;
    tl_step_trials_begin(&x.trials);
    tell_loop(&x);
    for (int prim = 0; prim < TL_PRIM_COUNT; prim++) {
        if (strchr(tl_prim_infos[prim].in, 'L') == NULL)
            continue;
        x.has_refusal = false;
        tl_step_trials_run(&x.trials, prim);
        if (x.trials.legal > MAX_SHOWN)
            tl_text_format(&x.allowed, "    ... and %d more of %s\n", x.trials.legal - MAX_SHOWN,
                           tl_prim_infos[prim].name);
        if (x.trials.legal == 0)
            tl_text_add(&refused, tl_text_get(&x.refused));
        tl_text_free(&x.refused);
    }
    tl_text_format(out, "  legal, for example:\n%s",
                   x.allowed.size ? tl_text_get(&x.allowed) : "    nothing\n");
    if (refused.size > 0)
        tl_text_format(out, "  refused:\n%s", tl_text_get(&refused));
    tl_text_free(&x.allowed);
    tl_text_free(&refused);
}
