/* schedule/prim/prim_set_scope.c: set_scope(buffer, scope)
 *
 *     alloc acc: f32[8, 32]          ->     alloc acc: f32[8, 32] register
 *
 * Requires  a local buffer (parameters and prepared buffers are global); no loop of threads between the alloc and its
 *           accesses whose iterations have a buffer of that scope each (tl_loop_kind_shares); shared and warp want
 *           a GPU. All but global have a constant shape: a dim in it becomes its largest value. How much of the
 *           buffer is alive at once shows when it is lowered (codegen/lower/shrink_buffers.c), where too much is refused.
 * Keeps     what is computed.
 */
#include <assert.h>
#include <string.h>
#include "schedule/schedule_private.h"

static tl_status find_scope(const char *buffer, const char *word, tl_scope *out, tl_diag *diag)
{
    for (int i = 0; i < TL_SCOPE_COUNT; i++) {
        if (strcmp(tl_scope_texts[i], word) == 0) {
            *out = (tl_scope)i;
            return TL_OK;
        }
    }
    return tl_refuse(diag, "set_scope", buffer,
                     "there is no scope %s; scopes are global, stack, register, shared, warp",
                     word);
}

const tl_expr *const *tl_shape_in_scope(tl_arena *arena, const tl_buffer *buffer, tl_scope scope)
{
    assert(buffer->rank >= 0 && scope < TL_SCOPE_COUNT);
    if (scope == TL_SCOPE_GLOBAL)
        return buffer->shape;
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
    for (int i = 0; i < buffer->rank; i++) {
        int64_t most = tl_expr_range(buffer->shape[i]).max;
        if (most == INT64_MAX)
            return NULL;
        shape[i] = tl_int(arena, most);
    }
    return shape;
}

tl_status tl_check_scope(tl_schedule *s, const char *prim, const tl_buffer *buffer, tl_scope scope,
                         tl_diag *diag)
{
    bool is_gpu_scope = scope == TL_SCOPE_SHARED || tl_scope_threads[scope] > 0;
    if (is_gpu_scope && s->target && !tl_target_is_gpu(s->target))
        return tl_refuse(diag, prim, buffer->name,
                         "scope %s is a GPU's, and the target is %s; stack or register here",
                         tl_scope_texts[scope], tl_isa_infos[s->target->isa].text);
    if (tl_shape_in_scope(s->arena, buffer, scope) == NULL)
        return tl_refuse(diag, prim, buffer->name,
                         "scope %s wants a constant shape, and its dims have no bound",
                         tl_scope_texts[scope]);
    return TL_OK;
}

typedef struct {
    const char *name;
    const tl_stmt *alloc;
} alloc_search;

static bool find_alloc(const tl_stmt *stmt, void *context)
{
    alloc_search *s = context;
    if (stmt->kind == TL_STMT_ALLOC && strcmp(stmt->u.alloc.buffer->name, s->name) == 0)
        s->alloc = stmt;
    return s->alloc == NULL;
}

static tl_status check(tl_schedule *s, const char *name, const tl_stmt *alloc, tl_scope scope,
                       tl_diag *diag)
{
    const tl_buffer *param = tl_program_find_buffer(s->program, name);
    if (alloc == NULL && param)
        return tl_refuse(diag, "set_scope", name,
                         "the buffer is a parameter of the kernel or prepared, which are global; "
                         "cache_read or cache_write gives a local one");
    if (alloc == NULL)
        return tl_refuse(diag, "set_scope", name, "there is no such buffer in kernel %s",
                         s->program->name);
    return tl_check_scope(s, "set_scope", alloc->u.alloc.buffer, scope, diag);
}

/* Puts the new alloc in the place of the old one. */
static const tl_stmt *replace_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)arena;
    const tl_stmt *const *pair = context;
    return stmt->kind == TL_STMT_ALLOC && pair[0] && stmt->u.alloc.buffer == pair[0]->u.alloc.buffer
               ? pair[1]
               : stmt;
}

tl_status tl_apply_set_scope(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                             int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_WORD && args[1].kind == TL_ARG_WORD);
    (void)arg_count;
    (void)out;
    (void)out_count;
    tl_scope scope = TL_SCOPE_GLOBAL;
    TL_TRY(find_scope(args[0].word, args[1].word, &scope, diag));
    alloc_search search = { args[0].word, NULL };
    tl_stmt_visit(s->program->body, find_alloc, &search);
    bool in_body = search.alloc != NULL;
    if (!in_body && s->program->prepare)
        tl_stmt_visit(s->program->prepare, find_alloc, &search);
    TL_TRY(check(s, args[0].word, search.alloc, scope, diag));

    const tl_buffer *from = search.alloc->u.alloc.buffer;
    if (from->scope == scope)
        return TL_OK;
    tl_buffer *to = TL_NEW(s->arena, tl_buffer);
    *to = *from;
    to->scope = scope;
    to->shape = tl_shape_in_scope(s->arena, from, scope);
    const tl_stmt *body = tl_stmt_replace_buffer(s->arena, search.alloc->u.alloc.body, from, to);
    const tl_stmt *pair[] = { search.alloc, tl_stmt_alloc(s->arena, to, body) };
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    if (in_body)
        program->body = tl_stmt_rewrite(s->arena, program->body, replace_alloc, pair);
    else
        program->prepare = tl_stmt_rewrite(s->arena, program->prepare, replace_alloc, pair);
    tl_schedule_set_program(s, program);
    if (scope == TL_SCOPE_SHARED)
        tl_hoist_shared(s);
    return TL_OK;
}
