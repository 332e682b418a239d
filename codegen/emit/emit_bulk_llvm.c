/* codegen/emit/emit_bulk_llvm.c: copies of boxes by the tensor memory accelerator (TMA).
 *
 *     call bulk_load(read A[i.., k..], write S[..], m, blocks)   ->   dev_tma2d(S + .., map, k, i, mbarrier m)
 *     call bulk_store(read S[..], write C[i.., j..])             ->   dev_tma_store2d(map, S + .., j, i)
 *
 * A map (codegen/lower/tensor_maps.c) tells the box of a buffer; it is a parameter of the kernel, whose address the hardware
 * takes. In shared memory the box is packed, its rows in the order of the buffer's swizzle. */
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "ir/program/intrinsics.h"

enum { MOST_ARGUMENTS = TL_GPU_MAP_AXES + 4 };

/* The box in shared memory, as the hardware counts: it does the swizzle by itself. */
static LLVMValueRef shared_box(tl_emitter *em, const tl_region *region)
{
    tl_address at;
    if (!tl_emit_address(em, region->buffer, region->begin, region, true, &at))
        return NULL;
    if (at.inner == NULL)
        return at.pointer;
    LLVMTypeRef element = tl_emit_memory_type(em, region->buffer->dtype);
    return LLVMBuildGEP2(em->builder, element, at.outer, &at.inner, 1, "");
}

static int add_place(tl_emitter *em, const tl_region *region, LLVMValueRef *args, int count)
{
    for (int a = region->buffer->rank - 1; a >= 0; a--) {
        LLVMValueRef at = tl_emit_uniform(em, tl_emit_substitute(em, region->begin[a]));
        args[count++] = LLVMBuildTrunc(em->builder, at, em->i32, "");
    }
    return count;
}

void tl_emit_bulk(tl_emitter *em, const tl_intrinsic_call *call)
{
    bool is_load = strcmp(call->name, "bulk_load") == 0;
    const tl_region *shared = is_load ? &call->writes[0] : &call->reads[0];
    const tl_region *global = is_load ? &call->reads[0] : &call->writes[0];
    int64_t blocks = 0;
    int map = tl_plan_find_map(em->plan, call), count = 0, rank = global->buffer->rank;
    const char *why = em->gpu.phase == NULL       ? "a CPU has no tensor memory accelerator"
                      : !em->target->gpu.is_exact ? "it takes sm_90a"
                      : map < 0 || (em->gpu.loops & 1u)
                          ? "it stands outside of the threadIdx.x loops, whose first thread asks"
                          : NULL;
    if (why != NULL) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "a bulk copy of %s: %s", shared->buffer->name,
                     why);
        return;
    }
    LLVMValueRef args[MOST_ARGUMENTS], place = shared_box(em, shared);
    if (place == NULL)
        return;
    args[count++] = is_load ? place : em->gpu.maps[map];
    args[count++] = is_load ? em->gpu.maps[map] : place;
    count = add_place(em, global, args, count);
    if (is_load) {
        args[count++] = tl_emit_mbarrier(em, call->scalars[0]);
        tl_const_int(call->scalars[1], &blocks);
        if (blocks != 0)
            args[count++] = LLVMConstInt(em->i32, (unsigned long long)blocks, false);
    }
    const char *name = tl_arena_format(em->arena, "dev_tma%s%dd%s", is_load ? "" : "_store", rank,
                                       blocks != 0 ? "_multicast" : "");
    tl_emit_device(em, name, em->nothing, args, count);
}
