/* schedule/statement_path.c: the way from the root of a tree to one of its statements, rewriting along that way
 * only, and the questions who reads and who writes a buffer. */
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/schedule_private.h"

typedef struct {
    tl_arena *arena;
    const char *block; /* one of the two is searched for */
    const tl_var *var;
    int count;
} search;

static bool is_wanted(const search *s, const tl_stmt *stmt)
{
    if (s->var)
        return stmt->kind == TL_STMT_LOOP && stmt->u.loop.var == s->var;
    return stmt->kind == TL_STMT_BLOCK && strcmp(stmt->u.block->name, s->block) == 0;
}

/* The path as an array that its end allocates and every statement above fills in; NULL: not below. */
static const tl_stmt **descend(search *s, const tl_stmt *stmt, int depth)
{
    assert(depth >= 0);
    if (stmt == NULL)
        return NULL;
    const tl_stmt **path = NULL;
    if (is_wanted(s, stmt)) {
        path = TL_NEW_ARRAY(s->arena, const tl_stmt *, depth + 1);
        s->count = depth + 1;
    } else {
        switch (stmt->kind) {
        case TL_STMT_LOOP:
            path = descend(s, stmt->u.loop.body, depth + 1);
            break;
        case TL_STMT_ALLOC:
            path = descend(s, stmt->u.alloc.body, depth + 1);
            break;
        case TL_STMT_SEQ:
            for (int i = 0; i < stmt->u.seq.count && path == NULL; i++)
                path = descend(s, stmt->u.seq.items[i], depth + 1);
            break;
        case TL_STMT_IF:
            path = descend(s, stmt->u.branch.then, depth + 1);
            if (path == NULL)
                path = descend(s, stmt->u.branch.otherwise, depth + 1);
            break;
        case TL_STMT_BLOCK:
        case TL_STMT_BARRIER:
        case TL_STMT_PREFETCH:
        case TL_STMT_STORE:
        case TL_STMT_CALL:
        case TL_STMT_KIND_COUNT:
            break;
        }
    }
    if (path)
        path[depth] = stmt;
    return path;
}

tl_path tl_path_to_block(tl_arena *arena, const tl_stmt *root, const char *name)
{
    search s = { .arena = arena, .block = name };
    const tl_stmt **stmts = descend(&s, root, 0);
    return (tl_path){ s.count, stmts };
}

tl_path tl_path_to_loop(tl_arena *arena, const tl_stmt *root, const tl_var *var)
{
    search s = { .arena = arena, .var = var };
    const tl_stmt **stmts = descend(&s, root, 0);
    return (tl_path){ s.count, stmts };
}

tl_path tl_path_prefix(const tl_path *path, int count)
{
    assert(count >= 0 && count <= path->count);
    return (tl_path){ count, path->stmts };
}

const tl_free_var *tl_path_loops(tl_arena *arena, const tl_path *path, int first, int *count)
{
    assert(first >= 0 && first <= path->count);
    tl_free_var *loops = TL_NEW_ARRAY(arena, tl_free_var, path->count);
    *count = 0;
    for (int i = first; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP)
            loops[(*count)++] =
                (tl_free_var){ path->stmts[i]->u.loop.var, path->stmts[i]->u.loop.extent };
    return loops;
}

int tl_path_find_loop(const tl_path *path, const tl_var *var)
{
    for (int i = 0; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP && path->stmts[i]->u.loop.var == var)
            return i;
    return -1;
}

/* An alloc is visible in all that follows it: its body takes that in. */
static const tl_stmt *absorb(tl_arena *arena, const tl_stmt *seq)
{
    assert(seq->kind == TL_STMT_SEQ);
    int count = seq->u.seq.count, last = count;
    for (int i = 0; i + 1 < count && last == count; i++)
        if (seq->u.seq.items[i]->kind == TL_STMT_ALLOC)
            last = i;
    if (last == count)
        return seq;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, count);
    memcpy(items, seq->u.seq.items, sizeof *items * (size_t)count);
    for (int i = count - 2; i >= last; i--) {
        if (items[i]->kind != TL_STMT_ALLOC)
            continue;
        const tl_stmt *rest = tl_stmt_seq(arena, items + i + 1, count - i - 1);
        const tl_stmt *body = tl_stmt_seq2(arena, items[i]->u.alloc.body, rest);
        if (body->kind == TL_STMT_SEQ)
            body = absorb(arena, body);
        items[i] = tl_stmt_with_body(arena, items[i], body);
        count = i + 1;
    }
    return tl_stmt_seq(arena, items, count);
}

static const tl_stmt *absorb_visit(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    return stmt->kind == TL_STMT_SEQ ? absorb(arena, stmt) : stmt;
}

const tl_stmt *tl_extend_allocs(tl_arena *arena, const tl_stmt *root)
{
    return tl_stmt_rewrite(arena, root, absorb_visit, NULL);
}

static const tl_stmt *rebuild_seq(tl_arena *arena, const tl_stmt *seq, const tl_stmt *old,
                                  const tl_stmt *with)
{
    assert(seq->kind == TL_STMT_SEQ && old != NULL);
    int count = 0;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, seq->u.seq.count);
    for (int i = 0; i < seq->u.seq.count; i++) {
        const tl_stmt *item = seq->u.seq.items[i] == old ? with : seq->u.seq.items[i];
        if (item)
            items[count++] = item;
    }
    if (count == 0)
        return NULL;
    const tl_stmt *rebuilt = tl_stmt_seq(arena, items, count);
    return rebuilt->kind == TL_STMT_SEQ ? absorb(arena, rebuilt) : rebuilt;
}

static const tl_stmt *rebuild(tl_arena *arena, const tl_stmt *parent, const tl_stmt *old,
                              const tl_stmt *with)
{
    switch (parent->kind) {
    case TL_STMT_LOOP:
    case TL_STMT_ALLOC:
        return with ? tl_stmt_with_body(arena, parent, with) : NULL;
    case TL_STMT_SEQ:
        return rebuild_seq(arena, parent, old, with);
    case TL_STMT_IF: {
        const tl_stmt *then = parent->u.branch.then, *otherwise = parent->u.branch.otherwise;
        if (then == old)
            then = with;
        else
            otherwise = with;
        if (then == NULL && otherwise == NULL)
            return NULL;
        if (then == NULL)
            return tl_stmt_if(arena, tl_not(arena, parent->u.branch.condition), otherwise, NULL);
        return tl_stmt_if(arena, parent->u.branch.condition, then, otherwise);
    }
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    assert(!"a leaf has no children");
    return parent;
}

const tl_stmt *tl_path_replace(tl_arena *arena, const tl_path *path, const tl_stmt *with)
{
    assert(path->count > 0);
    for (int i = path->count - 2; i >= 0; i--)
        with = rebuild(arena, path->stmts[i], path->stmts[i + 1], with);
    return with;
}

/* Readers and writers. */

typedef struct {
    const tl_buffer *buffer;
    bool found;
} load_search;

static bool find_load(const tl_expr *e, void *context)
{
    load_search *s = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == s->buffer)
        s->found = true;
    return !s->found;
}

static bool expr_reads(const tl_expr *e, const tl_buffer *buffer)
{
    load_search s = { buffer, false };
    tl_expr_visit(e, find_load, &s);
    return s.found;
}

bool tl_block_reads_buffer(const tl_block *block, const tl_buffer *buffer)
{
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        if (expr_reads(store->value, buffer))
            return true;
        for (int k = 0; k < store->buffer->rank; k++)
            if (expr_reads(store->indices[k], buffer))
                return true;
        if (block->init && expr_reads(block->init[i], buffer))
            return true;
    }
    if (block->predicate && expr_reads(block->predicate, buffer))
        return true;
    for (int i = 0; block->call && i < block->call->read_count; i++)
        if (block->call->reads[i].buffer == buffer)
            return true;
    return false;
}

bool tl_block_writes_buffer(const tl_block *block, const tl_buffer *buffer)
{
    for (int i = 0; i < block->store_count; i++)
        if (block->stores[i].buffer == buffer)
            return true;
    for (int i = 0; block->call && i < block->call->write_count; i++)
        if (block->call->writes[i].buffer == buffer)
            return true;
    return false;
}

static bool find_use(const tl_stmt *stmt, void *context)
{
    load_search *s = context;
    if (stmt->kind == TL_STMT_BLOCK)
        s->found = s->found || tl_block_reads_buffer(stmt->u.block, s->buffer) ||
                   tl_block_writes_buffer(stmt->u.block, s->buffer);
    else if (stmt->kind == TL_STMT_PREFETCH)
        s->found = s->found || stmt->u.prefetch.buffer == s->buffer;
    return !s->found;
}

bool tl_stmt_uses_buffer(const tl_stmt *stmt, const tl_buffer *buffer)
{
    load_search s = { buffer, false };
    tl_stmt_visit(stmt, find_use, &s);
    return s.found;
}

typedef struct {
    tl_arena *arena;
    const tl_buffer *buffer;
    bool (*touches)(const tl_block *block, const tl_buffer *buffer);
    int count, capacity;
    const tl_block **blocks;
} block_list;

static bool collect_block(const tl_stmt *stmt, void *context)
{
    block_list *list = context;
    if (stmt->kind != TL_STMT_BLOCK || !list->touches(stmt->u.block, list->buffer))
        return true;
    TL_ROOM(list->arena, list->blocks, list->count, list->capacity);
    list->blocks[list->count++] = stmt->u.block;
    return true;
}

int tl_readers_of(tl_arena *arena, const tl_stmt *root, const tl_buffer *buffer,
                  const tl_block ***out)
{
    block_list list = { .arena = arena, .buffer = buffer, .touches = tl_block_reads_buffer };
    tl_stmt_visit(root, collect_block, &list);
    *out = list.blocks;
    return list.count;
}

int tl_writers_of(tl_arena *arena, const tl_stmt *root, const tl_buffer *buffer,
                  const tl_block ***out)
{
    block_list list = { .arena = arena, .buffer = buffer, .touches = tl_block_writes_buffer };
    tl_stmt_visit(root, collect_block, &list);
    *out = list.blocks;
    return list.count;
}
