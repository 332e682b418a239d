/* schedule/sketch/gpu_model.c: what a tile costs on a GPU, as far as shapes and a target's limits tell. */
#include "schedule/sketch/gpu_private.h"

/* Warps that a multiprocessor needs to hide what an instruction waits for, and what a block takes to begin and to end. */
enum { WARPS_TO_HIDE = 8, CYCLES_AROUND = 1500, RESERVED_SHARED = 1024 };
#define NOT_HIDDEN 0.25 /* of the shorter of computing and loading */

int64_t tl_gpu_resident(const tl_target *target, int64_t threads, int64_t registers, int64_t shared)
{
    const tl_gpu_limits *gpu = &target->gpu;
    enum { MOST_REGISTERS = 255 };
    if (threads < 1 || threads > TL_MAX_BLOCK_THREADS || registers > MOST_REGISTERS ||
        shared > gpu->shared_block)
        return 0;
    int64_t most = tl_min64(gpu->blocks_sm, gpu->threads_sm / threads);
    most = tl_min64(most, gpu->registers_sm / (threads * tl_max64(registers, 1)));
    return tl_min64(most, gpu->shared_sm / (shared + RESERVED_SHARED));
}

double tl_gpu_cycles(const tl_target *target, const tl_gpu_work *work)
{
    int64_t sms = tl_max64(target->cores, 1);
    int64_t share = tl_ceildiv(tl_max64(work->blocks, 1), sms);
    int64_t together = tl_max64(tl_min64(share, work->resident), 1);
    double busy = (double)(together * work->warps) / WARPS_TO_HIDE;
    double longer = work->compute > work->loads ? work->compute : work->loads;
    double each = longer + NOT_HIDDEN * (work->compute + work->loads - longer);
    return (double)share * each / (busy < 1 ? busy : 1) +
           (double)tl_ceildiv(share, together) * CYCLES_AROUND;
}
