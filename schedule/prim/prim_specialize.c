/* schedule/prim/prim_specialize.c: specialize(loop, copying, computing)
 *
 *     for k in 0..13 {pipeline = 4}   ->   for k in 0..13 {compute_registers = 232, copy_registers = 40, pipeline = 4}
 *
 * Of a pipeline, a row of threads more than those that compute makes the copies, and the others only compute
 * (codegen/lower/specialize_warps.c). Registers change hands: a thread that copies keeps `copying` of them, one that computes
 * gets `computing`.
 *
 * Requires  a loop that software_pipeline has made, all whose copies into shared memory are bulk_copy; numbers of registers that
 *           are multiples of 8 from 24 to 256; a GPU that can (sm_90a), or no target.
 * Keeps     everything: a remark changes nothing that is computed.
 */
#include <assert.h>
#include <string.h>
#include "schedule/schedule_private.h"

#define PRIM "specialize"

enum { LEAST = 24, MOST = 256, STEP = 8 };

static bool find_copy(const tl_stmt *stmt, void *context)
{
    const tl_block **found = context;
    for (int i = 0; stmt->kind == TL_STMT_BLOCK && i < stmt->u.block->store_count; i++)
        if (stmt->u.block->stores[i].buffer->scope == TL_SCOPE_SHARED)
            *found = stmt->u.block;
    return *found == NULL;
}

static bool has_mark(const tl_stmt *loop, const char *key)
{
    for (int i = 0; i < loop->u.loop.annotation_count; i++)
        if (strcmp(loop->u.loop.annotations[i].key, key) == 0)
            return true;
    return false;
}

static const tl_stmt *mark(tl_arena *arena, const tl_stmt *loop, const char *key, int64_t value)
{
    int count = loop->u.loop.annotation_count;
    tl_annotation *annotations = TL_NEW_ARRAY(arena, tl_annotation, count + 1);
    for (int i = 0; i < count; i++)
        annotations[i] = loop->u.loop.annotations[i];
    annotations[count] = (tl_annotation){ key, value };
    return tl_loop_with_annotations(arena, loop, count + 1, annotations);
}

tl_status tl_apply_specialize(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                              int *out_count, tl_diag *diag)
{
    assert(arg_count == 3 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &loop, diag));
    const char *name = loop->u.loop.var->name;
    if (s->target &&
        (!tl_target_is_gpu(s->target) || s->target->gpu.sm != 90 || !s->target->gpu.is_exact))
        return tl_refuse(diag, PRIM, name, "the target is %s, and it takes sm_90a", s->target->cpu);
    if (!has_mark(loop, "pipeline"))
        return tl_refuse(diag, PRIM, name,
                         "it is no pipeline that fills shared memory: software_pipeline first");
    if (has_mark(loop, "copy_registers"))
        return tl_refuse(diag, PRIM, name, "it is specialized already");
    for (int i = 1; i < 3; i++)
        if (args[i].value < LEAST || args[i].value > MOST || args[i].value % STEP != 0)
            return tl_refuse(diag, PRIM, name, "%lld registers are no multiple of %d from %d to %d",
                             (long long)args[i].value, STEP, LEAST, MOST);
    const tl_block *copy = NULL;
    tl_stmt_visit(loop, find_copy, &copy);
    if (copy != NULL)
        return tl_refuse(diag, PRIM, name,
                         "threads make the copy %s, and the row that copies does so by "
                         "bulk_copy alone",
                         copy->name);
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    const tl_stmt *marked = mark(s->arena, loop, "copy_registers", args[1].value);
    tl_schedule_replace(s, &path, mark(s->arena, marked, "compute_registers", args[2].value));
    return TL_OK;
}
