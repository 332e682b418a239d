/* schedule/sketch/sketch_parallel.c: which loops of each phase run on the threads of the pool. */
#include "ir/program/machine.h"
#include "schedule/sketch/sketch_private.h"

/* A phase with fewer runs on one thread: until the threads have met it takes about as long. */
#define INSTANCES_PER_NS 40.96

typedef struct {
    const tl_var *var;
    bool data_parallel;
    int64_t instances;
    const tl_block *last;
} nest_facts;

static bool look(const tl_stmt *stmt, void *context)
{
    nest_facts *facts = context;
    if (stmt->kind == TL_STMT_BLOCK) {
        const tl_block *block = stmt->u.block;
        facts->last = block;
        facts->instances +=
            tl_block_instances(block) > INT64_MAX / 64 ? INT64_MAX / 64 : tl_block_instances(block);
        bool drives = false;
        for (int i = 0; i < block->iter_count; i++)
            if (tl_expr_uses_var(block->iters[i].binding, facts->var)) {
                drives = true;
                if (block->iters[i].kind != TL_ITER_SPATIAL)
                    facts->data_parallel = false;
            }
        if (!drives || block->call != NULL)
            facts->data_parallel = false;
    }
    return true;
}

/* The phases: items of the top-level sequence, through allocs. */
static void collect(const tl_stmt *stmt, const tl_stmt **out, int *count, int capacity)
{
    while (stmt != NULL && stmt->kind == TL_STMT_ALLOC)
        stmt = stmt->u.alloc.body;
    if (stmt == NULL || *count == capacity)
        return;
    if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            collect(stmt->u.seq.items[i], out, count, capacity);
    } else {
        out[(*count)++] = stmt;
    }
}

/* How many of the phase's outer loops are fused and run in parallel: as many as come to `goal` iterations. */
static int decide_depth(tl_schedule *s, const tl_stmt *phase, int64_t goal)
{
    int64_t iterations = 1;
    int depth = 0, initial = -1;
    const tl_stmt *stmt = phase;
    int64_t least = (int64_t)(INSTANCES_PER_NS * tl_machine_of(s->target)->barrier_ns);
    for (;
         depth < TL_MAX_LOOPS && stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == TL_LOOP_SERIAL;
         stmt = stmt->u.loop.body, depth++) {
        nest_facts facts = { stmt->u.loop.var, true, 0, NULL };
        tl_stmt_visit(stmt->u.loop.body, look, &facts);
        bool once = tl_max_extent(stmt->u.loop.extent) == 1;
        if (iterations >= goal && initial < 0)
            initial = depth;
        if ((!facts.data_parallel && !once) || facts.instances < least)
            break;
        iterations *= tl_max_extent(stmt->u.loop.extent);
    }
    initial = initial < 0 ? depth : initial;
    if (s->decide == NULL || depth == 0 || s->target->cores == 1)
        return initial;
    nest_facts facts = { phase->u.loop.var, true, 0, NULL };
    tl_stmt_visit(phase, look, &facts);
    return (int)tl_decide_range(s, facts.last->name, "parallel", 0, depth, initial);
}

tl_status tl_sketch_parallel(tl_schedule *s, int64_t goal, tl_diag *diag)
{
    const tl_stmt *phases[128];
    int count = 0;
    collect(s->program->body, phases, &count, 128);
    for (int p = 0; p < count; p++) {
        tl_loop_ref chain[TL_MAX_LOOPS], fused;
        int64_t iterations = 1;
        const tl_stmt *stmt = phases[p];
        int depth = decide_depth(s, stmt, goal);
        for (int i = 0; i < depth; i++, stmt = stmt->u.loop.body) {
            iterations *= tl_max_extent(stmt->u.loop.extent);
            chain[i] = tl_schedule_name_loop(s, stmt->u.loop.var);
        }
        /* fewer loops when it cannot be shown that the iterations of all of them are independent */
        for (; depth > 0 && iterations > 1; iterations /= tl_sketch_extent(s, chain[--depth])) {
            tl_schedule_state before = tl_schedule_save(s);
            tl_status status = depth > 1 ? tl_fuse(s, chain, depth, &fused, NULL) : TL_OK;
            if (status == TL_OK)
                status = tl_parallel(s, depth > 1 ? fused : chain[0], NULL);
            if (status == TL_OK)
                break;
            if (status != TL_ILLEGAL_SCHEDULE)
                return tl_fail(diag, status, "default schedule: a parallel loop of phase %d", p);
            tl_schedule_restore(s, &before);
        }
    }
    return TL_OK;
}
