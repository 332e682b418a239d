/* tuner/measure/run_device.c: candidates on a device (run_device.h). */
#include "tuner/measure/run_device.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"

enum { PEAK_BLOCKS_SM = 2, PEAK_THREADS = 256 };
#define CALM 0.85

/* Sixteen chains of multiply-adds on registers; what is written keeps them from being dropped. */
static const char peak_ptx[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry tilth_peak_0(.param .u64 sink)\n.maxntid 256, 1, 1\n{\n"
    ".reg .f32 %f<20>;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [sink];\ncvta.to.global.u64 %d1, %d1;\n"
    "mov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f16, %r1;\nmov.f32 %f17, 0f3F800001;\n"
    "mov.u32 %r2, 512;\n"
    "mov.f32 %f0, %f16;\nmov.f32 %f1, %f16;\nmov.f32 %f2, %f16;\nmov.f32 %f3, %f16;\n"
    "mov.f32 %f4, %f16;\nmov.f32 %f5, %f16;\nmov.f32 %f6, %f16;\nmov.f32 %f7, %f16;\n"
    "AGAIN:\n"
    "fma.rn.f32 %f0, %f0, %f17, %f16;\nfma.rn.f32 %f1, %f1, %f17, %f16;\n"
    "fma.rn.f32 %f2, %f2, %f17, %f16;\nfma.rn.f32 %f3, %f3, %f17, %f16;\n"
    "fma.rn.f32 %f4, %f4, %f17, %f16;\nfma.rn.f32 %f5, %f5, %f17, %f16;\n"
    "fma.rn.f32 %f6, %f6, %f17, %f16;\nfma.rn.f32 %f7, %f7, %f17, %f16;\n"
    "sub.u32 %r2, %r2, 1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra AGAIN;\n"
    "add.f32 %f0, %f0, %f1;\nadd.f32 %f2, %f2, %f3;\nadd.f32 %f4, %f4, %f5;\n"
    "add.f32 %f6, %f6, %f7;\nadd.f32 %f0, %f0, %f2;\nadd.f32 %f4, %f4, %f6;\n"
    "add.f32 %f0, %f0, %f4;\nsetp.ne.f32 %p1, %f0, 0f00000000;\n"
    "@%p1 st.global.f32 [%d1], %f0;\nret;\n}\n";

static const tl_device_type *type_of(const tl_bench_device *b)
{
    return b->device->type;
}

/* The witness is no must: without it every moment is calm. */
static void load_peak(tl_bench_device *b)
{
    const tl_launch launch = {
        .grid = { (int64_t)b->device->facts.multiprocessors * PEAK_BLOCKS_SM, 1, 1 },
        .block = { PEAK_THREADS, 1, 1 },
        .cluster = { 1, 1, 1 },
        .registers = -1,
        .spill_bytes = -1,
    };
    const tl_descriptor d = { .name = "tilth_peak",
                              .phase_count = 1,
                              .buffer_count = 1,
                              .form = TL_FORM_PTX,
                              .arch = "sm_70",
                              .launches = &launch };
    if (type_of(b)->allocate(b->device, 256, &b->peak_sink, NULL) != TL_OK ||
        type_of(b)->load(b->device, &d, peak_ptx, sizeof peak_ptx - 1, &b->peak, NULL) != TL_OK)
        b->peak = NULL;
}

static tl_status put_param(tl_bench_device *b, const tl_run_task *t, int i, tl_diag *diag)
{
    const tl_buffer *param = t->program->params[i];

    if (tl_param_is_written(param))
        TL_TRY(type_of(b)->allocate(b->device, t->sizes[i], &b->outputs[i], diag));
    for (int s = 0; s < TL_INPUT_SETS && tl_param_is_read(param); s++) {
        if (s > 0 && param->role == TL_ROLE_CONST) {
            b->inputs[s][i] = b->inputs[0][i];
            continue;
        }
        TL_TRY(type_of(b)->allocate(b->device, t->sizes[i], &b->inputs[s][i], diag));
        TL_TRY(type_of(b)->copy_in(b->queue, b->inputs[s][i], t->inputs[s][i].data, t->sizes[i],
                                   diag));
    }
    return TL_OK;
}

static tl_status open_device(tl_bench_device *b, const tl_worker_config *config,
                             const tl_run_task *task, tl_diag *diag)
{
    TL_TRY(tl_device_open(config->device, &b->device, diag));
    TL_TRY(type_of(b)->make_queue(b->device, NULL, &b->queue, diag));
    TL_TRY(type_of(b)->make_event(b->device, &b->begin, diag));
    TL_TRY(type_of(b)->make_event(b->device, &b->end, diag));
    for (int i = 0; i < task->program->param_count; i++)
        TL_TRY(put_param(b, task, i, diag));
    if (type_of(b)->is_emulated) /* nothing is timed */
        return type_of(b)->wait(b->queue, diag);
    b->flush_bytes = 2 * b->device->facts.l2_bytes;
    if (type_of(b)->allocate(b->device, b->flush_bytes, &b->flush, NULL) != TL_OK)
        b->flush = NULL;
    load_peak(b);
    return type_of(b)->wait(b->queue, diag);
}

tl_bench_device *tl_bench_device_open(const tl_worker_config *config, const tl_run_task *task)
{
    tl_bench_device *b = calloc(1, sizeof *b);

    if (b != NULL)
        b->has_failed = open_device(b, config, task, &b->failure) != TL_OK;
    return b;
}

bool tl_bench_device_is_emulated(const tl_bench_device *b)
{
    return b != NULL && b->device != NULL && type_of(b)->is_emulated;
}

bool tl_bench_device_is_lost(const tl_bench_device *b)
{
    return b != NULL && b->device != NULL && type_of(b)->check(b->device, NULL) != TL_OK;
}

/* ---- a candidate ---- */

static tl_status create(tl_bench_kernel *k, const tl_built *built, const tl_descriptor *descriptor,
                        const int64_t *dims, const tl_guarded *prepared, int prepared_count,
                        tl_diag *diag)
{
    tl_bench_device *b = k->bench;
    int64_t scratch;

    TL_TRY(tl_descriptor_scratch(descriptor, dims, &scratch, diag));
    TL_TRY(type_of(b)->load(b->device, descriptor, built->object, built->object_size, &k->kernel,
                            diag));
    if (scratch > 0)
        TL_TRY(type_of(b)->allocate(b->device, scratch, &k->scratch, diag));
    for (int i = 0; i < prepared_count; i++) {
        int64_t size = (int64_t)prepared[i].size;
        TL_TRY(type_of(b)->allocate(b->device, size, &k->prepared[i], diag));
        k->prepared_count++;
        TL_TRY(type_of(b)->copy_in(b->queue, k->prepared[i], prepared[i].data, size, diag));
    }
    return type_of(b)->wait(b->queue, diag);
}

tl_status tl_bench_kernel_create(tl_bench_device *b, const tl_built *built,
                                 const tl_descriptor *descriptor, const int64_t *dims,
                                 const tl_guarded *prepared, int prepared_count,
                                 tl_bench_kernel **out, tl_diag *diag)
{
    if (b->has_failed)
        return tl_fail(diag, TL_DEVICE, "%s", b->failure.text);
    tl_bench_kernel *k = calloc(1, sizeof *k);
    if (k == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    k->bench = b;
    tl_status status = create(k, built, descriptor, dims, prepared, prepared_count, diag);
    if (status != TL_OK) {
        tl_bench_kernel_destroy(k);
        return status;
    }
    *out = k;
    return TL_OK;
}

void tl_bench_kernel_destroy(tl_bench_kernel *k)
{
    if (k == NULL)
        return;
    tl_device *device = k->bench->device;
    device->type->unload(k->kernel);
    device->type->release(device, k->scratch);
    for (int i = 0; i < k->prepared_count; i++)
        device->type->release(device, k->prepared[i]);
    free(k);
}

static void bind(const tl_bench_kernel *k, const tl_run_task *t, int set, void **buffers)
{
    const tl_bench_device *b = k->bench;
    const int params = t->program->param_count;

    for (int i = 0; i < params; i++)
        buffers[i] = tl_param_is_written(t->program->params[i]) ? b->outputs[i] : b->inputs[set][i];
    for (int i = 0; i < k->prepared_count; i++)
        buffers[params + i] = k->prepared[i];
}

static tl_status launch(const tl_bench_kernel *k, void **buffers, const int64_t *dims,
                        tl_diag *diag)
{
    const tl_kernel_args args = { .buffers = buffers, .dims = dims, .scratch = k->scratch };

    for (int p = 0; p < k->kernel->descriptor.phase_count; p++)
        TL_TRY(type_of(k->bench)->launch(k->bench->queue, k->kernel, p, &args, diag));
    return TL_OK;
}

/* What is in the queue since `begin` was recorded, in nanoseconds. */
static tl_status finish(tl_bench_device *b, double *ns, tl_diag *diag)
{
    TL_TRY(type_of(b)->record(b->queue, b->end, diag));
    TL_TRY(type_of(b)->wait(b->queue, diag));
    return type_of(b)->elapsed(b->begin, b->end, ns, diag);
}

tl_status tl_bench_kernel_check(tl_bench_kernel *k, const tl_run_task *t, int set,
                                tl_guarded *outputs, double *ns, tl_diag *diag)
{
    tl_bench_device *b = k->bench;
    const tl_device_type *type = type_of(b);
    void *buffers[2 * TL_MAX_PARAMS];

    bind(k, t, set, buffers);
    for (int i = 0; i < t->program->param_count; i++) {
        const tl_buffer *param = t->program->params[i];
        if (param->role == TL_ROLE_INOUT)
            TL_TRY(
                type->copy_within(b->queue, b->outputs[i], b->inputs[set][i], t->sizes[i], diag));
        else if (tl_param_is_written(param)) /* a NaN: what nobody writes shows */
            TL_TRY(type->fill(b->queue, b->outputs[i], 0xff, t->sizes[i], diag));
    }
    TL_TRY(type->record(b->queue, b->begin, diag));
    TL_TRY(launch(k, buffers, t->dims, diag));
    TL_TRY(finish(b, ns, diag));
    for (int i = 0; i < t->program->param_count; i++)
        if (tl_param_is_written(t->program->params[i]))
            TL_TRY(type->copy_out(b->queue, outputs[i].data, b->outputs[i], t->sizes[i], diag));
    return type->wait(b->queue, diag);
}

static tl_status time_calls(tl_bench_kernel *k, const tl_run_task *t, int calls, tl_cold cold,
                            double *ns, tl_diag *diag)
{
    tl_bench_device *b = k->bench;
    void *buffers[2 * TL_MAX_PARAMS];

    bind(k, t, 0, buffers);
    if (cold != TL_COLD_NOTHING && b->flush != NULL)
        TL_TRY(type_of(b)->fill(b->queue, b->flush, 0, b->flush_bytes, diag));
    TL_TRY(type_of(b)->record(b->queue, b->begin, diag));
    for (int i = 0; i < calls; i++)
        TL_TRY(launch(k, buffers, t->dims, diag));
    return finish(b, ns, diag);
}

double tl_bench_kernel_time(tl_bench_kernel *k, const tl_run_task *t, int calls, tl_cold cold)
{
    tl_bench_device *b = k->bench;
    double ns = INFINITY;

    if (b->has_failed)
        return INFINITY;
    b->has_failed = time_calls(k, t, calls, cold, &ns, &b->failure) != TL_OK;
    return b->has_failed ? INFINITY : ns / calls;
}

/* ---- the witness ---- */

static tl_status time_peak(tl_bench_device *b, double *ns)
{
    const tl_kernel_args args = { .buffers = &b->peak_sink };

    TL_TRY(type_of(b)->record(b->queue, b->begin, NULL));
    TL_TRY(type_of(b)->launch(b->queue, b->peak, 0, &args, NULL));
    return finish(b, ns, NULL);
}

bool tl_bench_device_is_calm(tl_bench_device *b, int64_t age_ns)
{
    double ns;
    int64_t now = tl_clock_ns();

    if (b->peak == NULL || b->has_failed || (b->peak_seen_ns > 0 && now - b->peak_seen_ns < age_ns))
        return true;
    if (time_peak(b, &ns) != TL_OK) {
        b->peak = NULL; /* if the device is lost, the next call says so */
        return true;
    }
    b->peak_seen_ns = now;
    if (b->best_peak_ns == 0 || ns < b->best_peak_ns)
        b->best_peak_ns = ns;
    return ns <= b->best_peak_ns / CALM;
}
