/* schedule/prim/prim_sample_compute_location.c: sample_compute_location(block, decision?) -> loop
 *
 *     l = sample_compute_location(P, 1)                    the second loop that compute_at would take
 *     compute_at(P, l)
 *
 * The loops of the body under which compute_at may bring the block, in the order of the text, are counted from 0.
 * Without a decision one is drawn; it is recorded.
 *
 * Requires  a block that compute_at takes for at least one loop; a decision that is the place of one.
 * Keeps     the program as it is.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

#define PRIM "sample_compute_location"

typedef struct {
    tl_schedule *s;
    tl_block_ref block;
    int count;
    tl_loop_ref found[TL_MAX_ARGS];
    int seen, capacity;
    const tl_var **vars;
} candidates;

static bool add_loop(const tl_stmt *stmt, void *context)
{
    candidates *c = context;
    if (stmt->kind != TL_STMT_LOOP)
        return true;
    if (c->vars)
        c->vars[c->seen] = stmt->u.loop.var;
    c->seen++;
    return true;
}

tl_status tl_apply_sample_compute_location(tl_schedule *s, const tl_arg *args, int arg_count,
                                           tl_arg *out, int *out_count, tl_diag *diag)
{
    assert(arg_count >= 1 && args[0].kind == TL_ARG_BLOCK);
    const tl_block *block;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &block, diag));
    candidates c = { .s = s, .block = args[0].block };
    tl_stmt_visit(s->program->body, add_loop, &c);
    c.vars = TL_NEW_ARRAY(s->arena, const tl_var *, c.seen);
    c.seen = 0;
    tl_stmt_visit(s->program->body, add_loop, &c);

    const tl_program *program = s->program;
    for (int i = 0; i < c.seen && c.count < TL_MAX_ARGS; i++) {
        tl_arg none[TL_MAX_ARGS];
        int ignored = 0;
        tl_arg at[] = { args[0],
                        { .kind = TL_ARG_LOOP, .loop = tl_schedule_name_loop(s, c.vars[i]) } };
        if (tl_apply_compute_at(s, at, 2, none, &ignored, NULL) == TL_OK)
            c.found[c.count++] = at[1].loop;
        s->program = program;
    }
    if (c.count == 0)
        return tl_refuse(diag, PRIM, block->name, "compute_at takes it to none of the loops");
    int64_t place =
        arg_count > 1 ? args[1].value : (int64_t)tl_random_below(&s->random, (uint64_t)c.count);
    if (place < 0 || place >= c.count)
        return tl_refuse(diag, PRIM, block->name, "the decision %lld is not in 0..%d",
                         (long long)place, c.count - 1);
    if (arg_count == 1)
        tl_schedule_decide(s, (tl_arg){ .kind = TL_ARG_INT, .value = place });
    out[0] = (tl_arg){ .kind = TL_ARG_LOOP, .loop = c.found[place] };
    *out_count = 1;
    return TL_OK;
}
