/* schedule/hoist_shared.c: a shared buffer is one for all threads of a GPU block: its alloc stands outside of the loops
 * over them. */
#include <assert.h>
#include "runtime/base/array.h"
#include "schedule/schedule_private.h"

typedef struct {
    int count, capacity;
    const tl_buffer **buffers;
} buffer_list;

static const tl_stmt *strip(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    buffer_list *list = context;
    if (stmt->kind != TL_STMT_ALLOC || stmt->u.alloc.buffer->scope != TL_SCOPE_SHARED)
        return stmt;
    TL_ROOM(arena, list->buffers, list->count, list->capacity);
    list->buffers[list->count++] = stmt->u.alloc.buffer;
    return stmt->u.alloc.body;
}

static const tl_stmt *hoist(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind != TL_STMT_LOOP || !tl_is_thread_kind(stmt->u.loop.kind))
        return stmt;
    buffer_list list = { 0 };
    stmt = tl_stmt_rewrite(arena, stmt, strip, &list);
    for (int i = 0; i < list.count; i++)
        stmt = tl_stmt_alloc(arena, list.buffers[i], stmt);
    return stmt;
}

void tl_hoist_shared(tl_schedule *s)
{
    const tl_stmt *body = tl_stmt_rewrite(s->arena, s->program->body, hoist, NULL);
    body = tl_extend_allocs(s->arena, body);
    if (body != s->program->body)
        tl_schedule_set_body(s, body);
}
