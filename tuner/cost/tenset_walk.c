/* tuner/cost/tenset_walk.c: walks over a program as over what TVM lowers a schedule to: where a reduction begins, its
 * first value is a statement of its own, before the outermost loop that reduces, in copies of the loops inside it
 * that do not:
 *
 *     for i                          for i
 *       for k                          for j_init   C[i, j] = 0
 *         for j                 ->     for k
 *           C[i, j] = sum(...)           for j      C[i, j] = C[i, j] + ... */
#include <assert.h>
#include <stdio.h>
#include "ir/expr/index.h"
#include "tuner/cost/features.h"
#include "tuner/cost/tenset_private.h"

static tl_tenset_loop *make_loop(tl_arena *arena, const tl_stmt *stmt)
{
    tl_tenset_loop *loop = TL_NEW(arena, tl_tenset_loop);
    int64_t extent;
    bool constant = tl_const_int(stmt->u.loop.extent, &extent);
    double most = (double)tl_expr_range(stmt->u.loop.extent).max;
    loop->var = stmt->u.loop.var;
    loop->extent = constant && extent > 0 ? (double)extent : 1;
    loop->span = most > 1 ? most : 1;
    loop->kind = stmt->u.loop.kind;
    return loop;
}

static bool reduces(const tl_block *block, const tl_var *var)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            tl_expr_uses_var(block->iters[i].binding, var))
            return true;
    return false;
}

static bool begins(const tl_block *block)
{
    return block->combiner != TL_COMBINER_NONE && block->has_init && block->call == NULL;
}

static bool reduces_outside(const tl_tenset_walk *walk, int depth, const tl_block *block)
{
    for (int d = 0; d < depth; d++)
        if (reduces(block, walk->loops[d]->var))
            return true;
    return false;
}

static void store_first_values(tl_tenset_walk *walk, const tl_block *block)
{
    for (int i = 0; i < block->store_count; i++)
        tl_tenset_store(walk, block, i, true);
}

/* The first values of what begins to be reduced in that loop; `inner`: the loops from it inwards that were passed. */
typedef struct {
    tl_tenset_walk *walk;
    int count;
    const tl_stmt *inner[TL_TENSET_DEPTH];
} beginning;

static void begin_block(beginning *b, const tl_block *block)
{
    tl_tenset_walk *walk = b->walk;
    int outside = walk->depth;
    if (!begins(block) || !reduces(block, b->inner[0]->u.loop.var) ||
        reduces_outside(walk, outside, block))
        return;
    for (int i = 0; i < b->count && walk->depth < TL_TENSET_DEPTH; i++)
        if (!reduces(block, b->inner[i]->u.loop.var))
            walk->loops[walk->depth++] = make_loop(walk->arena, b->inner[i]);
    store_first_values(walk, block);
    walk->depth = outside;
}

static void begin_in(beginning *b, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            begin_in(b, stmt->u.seq.items[i]);
    } else if (stmt->kind == TL_STMT_ALLOC) {
        begin_in(b, stmt->u.alloc.body);
    } else if (stmt->kind == TL_STMT_BLOCK) {
        begin_block(b, stmt->u.block);
    } else if (stmt->kind == TL_STMT_LOOP && b->count < TL_TENSET_DEPTH) {
        b->inner[b->count++] = stmt;
        begin_in(b, stmt->u.loop.body);
        b->count--;
    }
}

static void walk_stmt(tl_tenset_walk *walk, const tl_stmt *stmt);

static void walk_loop(tl_tenset_walk *walk, const tl_stmt *stmt)
{
    beginning b = { .walk = walk };
    bool deep = walk->depth == TL_TENSET_DEPTH;
    begin_in(&b, stmt);
    if (!deep)
        walk->loops[walk->depth++] = make_loop(walk->arena, stmt);
    walk->is_gpu |= tl_loop_kind_infos[stmt->u.loop.kind].gpu;
    walk_stmt(walk, stmt->u.loop.body);
    walk->depth -= !deep;
}

static void walk_block(tl_tenset_walk *walk, const tl_block *block)
{
    if (begins(block) && !reduces_outside(walk, walk->depth, block))
        store_first_values(walk, block);
    for (int i = 0; i < block->store_count; i++)
        tl_tenset_store(walk, block, i, false);
}

static void walk_stmt(tl_tenset_walk *walk, const tl_stmt *stmt)
{
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            walk_stmt(walk, stmt->u.seq.items[i]);
        return;
    case TL_STMT_ALLOC:
        walk_stmt(walk, stmt->u.alloc.body);
        tl_tenset_alloc(walk, stmt->u.alloc.buffer);
        return;
    case TL_STMT_LOOP:
        walk_loop(walk, stmt);
        return;
    case TL_STMT_BLOCK:
        walk_block(walk, stmt->u.block);
        return;
    case TL_STMT_BARRIER: /* they store nothing */
    case TL_STMT_PREFETCH:
    case TL_STMT_IF: /* these three come with lowering, after scheduling */
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        return;
    }
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

typedef enum { RAW, LOG } kind;
typedef struct {
    const char *text;
    kind kind;
} column;
static const column statement_columns[] = {
#define TENSET_STATEMENT(name, kind, text, words) { text, kind },
#include "tuner/cost/tenset.def"
#undef TENSET_STATEMENT
};
static const column access_columns[] = {
#define TENSET_ACCESS(name, kind, text, words) { text, kind },
#include "tuner/cost/tenset.def"
#undef TENSET_ACCESS
};
static const column scope_columns[] = {
#define TENSET_SCOPE(name, kind, text, words) { text, kind },
#include "tuner/cost/tenset.def"
#undef TENSET_SCOPE
};

/* Which column it is; `access`: of which access, -1: of none. NULL: of the curve. */
static const column *column_of(int at, int *access)
{
    *access = -1;
    if (at < TL_TENSET_FIRST_ACCESS)
        return &statement_columns[at];
    if (at >= TL_TENSET_FIRST_SCOPE)
        return &scope_columns[at - TL_TENSET_FIRST_SCOPE];
    if (at >= TL_TENSET_FIRST_CURVE)
        return NULL;
    *access = (at - TL_TENSET_FIRST_ACCESS) / TL_TENSET_ACCESS_WIDTH;
    return &access_columns[(at - TL_TENSET_FIRST_ACCESS) % TL_TENSET_ACCESS_WIDTH];
}

void tl_tenset_name(int at, char out[48])
{
    assert(at >= 0 && at < TL_TENSET_WIDTH);
    int access;
    const column *c = column_of(at, &access);
    if (c == NULL)
        snprintf(out, 48, "arith_intensity_curve_%d", at - TL_TENSET_FIRST_CURVE);
    else if (access >= 0)
        snprintf(out, 48, "B%d.%s", access, c->text);
    else
        snprintf(out, 48, "%s", c->text);
}

int tl_tenset_features_of(tl_arena *arena, const tl_program *program, const float **rows)
{
    tl_tenset_walk walk = { .arena = arena };
    walk_stmt(&walk, program->body);
    float *out = TL_NEW_ARRAY(arena, float, walk.row_count *TL_TENSET_WIDTH);
    for (int r = 0; r < walk.row_count; r++)
        for (int i = 0, access; i < TL_TENSET_WIDTH; i++) {
            const column *c = column_of(i, &access);
            double value = walk.rows[r].values[i];
            out[(size_t)r * TL_TENSET_WIDTH + (size_t)i] =
                c != NULL && c->kind == LOG ? tl_feature_log(value) : (float)value;
        }
    *rows = out;
    return walk.row_count;
}
