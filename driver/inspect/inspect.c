/* driver/inspect/inspect.c: roofline and memory of a model, from its kernels. */
#include "driver/inspect/inspect.h"
#include <stdio.h>
#include <string.h>
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

static int64_t value_bytes(const tl_value *v)
{
    int64_t extents[2 * TL_MAX_RANK], elements = 1;
    int rank = tl_layout_physical(&v->layout, &v->shape, extents);
    for (int a = 0; a < rank; a++)
        elements *= extents[a];
    return tl_storage_bytes(v->dtype, elements);
}

static const tl_value *storage_of(const tl_value *v)
{
    return v->whole != NULL ? v->whole : v;
}

static void touch(const tl_session *session, tl_map *known, tl_plan_buffer *buffers, int *count,
                  const tl_value *v, int step)
{
    if (v->data != NULL || v->is_input || v->is_output)
        return;
    const char *key = tl_arena_format(session->arena, "%p",
                                      (const void *)v); /* names may occur in several bodies */
    tl_plan_buffer *b = tl_map_find(known, key);
    if (b == NULL) {
        b = &buffers[(*count)++];
        *b = (tl_plan_buffer){ .size = value_bytes(v), .first = step };
        tl_map_put(known, key, b);
    }
    b->last = step;
}

typedef struct {
    int values;
    int64_t constant_bytes;
} totals;

static void count_values(const tl_graph *g, void *context)
{
    totals *t = context;
    t->values += g->value_count;
    for (int v = 0; v < g->value_count; v++)
        if (g->values[v]->data != NULL)
            t->constant_bytes +=
                tl_storage_bytes(g->values[v]->dtype, tl_shape_elements(&g->values[v]->shape));
}

static tl_status plan_memory(const tl_session *session, tl_inspection *i, tl_diag *diag)
{
    const tl_model_facts *f = i->facts;
    int count = 0;
    tl_map *known = tl_map_create(session->arena);
    totals all = { 0 };
    tl_graph_visit(f->graph, count_values, &all);
    tl_plan_buffer *buffers = TL_NEW_ARRAY(session->arena, tl_plan_buffer, all.values + 1);
    for (int k = 0; k < f->kernel_count; k++) {
        const tl_kernel *kernel = f->kernels[k].kernel;
        for (int v = 0; v < kernel->input_count; v++)
            touch(session, known, buffers, &count, storage_of(kernel->inputs[v]), k);
        for (int v = 0; v < kernel->output_count; v++)
            touch(session, known, buffers, &count, storage_of(kernel->outputs[v]), k);
    }
    return tl_memory_plan(buffers, count, &i->plan, diag);
}

tl_status tl_inspect(const tl_session *session, const char *path, bool quick, tl_inspection *out,
                     tl_diag *diag)
{
    *out = (tl_inspection){ .path = path,
                            .facts = tl_model_get_facts(session->model),
                            .threads = session->threads };
    totals all = { 0 };
    tl_graph_visit(out->facts->graph, count_values, &all);
    out->constant_bytes = all.constant_bytes;
    tl_map *classes = tl_map_create(session->arena);
    for (int k = 0; k < out->facts->kernel_count; k++)
        if (tl_map_find(classes, out->facts->kernels[k].class_key) == NULL) {
            tl_map_put(classes, out->facts->kernels[k].class_key, (void *)&out->facts->kernels[k]);
            out->class_count++;
        }
    TL_TRY(find_limits(session, out, quick, diag));
    fill_roofline(session, out);
    return plan_memory(session, out, diag);
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
