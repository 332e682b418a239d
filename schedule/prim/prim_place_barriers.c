/* schedule/prim/prim_place_barriers.c: place_barriers()
 *
 *     for k in 0..4                              for k in 0..4
 *       for t in 0..32 threadIdx.x                 for t in 0..32 threadIdx.x
 *         T[t] = ..                                  T[t] = ..
 *       for t in 0..32 threadIdx.x       ->        barrier
 *         .. = T[31 - t]                           for t in 0..32 threadIdx.x
 *                                                    .. = T[31 - t]
 *                                                  barrier
 *
 * The threads of a GPU block meet wherever one of them may touch an element that another touched since they last met,
 * one of the two writing: read after write, write after read, write after write, also from one iteration of a serial
 * loop to the next. Accesses that only one and the same thread makes to an element need no barrier. Barriers that are
 * there already count.
 *
 * Requires  that every place where a barrier is wanted is reached by all threads: thread loops around it as long as the
 *           block is wide; that threads share the copies into shared memory which stand under their loops.
 * Keeps     what every thread computes, and makes what they hand to each other defined.
 */
#include "schedule/barriers.h"
#include "schedule/dependence.h"
#include "schedule/schedule_private.h"

/* The block under loops over threads of one axis that writes the same in each of them, and the outermost such loop. */
typedef struct {
    tl_schedule *s;
    const tl_block *block;
    const tl_stmt *loop;
} alike_search;

static bool search_alike(const tl_stmt *stmt, void *context)
{
    alike_search *a = context;
    if (a->block != NULL || stmt->kind != TL_STMT_BLOCK || stmt->u.block->store_count == 0 ||
        stmt->u.block->stores[0].buffer->scope != TL_SCOPE_SHARED)
        return a->block == NULL;
    tl_path path = tl_schedule_path_to_block(a->s, stmt->u.block->name);
    for (int i = 0; i < path.count; i++) {
        const tl_stmt *loop = path.stmts[i];
        if (loop->kind != TL_STMT_LOOP || !tl_is_thread_kind(loop->u.loop.kind) ||
            loop->u.loop.var->max == 0)
            continue;
        bool moves = false;
        for (int k = 0; k < path.count; k++)
            moves = moves || (path.stmts[k]->kind == TL_STMT_LOOP &&
                              path.stmts[k]->u.loop.kind == loop->u.loop.kind &&
                              tl_block_depends_on(stmt->u.block, path.stmts[k]->u.loop.var));
        if (!moves) {
            a->block = stmt->u.block;
            a->loop = loop;
            return false;
        }
    }
    return true;
}

tl_status tl_apply_place_barriers(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                  int *out_count, tl_diag *diag)
{
    (void)args;
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *body;
    alike_search alike = { s, NULL, NULL };
    tl_stmt_visit(s->program->body, search_alike, &alike);
    if (alike.block != NULL)
        return tl_refuse(diag, "place_barriers", alike.block->name,
                         "every iteration of loop %s, which is %s, fills the same elements of %s; "
                         "bind a loop of the "
                         "block to %s, too, so that the threads share them",
                         alike.loop->u.loop.var->name,
                         tl_loop_kind_infos[alike.loop->u.loop.kind].text,
                         alike.block->stores[0].buffer->name,
                         tl_loop_kind_infos[alike.loop->u.loop.kind].text);
    TL_TRY(tl_place_barriers(s->arena, s->program->body, &body, diag));
    if (body != s->program->body)
        tl_schedule_set_body(s, body);
    return TL_OK;
}
