/* schedule/primitive_calls.c: the primitives as C functions: each packs its arguments and goes through the one
 * door, so that it is checked and recorded like a line of a trace. */
#include <assert.h>
#include "schedule/schedule_private.h"

static tl_arg loop_arg(tl_loop_ref loop)
{
    return (tl_arg){ .kind = TL_ARG_LOOP, .loop = loop };
}

static tl_arg block_arg(tl_block_ref block)
{
    return (tl_arg){ .kind = TL_ARG_BLOCK, .block = block };
}

static tl_arg word_arg(const char *word)
{
    return (tl_arg){ .kind = TL_ARG_WORD, .word = word };
}

static tl_arg int_arg(int64_t value)
{
    return (tl_arg){ .kind = TL_ARG_INT, .value = value };
}

static tl_status apply(tl_schedule *s, tl_prim prim, const tl_arg *args, int count, tl_diag *diag)
{
    tl_arg out[TL_MAX_ARGS];
    int out_count;
    return tl_schedule_apply(s, prim, args, count, out, &out_count, diag);
}

static tl_status apply_for_block(tl_schedule *s, tl_prim prim, const tl_arg *args, int count,
                                 tl_block_ref *block, tl_diag *diag)
{
    tl_arg out[TL_MAX_ARGS];
    int out_count;
    TL_TRY(tl_schedule_apply(s, prim, args, count, out, &out_count, diag));
    assert(out_count == 1);
    if (block)
        *block = out[0].block;
    return TL_OK;
}

static tl_status apply_for_loops(tl_schedule *s, tl_prim prim, const tl_arg *args, int count,
                                 tl_loop_ref *loops, int *loop_count, tl_diag *diag)
{
    tl_arg out[TL_MAX_ARGS];
    TL_TRY(tl_schedule_apply(s, prim, args, count, out, loop_count, diag));
    for (int i = 0; loops && i < *loop_count; i++)
        loops[i] = out[i].loop;
    return TL_OK;
}

static tl_status apply_to_loops(tl_schedule *s, tl_prim prim, const tl_loop_ref *loops, int count,
                                tl_loop_ref *out, int *out_count, tl_diag *diag)
{
    tl_arg args[TL_MAX_ARGS];
    if (count < 1 || count > TL_MAX_ARGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d loops given, 1 to %d are possible",
                       tl_prim_infos[prim].name, count, TL_MAX_ARGS);
    for (int i = 0; i < count; i++)
        args[i] = loop_arg(loops[i]);
    return apply_for_loops(s, prim, args, count, out, out_count, diag);
}

tl_status tl_loops(tl_schedule *s, tl_block_ref block, tl_loop_ref *out, int *count, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block) };
    return apply_for_loops(s, TL_PRIM_loops, args, 1, out, count, diag);
}

tl_status tl_split(tl_schedule *s, tl_loop_ref loop, const int64_t *factors, int count,
                   tl_loop_ref *out, tl_diag *diag)
{
    int out_count;
    tl_arg args[] = { loop_arg(loop),
                      { .kind = TL_ARG_FACTORS, .count = count, .factors = factors } };
    return apply_for_loops(s, TL_PRIM_split, args, 2, out, &out_count, diag);
}

tl_status tl_fuse(tl_schedule *s, const tl_loop_ref *loops, int count, tl_loop_ref *out,
                  tl_diag *diag)
{
    int out_count;
    return apply_to_loops(s, TL_PRIM_fuse, loops, count, out, &out_count, diag);
}

tl_status tl_reorder(tl_schedule *s, const tl_loop_ref *loops, int count, tl_diag *diag)
{
    int out_count;
    return apply_to_loops(s, TL_PRIM_reorder, loops, count, NULL, &out_count, diag);
}

tl_status tl_parallel(tl_schedule *s, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop) };
    return apply(s, TL_PRIM_parallel, args, 1, diag);
}

tl_status tl_vectorize(tl_schedule *s, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop) };
    return apply(s, TL_PRIM_vectorize, args, 1, diag);
}

tl_status tl_unroll(tl_schedule *s, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop) };
    return apply(s, TL_PRIM_unroll, args, 1, diag);
}

tl_status tl_loop_partition(tl_schedule *s, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop) };
    return apply(s, TL_PRIM_loop_partition, args, 1, diag);
}

tl_status tl_compute_at(tl_schedule *s, tl_block_ref block, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block), loop_arg(loop) };
    return apply(s, TL_PRIM_compute_at, args, 2, diag);
}

tl_status tl_reverse_compute_at(tl_schedule *s, tl_block_ref block, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block), loop_arg(loop) };
    return apply(s, TL_PRIM_reverse_compute_at, args, 2, diag);
}

tl_status tl_compute_inline(tl_schedule *s, tl_block_ref block, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block) };
    return apply(s, TL_PRIM_compute_inline, args, 1, diag);
}

tl_status tl_cache_read(tl_schedule *s, tl_block_ref consumer, const char *buffer,
                        const char *scope, tl_block_ref *out, tl_diag *diag)
{
    tl_arg args[] = { block_arg(consumer), word_arg(buffer), word_arg(scope) };
    return apply_for_block(s, TL_PRIM_cache_read, args, 3, out, diag);
}

tl_status tl_cache_write(tl_schedule *s, tl_block_ref block, const char *scope, tl_block_ref *out,
                         tl_diag *diag)
{
    tl_arg args[] = { block_arg(block), word_arg(scope) };
    return apply_for_block(s, TL_PRIM_cache_write, args, 2, out, diag);
}

tl_status tl_decompose_reduction(tl_schedule *s, tl_block_ref block, tl_loop_ref loop,
                                 tl_block_ref *out, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block), loop_arg(loop) };
    return apply_for_block(s, TL_PRIM_decompose_reduction, args, 2, out, diag);
}

tl_status tl_transform_layout(tl_schedule *s, const char *buffer, const char *map, tl_diag *diag)
{
    tl_arg args[] = { word_arg(buffer), { .kind = TL_ARG_MAP, .word = map } };
    return apply(s, TL_PRIM_transform_layout, args, 2, diag);
}

tl_status tl_set_scope(tl_schedule *s, const char *buffer, const char *scope, tl_diag *diag)
{
    tl_arg args[] = { word_arg(buffer), word_arg(scope) };
    return apply(s, TL_PRIM_set_scope, args, 2, diag);
}

tl_status tl_prefetch(tl_schedule *s, tl_block_ref block, const char *buffer, tl_loop_ref loop,
                      int64_t distance, int64_t level, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block), word_arg(buffer), loop_arg(loop), int_arg(distance),
                      int_arg(level) };
    return apply(s, TL_PRIM_prefetch, args, 5, diag);
}

tl_status tl_bind_loop(tl_schedule *s, tl_loop_ref loop, const char *axis, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop), word_arg(axis) };
    return apply(s, TL_PRIM_bind, args, 2, diag);
}

tl_status tl_pad_einsum(tl_schedule *s, tl_block_ref block, const int64_t *factors, int count,
                        tl_block_ref *out, tl_diag *diag)
{
    tl_arg args[] = { block_arg(block),
                      { .kind = TL_ARG_FACTORS, .count = count, .factors = factors } };
    return apply_for_block(s, TL_PRIM_pad_einsum, args, 2, out, diag);
}

tl_status tl_storage_align(tl_schedule *s, const char *buffer, int64_t axis, int64_t factor,
                           int64_t offset, tl_diag *diag)
{
    tl_arg args[] = { word_arg(buffer), int_arg(axis), int_arg(factor), int_arg(offset) };
    return apply(s, TL_PRIM_storage_align, args, 4, diag);
}

tl_status tl_swizzle(tl_schedule *s, const char *buffer, int64_t bytes, tl_diag *diag)
{
    tl_arg args[] = { word_arg(buffer), int_arg(bytes) };
    return apply(s, TL_PRIM_swizzle, args, 2, diag);
}

tl_status tl_software_pipeline(tl_schedule *s, tl_loop_ref loop, int64_t stages, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop), int_arg(stages) };
    return apply(s, TL_PRIM_software_pipeline, args, 2, diag);
}

tl_status tl_specialize(tl_schedule *s, tl_loop_ref loop, int64_t copying, int64_t computing,
                        tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop), int_arg(copying), int_arg(computing) };
    return apply(s, TL_PRIM_specialize, args, 3, diag);
}

tl_status tl_bulk_copy(tl_schedule *s, tl_loop_ref loop, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop) };
    return apply(s, TL_PRIM_bulk_copy, args, 1, diag);
}

tl_status tl_annotate(tl_schedule *s, tl_loop_ref loop, const char *key, int64_t value,
                      tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop), word_arg(key), int_arg(value) };
    return apply(s, TL_PRIM_annotate, args, 3, diag);
}

tl_status tl_tensorize(tl_schedule *s, tl_loop_ref loop, const char *intrinsic, tl_diag *diag)
{
    tl_arg args[] = { loop_arg(loop), word_arg(intrinsic) };
    return apply(s, TL_PRIM_tensorize, args, 2, diag);
}

tl_status tl_put_barriers(tl_schedule *s, tl_diag *diag)
{
    return apply(s, TL_PRIM_place_barriers, NULL, 0, diag);
}
