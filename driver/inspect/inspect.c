/* driver/inspect/inspect.c: roofline and memory of a model, from its kernels. */
#include "driver/inspect/inspect.h"
#include <stdlib.h>
#include "codegen/codegen.h"
#include "driver/pipeline/model_memory.h"
#include "runtime/base/map.h"
#include "runtime/device/peak.h"

/* For an estimate: two vector units with multiply-add at 2.5 GHz and 8 GB/s a core are modest for today's servers. */
#define ESTIMATED_GHZ 2.5
#define ESTIMATED_GBS 8.0

static tl_status find_limits(const tl_session *session, tl_inspection *i, bool quick, tl_diag *diag)
{
    tl_peak_bandwidth bandwidth;
    if (quick) {
        const tl_target *target = i->facts->target;
        int fma = tl_isa_infos[target->isa].has_fma ? 2 : 1;
        i->peak_gflops = i->threads * ESTIMATED_GHZ * 2 * fma * tl_target_lanes(target, TL_F32);
        i->bandwidth_gbs = i->threads * ESTIMATED_GBS;
        return TL_OK;
    }
    tl_progress("measuring this machine");
    i->measured = true;
    i->peak_gflops = tl_peak_gflops(session->pool, i->threads, 0, 0.1);
    tl_status status = tl_peak_measure_bandwidth(session->pool, i->threads, 0.1, &bandwidth, diag);
    i->bandwidth_gbs =
        bandwidth.copy_gbs > bandwidth.read_gbs ? bandwidth.copy_gbs : bandwidth.read_gbs;
    tl_progress_done();
    return status;
}

static void fill_roofline(const tl_session *session, tl_inspection *i)
{
    i->kernels = TL_NEW_ARRAY(session->arena, tl_roofline, i->facts->kernel_count);
    for (int k = 0; k < i->facts->kernel_count; k++) {
        const tl_model_kernel *kernel = &i->facts->kernels[k];
        double compute = (double)kernel->flops / (i->peak_gflops * 1e9),
               memory = (double)kernel->bytes / (i->bandwidth_gbs * 1e9);
        i->kernels[k] = (tl_roofline){ compute > memory ? compute : memory, memory > compute };
        i->total_s += i->kernels[k].seconds;
    }
}

/* What a process has besides its model, measured with tests/bench/memory.c on x86-64, LLVM 19: a run from the cache; LLVM
 * and what compiling takes; both also by the number of kernels. */
enum {
    CACHED_BYTES = 11 << 20,
    CACHED_KERNEL_BYTES = 30 << 10,
    COLD_BYTES = 83 << 20,
    COLD_KERNEL_BYTES = 140 << 10,
    COLD_WORKLOAD_BYTES = 130 << 10,
    WORKLOAD_CODE_BYTES = 4 << 10,
};

static int64_t packed_by(const tl_program *program)
{
    int64_t bytes = 0;
    for (int i = 0; i < program->prepared_count; i++)
        bytes += tl_buffer_max_bytes(program->prepared[i]);
    return bytes;
}

/* All threads' scratch of each kernel; of kernels that share a workload it is asked once. 0 where nothing is known before
 * there is code. */
static const int64_t *find_scratch(const tl_session *session, const tl_inspection *in)
{
    int64_t *scratch = TL_NEW_ARRAY(session->arena, int64_t, in->facts->kernel_count + 1);
    for (int k = 0; k < in->facts->kernel_count; k++) {
        const tl_model_kernel *kernel = &in->facts->kernels[k];
        tl_descriptor d = { 0 };
        if (kernel->same_as != k)
            scratch[k] = scratch[kernel->same_as];
        else if (tl_codegen_describe(session->arena, kernel->scheduled, false, in->facts->target,
                                     &d, NULL) == TL_OK)
            scratch[k] = d.scratch_bytes + d.thread_scratch_bytes * in->threads;
    }
    return scratch;
}

static int larger_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The most that is there while constants are packed, the largest first: what is packed, and the source of one. */
static int64_t packing_peak(const tl_session *session, const tl_inspection *in)
{
    int64_t *sizes = TL_NEW_ARRAY(session->arena, int64_t, in->facts->kernel_count + 1);
    int64_t packed = 0, most = 0;
    for (int k = 0; k < in->facts->kernel_count; k++)
        sizes[k] = packed_by(in->facts->kernels[k].scheduled);
    qsort(sizes, (size_t)in->facts->kernel_count, sizeof *sizes, larger_first);
    for (int k = 0; k < in->facts->kernel_count; k++) {
        packed += sizes[k];
        most = packed + sizes[k] > most ? packed + sizes[k] : most;
    }
    return most;
}

static tl_status foretell_memory(const tl_session *session, tl_inspection *in, tl_diag *diag)
{
    const tl_model_facts *f = in->facts;
    tl_model_memory footprint;
    tl_plan_sizes with_scratch;
    TL_TRY(tl_model_memory_of_graph(session->arena, f->graph, f->partition, NULL, &footprint,
                                    &in->plan, diag));
    in->constant_bytes = footprint.constants;
    in->port_bytes = footprint.ports;
    TL_TRY(tl_model_memory_of_graph(session->arena, f->graph, f->partition,
                                    find_scratch(session, in), &footprint, &with_scratch, diag));
    in->temporary_bytes = footprint.plan;
    for (int k = 0; k < f->kernel_count; k++) {
        in->packed_bytes += packed_by(f->kernels[k].scheduled);
        if (f->kernels[k].same_as == k)
            in->code_bytes +=
                WORKLOAD_CODE_BYTES * (1 + (f->kernels[k].scheduled->prepare != NULL));
    }
    int64_t run = tl_memory_sum(in->packed_bytes, in->temporary_bytes);
    run = tl_memory_sum(run, tl_memory_sum(in->port_bytes, in->code_bytes));
    int64_t packing = packing_peak(session, in);
    in->cached_peak_bytes =
        tl_memory_sum(run, CACHED_BYTES + (int64_t)CACHED_KERNEL_BYTES * f->kernel_count);
    in->cold_peak_bytes = tl_memory_sum(run > packing ? run : packing,
                                        COLD_BYTES + (int64_t)COLD_KERNEL_BYTES * f->kernel_count +
                                            (int64_t)COLD_WORKLOAD_BYTES * f->workload_count);
    return TL_OK;
}

tl_status tl_inspect(const tl_session *session, const char *path, bool quick, tl_inspection *out,
                     tl_diag *diag)
{
    *out = (tl_inspection){ .path = path,
                            .facts = tl_model_get_facts(session->model),
                            .threads = session->threads };
    tl_map *classes = tl_map_create(session->arena);
    for (int k = 0; k < out->facts->kernel_count; k++)
        if (tl_map_find(classes, out->facts->kernels[k].class_key) == NULL) {
            tl_map_put(classes, out->facts->kernels[k].class_key, (void *)&out->facts->kernels[k]);
            out->class_count++;
        }
    TL_TRY(find_limits(session, out, quick, diag));
    fill_roofline(session, out);
    return foretell_memory(session, out, diag);
}

void tl_inspect_describe(const tl_value *v, tl_text *out)
{
    int64_t extents[TL_MAX_RANK];
    for (int a = 0; a < v->shape.rank; a++)
        extents[a] = v->shape.dims[a].extent;
    tl_shape_describe(v->dtype, v->shape.rank, extents, out);
    if (v->whole != NULL)
        tl_text_format(out, " in %s from %lld", v->whole->name, (long long)v->whole_start);
    if (v->layout.plain)
        return;
    const tl_layout *l = &v->layout;
    const char *before = " order ";
    bool in_order = true;
    for (int a = 0; a < v->shape.rank; a++)
        in_order &= l->order[a] == a;
    for (int a = 0; a < v->shape.rank && !in_order; a++, before = ",")
        tl_text_format(out, "%s%d", before, l->order[a]);
    before = " blocks ";
    for (int a = 0; a < v->shape.rank; a++)
        if (l->block[a] > 1) {
            tl_text_format(out, "%s%lld@%d", before, (long long)l->block[a], a);
            before = ",";
        }
    before = " halo ";
    for (int a = 0; a < v->shape.rank; a++)
        if (l->halo_before[a] > 0 || l->halo_after[a] > 0) {
            tl_text_format(out, "%s%lld+%lld@%d", before, (long long)l->halo_before[a],
                           (long long)l->halo_after[a], a);
            before = ",";
        }
}
