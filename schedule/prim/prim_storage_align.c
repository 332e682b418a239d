/* schedule/prim/prim_storage_align.c: storage_align(buffer, axis, factor, offset)
 *
 *     alloc T: f32[32, 64]           ->     alloc T: f32[32, 64] strides [65, 1]
 *
 * The elements of the axes inside `axis` are followed by so much room that the stride of `axis` is the next number
 * that is `offset` modulo `factor`. storage_align(T, 0, 32, 1) lets the rows of T begin in different banks,
 * storage_align(T, 0, 16, 0) at cache lines. Axes outside of it follow.
 *
 * Requires  a local buffer of constant shape in memory (no register, no warp fragment); factor at least 1, offset in
 *           0..factor-1; fewer than 2^31 elements with the room.
 * Keeps     what is computed: indices mean the same elements.
 */
#include <assert.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

#define PRIM "storage_align"

static tl_status check(tl_schedule *s, const char *name, const tl_buffer *b, const tl_arg *args,
                       tl_diag *diag)
{
    int64_t axis = args[1].value, factor = args[2].value, offset = args[3].value, extent;
    if (b == NULL)
        return tl_refuse(diag, PRIM, name, "there is no such buffer in kernel %s",
                         s->program->name);
    if (b->role != TL_ROLE_LOCAL)
        return tl_refuse(diag, PRIM, name,
                         "the buffer is an argument of the kernel or prepared, whose layout is "
                         "given; cache_read or cache_write gives a local one");
    if (b->scope == TL_SCOPE_REGISTER || tl_scope_threads[b->scope] > 0)
        return tl_refuse(diag, PRIM, name,
                         "it is in scope %s, where elements have no addresses; align buffers in "
                         "global, stack or shared",
                         tl_scope_texts[b->scope]);
    if (axis < 0 || axis >= b->rank)
        return tl_refuse(diag, PRIM, name, "axis %lld is not one of its %d axes 0..%d",
                         (long long)axis, b->rank, b->rank - 1);
    if (factor < 1 || factor > INT32_MAX)
        return tl_refuse(diag, PRIM, name, "factor %lld is not in 1..%d", (long long)factor,
                         INT32_MAX);
    if (offset < 0 || offset >= factor)
        return tl_refuse(diag, PRIM, name, "offset %lld is not in 0..%lld", (long long)offset,
                         (long long)factor - 1);
    for (int i = 0; i < b->rank; i++)
        if (!tl_const_int(b->shape[i], &extent))
            return tl_refuse(diag, PRIM, name,
                             "its extent %s depends on a dim, and strides are constants; "
                             "set_scope(%s, stack) gives it its largest shape",
                             tl_expr_text(s->arena, b->shape[i]), name);
    return TL_OK;
}

/* The new strides; false when the buffer would get too large. */
static bool stretch(tl_arena *arena, const tl_buffer *b, int64_t axis, int64_t factor,
                    int64_t offset, const int64_t **out)
{
    int64_t *strides = TL_NEW_ARRAY(arena, int64_t, b->rank), extent = 1, stride = 1;
    for (int i = b->rank - 1; i >= 0; i--) {
        if (b->strides != NULL && b->strides[i] > stride)
            stride = b->strides[i];
        if (i == axis)
            stride += ((offset - stride) % factor + factor) % factor;
        strides[i] = stride;
        (void)tl_const_int(b->shape[i], &extent);
        if (tl_mul_overflows(stride, tl_max64(extent, 1), &stride) || stride > INT32_MAX)
            return false;
    }
    *out = strides;
    return true;
}

typedef struct {
    const tl_buffer *from, *to;
} swap;

static const tl_stmt *swap_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const swap *w = context;
    if (stmt->kind != TL_STMT_ALLOC || stmt->u.alloc.buffer != w->from)
        return stmt;
    return tl_stmt_alloc(arena, w->to,
                         tl_stmt_replace_buffer(arena, stmt->u.alloc.body, w->from, w->to));
}

void tl_schedule_swap_local(tl_schedule *s, const tl_buffer *from, const tl_buffer *to)
{
    swap w = { from, to };
    tl_program *program = tl_program_copy(s->arena, s->program);
    program->body = tl_stmt_rewrite(s->arena, program->body, swap_alloc, &w);
    if (program->prepare)
        program->prepare = tl_stmt_rewrite(s->arena, program->prepare, swap_alloc, &w);
    tl_schedule_set_program(s, program);
}

tl_status tl_apply_storage_align(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                 int *out_count, tl_diag *diag)
{
    assert(arg_count == 4 && args[0].kind == TL_ARG_WORD && args[1].kind == TL_ARG_INT &&
           args[2].kind == TL_ARG_INT && args[3].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_buffer *from = tl_program_find_buffer(s->program, args[0].word);
    TL_TRY(check(s, args[0].word, from, args, diag));
    const int64_t *strides;
    if (!stretch(s->arena, from, args[1].value, args[2].value, args[3].value, &strides))
        return tl_refuse(diag, PRIM, from->name, "with that room it has more than %d elements",
                         INT32_MAX);
    tl_buffer *to = TL_NEW(s->arena, tl_buffer);
    *to = *from;
    to->strides = strides;
    tl_schedule_swap_local(s, from, to);
    return TL_OK;
}
