/* ir/program/program.c: the statements of a Program and their constructors. */
#include "ir/program/program.h"
#include <assert.h>
#include <string.h>

const tl_loop_kind_info tl_loop_kind_infos[TL_LOOP_KIND_COUNT] = {
#define LOOP(kind, text, gpu) [TL_LOOP_##kind] = { text, gpu },
#include "ir/program/loop_kinds.def"
#undef LOOP
};

bool tl_loop_kind_joins(tl_loop_kind kind)
{
    return kind == TL_LOOP_VECTORIZED || kind == TL_LOOP_THREAD_X;
}

bool tl_loop_kind_shares(tl_loop_kind kind, tl_scope scope)
{
    switch (kind) {
    case TL_LOOP_PARALLEL:
    case TL_LOOP_BLOCK_X:
    case TL_LOOP_BLOCK_Y:
    case TL_LOOP_BLOCK_Z:
        return scope == TL_SCOPE_GLOBAL;
    case TL_LOOP_THREAD_X:
    case TL_LOOP_THREAD_Y:
    case TL_LOOP_THREAD_Z:
        return scope != TL_SCOPE_STACK && scope != TL_SCOPE_REGISTER;
    case TL_LOOP_SERIAL:
    case TL_LOOP_VECTORIZED:
    case TL_LOOP_UNROLLED:
    case TL_LOOP_VTHREAD:
    case TL_LOOP_KIND_COUNT:
        break;
    }
    return true;
}

const tl_combiner_info tl_combiner_infos[TL_COMBINER_COUNT] = {
#define COMBINER(name, text, values) [TL_COMBINER_##name] = { text, values },
#include "ir/program/combiners.def"
#undef COMBINER
};

/* The least (sign -1) or greatest (sign +1) value of a dtype. */
static const tl_expr *extreme(tl_arena *arena, tl_dtype dtype, int sign)
{
    const tl_dtype_info *info = &tl_dtype_infos[dtype];
    if (tl_dtype_is_float(dtype))
        return tl_float(arena, dtype, sign * __builtin_inf());
    return tl_int_of(arena, dtype, sign > 0 ? (int64_t)info->largest : info->least);
}

const tl_expr *tl_combiner_identity(tl_arena *arena, tl_combiner c, tl_dtype dtype, int index)
{
    assert(c < TL_COMBINER_COUNT && index >= 0);
    switch (c) {
    case TL_COMBINER_SUM:
        return tl_constant(arena, dtype, 0);
    case TL_COMBINER_PROD:
        return tl_constant(arena, dtype, 1);
    case TL_COMBINER_MIN:
        return extreme(arena, dtype, 1);
    case TL_COMBINER_MAX:
        return extreme(arena, dtype, -1);
    case TL_COMBINER_ALL:
        return tl_constant(arena, dtype, 1);
    case TL_COMBINER_ANY:
        return tl_constant(arena, dtype, 0);
    case TL_COMBINER_ARGMIN:
        return extreme(arena, dtype, 1); /* of the value and of the index */
    case TL_COMBINER_ARGMAX:
        return extreme(arena, dtype, index == 0 ? -1 : 1);
    case TL_COMBINER_NONE:
    case TL_COMBINER_COUNT:
        break;
    }
    assert(!"an assignment has no identity");
    return tl_constant(arena, dtype, 0);
}

/* ---- constructors ---- */

static tl_stmt *stmt(tl_arena *arena, tl_stmt_kind kind)
{
    tl_stmt *s = TL_NEW(arena, tl_stmt);
    s->kind = kind;
    return s;
}

const tl_stmt *tl_stmt_loop(tl_arena *arena, const tl_var *var, const tl_expr *extent,
                            tl_loop_kind kind, const tl_stmt *body)
{
    assert(kind < TL_LOOP_KIND_COUNT && var != NULL);
    assert(extent->dtype == TL_I64 && body != NULL);
    tl_stmt *s = stmt(arena, TL_STMT_LOOP);
    s->u.loop.var = var;
    s->u.loop.extent = extent;
    s->u.loop.kind = kind;
    s->u.loop.body = body;
    return s;
}

static int flat_count(const tl_stmt *s)
{
    if (s == NULL)
        return 0;
    if (s->kind != TL_STMT_SEQ)
        return 1;
    return s->u.seq.count; /* a SEQ is flat by construction */
}

const tl_stmt *tl_stmt_seq(tl_arena *arena, const tl_stmt *const *items, int count)
{
    assert(count >= 0 && (count == 0 || items != NULL));
    int total = 0;
    for (int i = 0; i < count; i++)
        total += flat_count(items[i]);

    const tl_stmt **flat = TL_NEW_ARRAY(arena, const tl_stmt *, total);
    int at = 0;
    for (int i = 0; i < count; i++) {
        int n = flat_count(items[i]);
        if (n == 0)
            continue;
        if (items[i]->kind == TL_STMT_SEQ)
            memcpy(&flat[at], items[i]->u.seq.items, (size_t)n * sizeof *flat);
        else
            flat[at] = items[i];
        at += n;
    }
    if (total == 1)
        return flat[0];
    tl_stmt *s = stmt(arena, TL_STMT_SEQ);
    s->u.seq.count = total;
    s->u.seq.items = flat;
    return s;
}

const tl_stmt *tl_stmt_seq2(tl_arena *arena, const tl_stmt *a, const tl_stmt *b)
{
    const tl_stmt *items[2] = { a, b };
    return tl_stmt_seq(arena, items, 2);
}

const tl_stmt *tl_stmt_block(tl_arena *arena, const tl_block *block)
{
    assert(block != NULL && block->iter_count >= 0 && block->store_count >= 0);
    tl_stmt *s = stmt(arena, TL_STMT_BLOCK);
    s->u.block = block;
    return s;
}

const tl_stmt *tl_stmt_alloc(tl_arena *arena, const tl_buffer *buffer, const tl_stmt *body)
{
    assert(buffer != NULL);
    assert(body != NULL);
    tl_stmt *s = stmt(arena, TL_STMT_ALLOC);
    s->u.alloc.buffer = buffer;
    s->u.alloc.body = body;
    return s;
}

const tl_stmt *tl_stmt_barrier(tl_arena *arena)
{
    return stmt(arena, TL_STMT_BARRIER);
}

static const tl_expr *const *copy_exprs(tl_arena *arena, const tl_expr *const *exprs, int count)
{
    return tl_arena_copy(arena, exprs, (size_t)count * sizeof *exprs, _Alignof(tl_expr *));
}

const tl_stmt *tl_stmt_prefetch(tl_arena *arena, const tl_buffer *buffer,
                                const tl_expr *const *indices, int level)
{
    assert(level >= 0);
    tl_stmt *s = stmt(arena, TL_STMT_PREFETCH);
    s->u.prefetch.buffer = buffer;
    s->u.prefetch.indices = copy_exprs(arena, indices, buffer->rank);
    s->u.prefetch.level = level;
    return s;
}

const tl_stmt *tl_stmt_if(tl_arena *arena, const tl_expr *condition, const tl_stmt *then,
                          const tl_stmt *otherwise)
{
    assert(condition->dtype == TL_BOOL && then != NULL);
    tl_stmt *s = stmt(arena, TL_STMT_IF);
    s->u.branch.condition = condition;
    s->u.branch.then = then;
    s->u.branch.otherwise = otherwise;
    return s;
}

const tl_stmt *tl_stmt_store(tl_arena *arena, const tl_buffer *buffer,
                             const tl_expr *const *indices, const tl_expr *value)
{
    assert(value->dtype == buffer->dtype);
    tl_stmt *s = stmt(arena, TL_STMT_STORE);
    s->u.store.buffer = buffer;
    s->u.store.indices = copy_exprs(arena, indices, buffer->rank);
    s->u.store.value = value;
    return s;
}

const tl_stmt *tl_stmt_call(tl_arena *arena, const tl_intrinsic_call *call)
{
    assert(call != NULL);
    tl_stmt *s = stmt(arena, TL_STMT_CALL);
    s->u.call = call;
    return s;
}

const tl_stmt *tl_stmt_with_body(tl_arena *arena, const tl_stmt *loop_or_alloc, const tl_stmt *body)
{
    bool is_loop = loop_or_alloc->kind == TL_STMT_LOOP;
    assert(is_loop || loop_or_alloc->kind == TL_STMT_ALLOC);
    if (body == (is_loop ? loop_or_alloc->u.loop.body : loop_or_alloc->u.alloc.body))
        return loop_or_alloc;
    tl_stmt *s = tl_stmt_copy(arena, loop_or_alloc);
    if (is_loop)
        s->u.loop.body = body;
    else
        s->u.alloc.body = body;
    return s;
}

bool tl_block_rounds(const tl_block *block)
{
    return (block->combiner == TL_COMBINER_SUM || block->combiner == TL_COMBINER_PROD) &&
           block->store_count > 0 && tl_dtype_is_float(block->stores[0].buffer->dtype);
}

tl_block *tl_block_copy(tl_arena *arena, const tl_block *block)
{
    return tl_arena_copy(arena, block, sizeof *block, _Alignof(tl_block));
}

tl_stmt *tl_stmt_copy(tl_arena *arena, const tl_stmt *s)
{
    return tl_arena_copy(arena, s, sizeof *s, _Alignof(tl_stmt));
}

tl_program *tl_program_copy(tl_arena *arena, const tl_program *program)
{
    return tl_arena_copy(arena, program, sizeof *program, _Alignof(tl_program));
}

/* ---- finding ---- */

typedef struct {
    const char *name;
    const tl_var *var;
    const tl_block *block;
    const tl_stmt *loop;
    const tl_buffer *buffer;
} finding;

static bool find_block(const tl_stmt *s, void *context)
{
    finding *f = context;
    if (s->kind == TL_STMT_BLOCK && f->block == NULL && strcmp(s->u.block->name, f->name) == 0)
        f->block = s->u.block;
    return f->block == NULL;
}

static bool find_loop(const tl_stmt *s, void *context)
{
    finding *f = context;
    if (s->kind == TL_STMT_LOOP && f->loop == NULL && s->u.loop.var == f->var)
        f->loop = s;
    return f->loop == NULL;
}

static bool find_alloc(const tl_stmt *s, void *context)
{
    finding *f = context;
    if (s->kind == TL_STMT_ALLOC && f->buffer == NULL &&
        strcmp(s->u.alloc.buffer->name, f->name) == 0)
        f->buffer = s->u.alloc.buffer;
    return f->buffer == NULL;
}

static void find_everywhere(const tl_program *program, tl_stmt_visitor *visit, finding *f)
{
    if (program->body != NULL)
        tl_stmt_visit(program->body, visit, f);
    if (program->prepare != NULL)
        tl_stmt_visit(program->prepare, visit, f);
}

const tl_block *tl_program_find_block(const tl_program *program, const char *name)
{
    finding f = { .name = name };
    find_everywhere(program, find_block, &f);
    return f.block;
}

const tl_stmt *tl_program_find_loop(const tl_program *program, const tl_var *var)
{
    finding f = { .var = var };
    find_everywhere(program, find_loop, &f);
    return f.loop;
}

const tl_buffer *tl_program_find_buffer(const tl_program *program, const char *name)
{
    for (int i = 0; i < program->param_count; i++)
        if (strcmp(program->params[i]->name, name) == 0)
            return program->params[i];
    for (int i = 0; i < program->prepared_count; i++)
        if (strcmp(program->prepared[i]->name, name) == 0)
            return program->prepared[i];
    finding f = { .name = name };
    find_everywhere(program, find_alloc, &f);
    return f.buffer;
}
