/* schedule/expression_size.c: how far steps may make expressions grow.
 *
 * A step that puts expressions into others (a value into each of its readers, an index into each use of a variable) can
 * double their trees, and a trace has many steps. What is shared stays shared while a step rewrites, so that the size
 * can be asked for when it is done, before anybody walks the tree. */
#include <assert.h>
#include "schedule/schedule_private.h"

/* A value with another inside: so many nodes that time to compile is no matter, and so few levels that its text is read back. */
enum { LARGEST_INLINED = 1000, DEEPEST_INLINED = 90 };

typedef struct {
    const tl_buffer *buffer;
    uint32_t loads;
} load_count;

static bool count_load(const tl_expr *e, void *context)
{
    load_count *count = context;
    count->loads += e->kind == TL_EXPR_LOAD && e->u.buffer == count->buffer;
    return true;
}

static tl_status refuse(const char *prim, const tl_block *block, const tl_block *into,
                        uint32_t nodes, uint32_t levels, tl_diag *diag)
{
    return tl_refuse(diag, prim, block->name,
                     "what block %s stores would be an expression of %u nodes on %u levels, and "
                     "may have at most %d on %d",
                     into->name, nodes, levels, LARGEST_INLINED, DEEPEST_INLINED);
}

tl_status tl_check_copies(const char *prim, const tl_block *block, const tl_block *reader,
                          tl_diag *diag)
{
    assert(block->store_count > 0);
    const tl_expr *value = block->stores[0].value;
    for (int i = 0; i < reader->store_count; i++) {
        const tl_expr *store = reader->stores[i].value;
        load_count count = { block->stores[0].buffer, 0 };
        tl_expr_visit(store, count_load, &count);
        if (count.loads > 0 && value->size > LARGEST_INLINED / count.loads)
            return refuse(prim, block, reader, value->size * count.loads,
                          value->depth + store->depth - 1, diag);
    }
    return TL_OK;
}

tl_status tl_check_inlined(const char *prim, const tl_block *block, const tl_block *into,
                           tl_diag *diag)
{
    for (int i = 0; i < into->store_count; i++) {
        const tl_expr *value = into->stores[i].value;
        if (value->size > LARGEST_INLINED || value->depth > DEEPEST_INLINED)
            return refuse(prim, block, into, value->size, value->depth, diag);
    }
    return TL_OK;
}

static const tl_expr *note_large(tl_arena *arena, const tl_expr *e, void *context)
{
    (void)arena;
    const tl_expr **large = context;
    if (tl_expr_is_too_large(e))
        *large = e;
    return e;
}

typedef struct {
    tl_arena *arena;
    const tl_expr *large;
} search;

static bool find_large(const tl_stmt *stmt, void *context)
{
    search *s = context;
    if (s->large == NULL)
        tl_stmt_map_exprs(s->arena, stmt, note_large, &s->large);
    return s->large == NULL;
}

tl_status tl_check_expression_sizes(const tl_schedule *s, const char *prim, tl_diag *diag)
{
    search found = { s->arena, NULL };
    tl_stmt_visit(s->program->body, find_large, &found);
    if (s->program->prepare != NULL)
        tl_stmt_visit(s->program->prepare, find_large, &found);
    if (found.large == NULL)
        return TL_OK;
    return tl_fail(
        diag, TL_ILLEGAL_SCHEDULE,
        "%s: an expression would have %u nodes on %u levels, at most %d on %d are allowed", prim,
        found.large->size, found.large->depth, TL_EXPR_LARGEST, TL_EXPR_DEEPEST);
}
