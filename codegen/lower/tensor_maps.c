/* codegen/lower/tensor_maps.c: the boxes that the tensor memory accelerator copies, as the kernel's launch tells them to it. */
#include <assert.h>
#include <string.h>
#include "codegen/lower/passes.h"
#include "codegen/lower/plan_private.h"
#include "ir/expr/index.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

enum { MOST_MAPS = 16, MOST_BOX = 256, PIECE = 16 };

static bool is_copy(const tl_intrinsic_call *call, bool *is_load)
{
    *is_load = strcmp(call->name, "bulk_load") == 0;
    return *is_load || strcmp(call->name, "bulk_store") == 0;
}

typedef struct {
    tl_planner *p;
    tl_status status;
} search;

static tl_status refuse(const tl_planner *p, const tl_buffer *buffer, const char *why)
{
    return tl_fail(p->diag, TL_UNSUPPORTED, "a bulk copy of %s: %s", buffer->name, why);
}

static int number_of(const tl_planner *p, const tl_buffer *buffer)
{
    const tl_program *program = p->kernel->program;
    for (int i = 0; i < program->param_count; i++)
        if (program->params[i] == buffer)
            return i;
    for (int i = 0; i < program->prepared_count; i++)
        if (program->prepared[i] == buffer)
            return program->param_count + i;
    return TL_GPU_MAP_SCRATCH;
}

static bool is_in_scratch(const tl_planner *p, const tl_buffer *buffer)
{
    for (int i = 0; i < p->local_count; i++)
        if (p->locals[i].placement.buffer == buffer)
            return p->locals[i].placement.place == TL_PLACE_SHARED;
    return false;
}

/* The box as it lies in shared memory is packed: each of its axes steps over all those inside of it. */
static bool is_packed(const tl_planner *p, const tl_region *shared)
{
    const tl_expr *const *strides = tl_buffer_strides(p->arena, shared->buffer);
    int64_t size = 1, extent = 0, stride = 0;
    for (int a = shared->buffer->rank - 1; a >= 0; a--) {
        if (!tl_const_int(shared->extent[a], &extent) || !tl_const_int(strides[a], &stride))
            return false;
        if (extent != 1 && stride != size)
            return false;
        size *= extent;
    }
    return true;
}

static tl_status make_map(const tl_planner *p, const tl_region *global, const tl_region *shared,
                          tl_map_plan *out)
{
    const tl_buffer *buffer = global->buffer;
    const tl_expr *const *strides = tl_buffer_strides(p->arena, buffer);
    int64_t size = (int64_t)tl_dtype_size(buffer->dtype);
    *out = (tl_map_plan){ .buffer = number_of(p, buffer),
                          .from = buffer,
                          .rank = buffer->rank,
                          .swizzle = shared->buffer->swizzle };
    if (out->buffer == TL_GPU_MAP_SCRATCH && !is_in_scratch(p, buffer))
        return refuse(p, buffer,
                      "it is neither an argument of the kernel nor handed from launch to launch, "
                      "and only these have maps");
    if (buffer->rank < 1 || buffer->rank > TL_GPU_MAP_AXES)
        return refuse(p, buffer, "the hardware knows 1 to 5 axes");
    for (int i = 0; i < buffer->rank; i++) { /* innermost first */
        int a = buffer->rank - 1 - i;
        if (!tl_const_int(buffer->shape[a], &out->extents[i]) ||
            !tl_const_int(strides[a], &out->strides[i]) ||
            !tl_const_int(global->extent[a], &out->box[i]))
            return refuse(p, buffer, "its extents depend on dims");
        out->strides[i] *= size;
        if (i > 0 && out->strides[i] % PIECE != 0)
            return refuse(p, buffer, "its rows are no multiples of 16 bytes");
        if (out->box[i] < 1 || out->box[i] > MOST_BOX)
            return refuse(p, buffer, "a box has at most 256 elements along an axis");
    }
    int64_t row = out->box[0] * size;
    if (row % PIECE != 0)
        return refuse(p, buffer, "the rows of its box are no multiples of 16 bytes");
    if (out->swizzle != 0 && row > out->swizzle)
        return refuse(p, buffer, "the rows of its box are longer than the swizzle");
    if (!is_packed(p, shared))
        return refuse(p, shared->buffer, "the box does not lie in one piece in shared memory");
    return TL_OK;
}

static bool is_map(const tl_map_plan *map, const tl_region *global, const tl_buffer *shared)
{
    bool same = map->from == global->buffer && map->swizzle == shared->swizzle;
    for (int i = 0; i < map->rank && same; i++)
        same = tl_is_int(global->extent[map->rank - 1 - i], map->box[i]);
    return same;
}

static int find_map(const tl_map_plan *maps, int count, const tl_intrinsic_call *call)
{
    bool is_load;
    if (!is_copy(call, &is_load))
        return -1;
    const tl_region *global = is_load ? &call->reads[0] : &call->writes[0];
    const tl_region *shared = is_load ? &call->writes[0] : &call->reads[0];
    for (int i = 0; i < count; i++)
        if (is_map(&maps[i], global, shared->buffer))
            return i;
    return -1;
}

int tl_plan_find_map(const tl_kernel_plan *plan, const tl_intrinsic_call *call)
{
    return find_map(plan->maps, plan->map_count, call);
}

/* Along a row a box begins at a multiple of 16 bytes: to hardware all else is an illegal instruction. */
static tl_status check_begin(const tl_planner *p, const tl_region *global)
{
    int64_t size = (int64_t)tl_dtype_size(global->buffer->dtype);
    const tl_expr *begin = global->begin[global->buffer->rank - 1];
    if (size >= PIECE || tl_is_multiple(p->arena, begin, PIECE / tl_max64(size, 1)))
        return TL_OK;
    return tl_fail(p->diag, TL_UNSUPPORTED,
                   "a bulk copy of %s: along a row its box begins at element %s, which may be no "
                   "multiple of 16 bytes",
                   global->buffer->name, tl_expr_text(p->arena, begin));
}

static bool see_copy(const tl_stmt *stmt, void *context)
{
    search *s = context;
    bool is_load;
    if (stmt->kind != TL_STMT_CALL || s->status != TL_OK || !is_copy(stmt->u.call, &is_load))
        return s->status == TL_OK;
    const tl_intrinsic_call *call = stmt->u.call;
    const tl_region *global = is_load ? &call->reads[0] : &call->writes[0];
    tl_map_plan map;
    if (global->buffer->rank > 0)
        s->status = check_begin(s->p, global);
    if (s->status != TL_OK || find_map(s->p->maps, s->p->map_count, call) >= 0)
        return s->status == TL_OK;
    s->status = make_map(s->p, global, is_load ? &call->writes[0] : &call->reads[0], &map);
    if (s->status == TL_OK && s->p->map_count == MOST_MAPS)
        s->status =
            tl_fail(s->p->diag, TL_UNSUPPORTED,
                    "the kernel makes bulk copies of more than %d kinds of boxes", MOST_MAPS);
    if (s->status != TL_OK)
        return false;
    TL_ROOM(s->p->arena, s->p->maps, s->p->map_count, s->p->map_capacity);
    s->p->maps[s->p->map_count++] = map;
    return true;
}

tl_status tl_plan_maps(tl_planner *p, const tl_stmt *body)
{
    search s = { p, TL_OK };
    tl_stmt_visit(body, see_copy, &s);
    return s.status;
}

void tl_plan_place_maps(tl_planner *p, const tl_kernel_plan *plan)
{
    for (int i = 0; i < p->map_count; i++)
        if (p->maps[i].buffer == TL_GPU_MAP_SCRATCH) {
            bool is_known =
                tl_const_int(tl_plan_find(plan, p->maps[i].from)->offset, &p->maps[i].offset);
            assert(is_known); /* what is of constant size lies in front of all else */
            (void)is_known;
        }
}
