/* schedule/prim/prim_software_pipeline.c: software_pipeline(loop, stages)
 *
 *                                            alloc T: f32[2, 8]
 *     for k in 0..16                         for p in 0..1
 *       alloc T: f32[8]                        copy_prologue(p)    into T[p % 2]
 *       copy(k)       into T         ->      for k in 0..15
 *       compute(k)    from T                   copy(k + 1)         into T[(k + 1) % 2]
 *                                              compute(k)          from T[k % 2]
 *                                            for e in 0..1
 *                                              compute_epilogue(15 + e)
 *
 * What the loop's body writes into buffers of its own, up to the first block that reads one, runs `stages` - 1
 * iterations ahead, into one of `stages` versions of each buffer, so that it can go on while the rest computes. Blocks
 * that touch them get an ordered iter that says which iteration they are of.
 *
 * Requires  a serial loop of a constant extent of at least `stages`, 2 to 8; allocs first in its body, then blocks or
 *           loops that write those buffers, then the rest, which reads and does not write them; no buffer that one of
 *           the two parts writes and the other touches but those; no intrinsic that takes a region of them; no barrier.
 * Keeps     every value; the loop's iterations run in order from then on.
 */
#include <assert.h>
#include <string.h>
#include "schedule/nest.h"

#define PRIM "software_pipeline"

enum { MOST_STAGES = 8, MOST_BUFFERS = 16 };

typedef struct {
    const tl_stmt *loop;
    int64_t stages, extent;
    int buffer_count;
    const tl_buffer *buffers[MOST_BUFFERS], *versions[MOST_BUFFERS];
    const tl_stmt *copy, *compute;
} plan;

typedef struct {
    const plan *p;
    bool reads, writes, takes_region, has_barrier;
} usage;

static bool visit_usage(const tl_stmt *stmt, void *context)
{
    usage *u = context;
    u->has_barrier |= stmt->kind == TL_STMT_BARRIER;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    for (int i = 0; i < u->p->buffer_count; i++) {
        const tl_buffer *b = u->p->buffers[i];
        bool reads = tl_block_reads_buffer(stmt->u.block, b);
        bool writes = tl_block_writes_buffer(stmt->u.block, b);
        u->reads |= reads;
        u->writes |= writes;
        u->takes_region |= (reads || writes) && stmt->u.block->call != NULL;
    }
    return true;
}

static usage usage_of(const plan *p, const tl_stmt *stmt)
{
    usage u = { .p = p };
    tl_stmt_visit(stmt, visit_usage, &u);
    return u;
}

/* The buffers of the loop's own, and its body in two. */
static tl_status take_apart(tl_schedule *s, plan *p, tl_diag *diag)
{
    const char *name = p->loop->u.loop.var->name;
    const tl_stmt *body = p->loop->u.loop.body;
    for (; body->kind == TL_STMT_ALLOC; body = body->u.alloc.body) {
        if (p->buffer_count == MOST_BUFFERS)
            return tl_refuse(diag, PRIM, name, "it allocates more than %d buffers", MOST_BUFFERS);
        p->buffers[p->buffer_count++] = body->u.alloc.buffer;
    }
    if (p->buffer_count == 0)
        return tl_refuse(diag, PRIM, name,
                         "it allocates no buffer that a part of it writes and the rest reads; "
                         "cache_read and compute_at make one");
    if (body->kind != TL_STMT_SEQ)
        return tl_refuse(diag, PRIM, name, "its body is one part, and a pipeline has two");
    int count = body->u.seq.count, split = 0;
    const tl_stmt *const *items = body->u.seq.items;
    while (split < count && items[split]->kind != TL_STMT_ALLOC) {
        usage u = usage_of(p, items[split]);
        if (u.reads || !u.writes)
            break;
        split++;
    }
    if (split == 0)
        return tl_refuse(diag, PRIM, name, "the first part of its body does not write %s alone",
                         p->buffers[0]->name);
    if (split == count)
        return tl_refuse(diag, PRIM, name, "nothing in it reads %s", p->buffers[0]->name);
    p->copy = tl_stmt_seq(s->arena, items, split);
    p->compute = tl_stmt_seq(s->arena, items + split, count - split);

    usage ahead = usage_of(p, p->copy), rest = usage_of(p, p->compute);
    if (rest.writes)
        return tl_refuse(diag, PRIM, name, "what reads the buffers also writes one of them");
    if (ahead.takes_region || rest.takes_region)
        return tl_refuse(diag, PRIM, name,
                         "an intrinsic takes a region of its buffers: pipeline before tensorize");
    if (ahead.has_barrier || rest.has_barrier)
        return tl_refuse(diag, PRIM, name, "there is a barrier in it: place_barriers comes last");
    for (int i = 0; i < p->buffer_count; i++) {
        if (p->buffers[i]->scope == TL_SCOPE_REGISTER || p->buffers[i]->scope == TL_SCOPE_WARP)
            return tl_refuse(diag, PRIM, name,
                             "buffer %s is in scope %s, where versions cannot take turns; use "
                             "stack, shared or global",
                             p->buffers[i]->name, tl_scope_texts[p->buffers[i]->scope]);
        if (p->buffers[i]->strides != NULL)
            return tl_refuse(diag, PRIM, name,
                             "buffer %s has strides: pipeline before "
                             "storage_align",
                             p->buffers[i]->name);
    }
    return TL_OK;
}

typedef struct {
    const plan *p;
    const tl_stmt *other;
    const tl_buffer *found;
    const tl_block *block;
} conflict_search;

static bool is_own(const plan *p, const tl_buffer *buffer)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i] == buffer)
            return true;
    return false;
}

static void note_conflict(conflict_search *c, const tl_block *block, const tl_buffer *buffer)
{
    if (c->found == NULL && !is_own(c->p, buffer) && tl_stmt_uses_buffer(c->other, buffer)) {
        c->found = buffer;
        c->block = block;
    }
}

static bool visit_written(const tl_stmt *stmt, void *context)
{
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    for (int i = 0; i < block->store_count; i++)
        note_conflict(context, block, block->stores[i].buffer);
    for (int i = 0; block->call && i < block->call->write_count; i++)
        note_conflict(context, block, block->call->writes[i].buffer);
    return true;
}

/* Neither part writes what the other touches, and the first does not go on with what it wrote before. */
static tl_status check_parts(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const char *name = p->loop->u.loop.var->name;
    for (int side = 0; side < 2; side++) {
        conflict_search c = { .p = p, .other = side ? p->copy : p->compute };
        tl_stmt_visit(side ? p->compute : p->copy, visit_written, &c);
        if (c.found)
            return tl_refuse(diag, PRIM, name,
                             "block %s writes %s, which both parts of the body touch: they cannot "
                             "run in different iterations",
                             c.block->name, c.found->name);
    }
    for (int i = 0; i < p->buffer_count; i++) {
        const tl_block **writers;
        int count = tl_writers_of(s->arena, p->copy, p->buffers[i], &writers);
        for (int k = 0; k < count; k++)
            if (writers[k]->combiner != TL_COMBINER_NONE && !writers[k]->has_init)
                return tl_refuse(diag, PRIM, name, "block %s only updates %s", writers[k]->name,
                                 p->buffers[i]->name);
    }
    return TL_OK;
}

/* A part of the body, in another iteration and under other names of blocks and loops. */
typedef struct {
    tl_schedule *s;
    const plan *p;
    const char *suffix; /* of names; NULL: the blocks and loops themselves */
} pipe_part;

static const tl_buffer *version_of(const plan *p, const tl_buffer *buffer)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i] == buffer)
            return p->versions[i];
    return NULL;
}

typedef struct {
    const plan *p;
    const tl_expr *version;
} versioning;

static const tl_expr *const *with_version(tl_arena *arena, const tl_expr *version,
                                          const tl_expr *const *indices, int rank)
{
    const tl_expr **all = TL_NEW_ARRAY(arena, const tl_expr *, rank + 1);
    all[0] = version;
    for (int i = 0; i < rank; i++)
        all[i + 1] = indices[i];
    return all;
}

static const tl_expr *version_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const versioning *v = context;
    const tl_buffer *to = e->kind == TL_EXPR_LOAD ? version_of(v->p, e->u.buffer) : NULL;
    if (to == NULL)
        return NULL;
    return tl_load(arena, to, with_version(arena, v->version, e->args, e->u.buffer->rank));
}

static const tl_expr *version_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, version_load, context);
}

static const tl_stmt *version_block(tl_arena *arena, const pipe_part *part, const tl_stmt *stmt)
{
    const plan *p = part->p;
    if (usage_of(p, stmt).reads || usage_of(p, stmt).writes) {
        tl_var *var = tl_var_make(arena, p->loop->u.loop.var->name, 0, p->extent - 1);
        const tl_expr *version =
            tl_floormod_expr(arena, tl_ref(arena, var), tl_int(arena, p->stages));
        versioning v = { p, version };
        stmt = tl_stmt_map_exprs(arena, stmt, version_loads, &v);
        tl_block *block = tl_block_copy(arena, stmt->u.block);
        tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, block->iter_count + 1);
        iters[0] = (tl_iter){ var, TL_ITER_ORDERED, tl_int(arena, p->extent),
                              tl_ref(arena, p->loop->u.loop.var) };
        memcpy(iters + 1, block->iters, sizeof *iters * (size_t)block->iter_count);
        tl_store *stores = TL_NEW_ARRAY(arena, tl_store, block->store_count);
        for (int i = 0; i < block->store_count; i++) {
            stores[i] = block->stores[i];
            const tl_buffer *to = version_of(p, stores[i].buffer);
            if (to == NULL)
                continue;
            stores[i].indices =
                with_version(arena, version, stores[i].indices, stores[i].buffer->rank);
            stores[i].buffer = to;
        }
        block->iters = iters;
        block->iter_count++;
        block->stores = stores;
        stmt = tl_stmt_block(arena, block);
    }
    if (part->suffix) {
        tl_block *block = tl_block_copy(arena, stmt->u.block);
        block->name = tl_fresh_block_name(part->s, tl_arena_format(arena, "%s_%s", block->name,
                                                                   part->suffix));
        tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, block->iter_count);
        tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, block->iter_count);
        for (int i = 0; i < block->iter_count; i++) {
            iters[i] = block->iters[i];
            iters[i].var = tl_var_derive(arena, iters[i].var, "", iters[i].extent);
            renamed[i] = (tl_binding){ block->iters[i].var, tl_ref(arena, iters[i].var) };
        }
        stmt = tl_stmt_substitute(arena, tl_stmt_block(arena, block), renamed, block->iter_count);
        block = tl_block_copy(arena, stmt->u.block);
        block->iters = iters;
        stmt = tl_stmt_block(arena, block);
    }
    return stmt;
}

/* Bottom-up: blocks get their version, and copies other variables. */
static const tl_stmt *make_part(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const pipe_part *part = context;
    if (stmt->kind == TL_STMT_BLOCK)
        return version_block(arena, part, stmt);
    if (stmt->kind == TL_STMT_PREFETCH && is_own(part->p, stmt->u.prefetch.buffer))
        return NULL;
    if (part->suffix == NULL)
        return stmt;
    if (stmt->kind == TL_STMT_LOOP) {
        tl_var *var = tl_var_derive(arena, stmt->u.loop.var, "", stmt->u.loop.extent);
        tl_binding renamed = { stmt->u.loop.var, tl_ref(arena, var) };
        tl_stmt *copy = tl_stmt_copy(arena, stmt);
        copy->u.loop.var = var;
        copy->u.loop.body = tl_stmt_substitute(arena, stmt->u.loop.body, &renamed, 1);
        return copy;
    }
    if (stmt->kind == TL_STMT_ALLOC) {
        tl_buffer *buffer = TL_NEW(arena, tl_buffer);
        *buffer = *stmt->u.alloc.buffer;
        return tl_stmt_alloc(arena, buffer,
                             tl_stmt_replace_buffer(arena, stmt->u.alloc.body, stmt->u.alloc.buffer,
                                                    buffer));
    }
    return stmt;
}

static const tl_stmt *part_at(tl_schedule *s, const plan *p, const tl_stmt *stmt,
                              const tl_expr *iteration, const char *suffix)
{
    pipe_part context = { s, p, suffix };
    stmt = tl_stmt_rewrite(s->arena, stmt, make_part, &context);
    tl_binding at = { p->loop->u.loop.var, iteration };
    return tl_stmt_substitute(s->arena, stmt, &at, 1);
}

static const tl_stmt *rewrite(tl_schedule *s, const plan *p, const tl_var **steady_var)
{
    tl_arena *arena = s->arena;
    const tl_var *var = p->loop->u.loop.var;
    int64_t ahead = p->stages - 1;
    const tl_expr *lead = tl_int(arena, ahead), *rest = tl_int(arena, p->extent - ahead);
    const tl_var *before = tl_var_derive(arena, var, "_prologue", lead);
    const tl_var *after = tl_var_derive(arena, var, "_epilogue", lead);
    const tl_var *steady = tl_var_derive(arena, var, "", rest);
    const tl_stmt *parts[] = {
        tl_stmt_loop(arena, before, lead, TL_LOOP_SERIAL,
                     part_at(s, p, p->copy, tl_ref(arena, before), "prologue")),
        NULL,
        tl_stmt_loop(arena, after, lead, TL_LOOP_SERIAL,
                     part_at(s, p, p->compute,
                             tl_addi(arena, tl_ref(arena, after), p->extent - ahead), "epilogue")),
    };
    const tl_stmt *next =
        part_at(s, p, p->copy, tl_addi(arena, tl_ref(arena, steady), ahead), NULL);
    const tl_stmt *now = part_at(s, p, p->compute, tl_ref(arena, steady), NULL);
    tl_stmt *loop = tl_stmt_copy(arena, p->loop);
    loop->u.loop.var = steady;
    loop->u.loop.extent = rest;
    loop->u.loop.body = tl_stmt_seq2(arena, next, now);
    parts[1] = loop;
    *steady_var = steady;
    const tl_stmt *with = tl_stmt_seq(arena, parts, 3);
    for (int i = p->buffer_count - 1; i >= 0; i--)
        with = tl_stmt_alloc(arena, p->versions[i], with);
    return with;
}

tl_status tl_apply_software_pipeline(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                     int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    plan p = { .stages = args[1].value };
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &p.loop, diag));
    const char *name = p.loop->u.loop.var->name;
    TL_TRY(tl_check_serial(PRIM, p.loop, diag));
    TL_TRY(tl_check_constant_extent(PRIM, p.loop, INT32_MAX, diag));
    (void)tl_const_int(p.loop->u.loop.extent, &p.extent);
    if (p.stages < 2 || p.stages > MOST_STAGES)
        return tl_refuse(diag, PRIM, name, "%lld stages are not in 2..%d", (long long)p.stages,
                         MOST_STAGES);
    if (p.extent < p.stages)
        return tl_refuse(diag, PRIM, name, "its extent %lld is less than the %lld stages",
                         (long long)p.extent, (long long)p.stages);
    tl_path path = tl_path_to_loop(s->arena, s->program->body, p.loop->u.loop.var);
    if (path.count == 0)
        return tl_refuse(diag, PRIM, name, "it is in the prepare part, which runs once");
    TL_TRY(take_apart(s, &p, diag));
    TL_TRY(check_parts(s, &p, diag));

    for (int i = 0; i < p.buffer_count; i++) {
        const tl_buffer *from = p.buffers[i];
        tl_buffer *to = TL_NEW(s->arena, tl_buffer);
        *to = *from;
        to->rank = from->rank + 1;
        to->shape = with_version(s->arena, tl_int(s->arena, p.stages), from->shape, from->rank);
        p.versions[i] = to;
    }
    const tl_var *steady;
    const tl_stmt *with = rewrite(s, &p, &steady);
    tl_schedule_rename_loop(s, p.loop->u.loop.var, steady);
    const tl_program *before = s->program;
    tl_schedule_replace(s, &path, with);
    return tl_check_parallel_loops(s, before, PRIM, diag);
}
