/* tests/runtime/test_executable_device.c: an executable on a device: what crosses, what is planned, what is a graph, and what
 * becomes of a run when the device fails. By the driver without a GPU; kernels are functions of their names.
 *
 *     prepare: p = 2c        steps: t = x * w, u = t + p (scratch: t again), z = u        x, y in; u, z out      */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runtime/executable/executable.h"
#include "tests/gpu/with_fake.h"
#include "tests/runtime/kernels.h"

enum { N = 1024, BYTES = N * (int)sizeof(float) };

static int mul_0(const fake_launch *l)
{
    const float *x = *(float **)l->parameters[0], *w = *(float **)l->parameters[1];
    float *t = *(float **)l->parameters[2];
    for (int i = 0; i < N; i++)
        t[i] = x[i] * w[i];
    return 0;
}

/* Two phases, with scratch between them. */
static int add_0(const fake_launch *l)
{
    memcpy(*(float **)l->parameters[3], *(float **)l->parameters[0], BYTES);
    return 0;
}

static int add_1(const fake_launch *l)
{
    const float *scratch = *(float **)l->parameters[3], *p = *(float **)l->parameters[1];
    float *u = *(float **)l->parameters[2];
    for (int i = 0; i < N; i++)
        u[i] = scratch[i] + p[i];
    return 0;
}

static int dbl_0(const fake_launch *l)
{
    const float *c = *(float **)l->parameters[0];
    float *p = *(float **)l->parameters[1];
    for (int i = 0; i < N; i++)
        p[i] = 2.0f * c[i];
    return 0;
}

static void dbl_on_host(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    const float *c = args->buffers[0];
    float *p = args->buffers[1];
    (void)begin, (void)end, (void)thread;
    for (int i = 0; i < N; i++)
        p[i] = 2.0f * c[i];
}

enum { X, W, T, C, P, U, Z, VALUE_COUNT };
static struct {
    char ptx[3][4096];
    tl_launch launches[2];
    float w[N], c[N];
    tl_executable_value values[VALUE_COUNT];
    tl_executable_kernel kernels[3];
    tl_executable_step steps[3], prepare;
    tl_executable_spec spec;
} m;
static const int64_t one = 1;
static tl_pool *pool;
static char *folder;

static tl_descriptor describe(const char *name, int phases, int buffers, int64_t scratch)
{
    return (tl_descriptor){ .name = name,
                            .phase_count = phases,
                            .buffer_count = buffers,
                            .scratch_bytes = scratch,
                            .form = TL_FORM_PTX,
                            .arch = "sm_80",
                            .launches = m.launches };
}

static void make_spec(bool prepare_on_host)
{
    static const tl_port ports[3] = {
        { .name = "x", .dtype = TL_F32, .rank = 1, .shape = { N } },
        { .name = "u", .dtype = TL_F32, .rank = 1, .shape = { N } },
        { .name = "z", .dtype = TL_F32, .rank = 1, .shape = { N } },
    };
    static const int mul[] = { X, W, T }, add[] = { T, P, U }, copy[] = { U, Z }, dbl[] = { C, P };
    static tl_phase_fn *const phases[] = { dbl_on_host };

    memset(&m, 0, sizeof m);
    for (int i = 0; i < N; i++) {
        m.w[i] = (float)(i % 7);
        m.c[i] = (float)i;
    }
    for (int i = 0; i < 2; i++)
        m.launches[i] = (tl_launch){ .grid = { 4, 1, 1 },
                                     .block = { 256, 1, 1 },
                                     .cluster = { 1, 1, 1 },
                                     .registers = -1,
                                     .spill_bytes = -1 };
    m.values[X] = (tl_executable_value){ .name = "x", .place = TL_PLACE_INPUT, .size = BYTES };
    m.values[W] = (tl_executable_value){
        .name = "w", .place = TL_PLACE_CONSTANT, .size = BYTES, .data = m.w
    };
    m.values[T] = (tl_executable_value){ .name = "t", .place = TL_PLACE_ARENA, .size = BYTES };
    m.values[C] = (tl_executable_value){
        .name = "c", .place = TL_PLACE_CONSTANT, .size = BYTES, .data = m.c
    };
    m.values[P] = (tl_executable_value){ .name = "p", .place = TL_PLACE_PREPARED, .size = BYTES };
    m.values[U] = (tl_executable_value){ .name = "u", .place = TL_PLACE_OUTPUT, .size = BYTES };
    m.values[Z] =
        (tl_executable_value){ .name = "z", .place = TL_PLACE_OUTPUT, .size = BYTES, .port = 1 };
    fake_ptx(m.ptx[0], sizeof m.ptx[0], "mul_0", 3);
    fake_ptx(m.ptx[1], sizeof m.ptx[1], "add_0", 4);
    strcat(m.ptx[1], strstr(fake_ptx(m.ptx[2], sizeof m.ptx[2], "add_1", 4), ".visible"));
    fake_ptx(m.ptx[2], sizeof m.ptx[2], "dbl_0", 2);
    m.kernels[0].descriptor = describe("mul", 1, 3, 0);
    m.kernels[1].descriptor = describe("add", 2, 3, BYTES);
    m.kernels[2].descriptor = describe("dbl", 1, 2, 0);
    for (int i = 0; i < 3; i++) {
        m.kernels[i].object = m.ptx[i];
        m.kernels[i].object_size = strlen(m.ptx[i]);
    }
    if (prepare_on_host)
        m.kernels[2] = (tl_executable_kernel){
            .descriptor = { .name = "dbl", .phase_count = 1, .extents = &one, .buffer_count = 2 },
            .phases = phases
        };
    m.steps[0] =
        (tl_executable_step){ .name = "mul", .kernel = 0, .value_count = 3, .values = mul };
    m.steps[1] =
        (tl_executable_step){ .name = "add", .kernel = 1, .value_count = 3, .values = add };
    m.steps[2] = (tl_executable_step){
        .name = "copy", .kernel = TL_STEP_COPY, .value_count = 2, .values = copy
    };
    m.prepare = (tl_executable_step){ .name = "dbl", .kernel = 2, .value_count = 2, .values = dbl };
    m.spec = (tl_executable_spec){ .model = "small",
                                   .device = "cuda",
                                   .input_count = 1,
                                   .output_count = 2,
                                   .value_count = VALUE_COUNT,
                                   .kernel_count = 3,
                                   .prepare_count = 1,
                                   .step_count = 3,
                                   .inputs = &ports[0],
                                   .outputs = &ports[1],
                                   .values = m.values,
                                   .kernels = m.kernels,
                                   .prepare = &m.prepare,
                                   .steps = m.steps };
}

static tl_device *open_device(const char *what)
{
    tl_device *device;
    tl_diag diag = { 0 };

    fake_say(what);
    fake.add("mul_0", mul_0);
    fake.add("add_0", add_0);
    fake.add("add_1", add_1);
    fake.add("dbl_0", dbl_0);
    if (tl_device_open("cuda", &device, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return device;
}

static tl_executable *make(void)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    if (tl_executable_create(&m.spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return x;
}

static void attach(tl_executable *x, tl_device *device)
{
    tl_diag diag = { 0 };

    if (tl_executable_attach(x, device, &diag) != TL_OK ||
        tl_executable_prepare(x, pool, 0, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static tl_runner *make_runner(tl_executable *x)
{
    tl_runner *r;
    tl_diag diag = { 0 };

    if (tl_runner_create(x, pool, 0, &r, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return r;
}

static _Alignas(64) float in[N], out[2][N];

static bool is_right(float x0)
{
    for (int i = 0; i < N; i++)
        if (out[0][i] != (x0 + (float)i) * m.w[i] + 2.0f * m.c[i] || out[1][i] != out[0][i])
            return false;
    return true;
}

static void run_is_right(tl_runner *r, float x0)
{
    tl_diag diag = { 0 };

    for (int i = 0; i < N; i++)
        in[i] = x0 + (float)i;
    memset(out, 0, sizeof out);
    if (tl_runner_run(r, (const void *[]){ in }, (void *[]){ out[0], out[1] }, NULL, &diag) !=
        TL_OK)
        fail_msg("%s", diag.text);
    assert_true(is_right(x0));
}

static void only_inputs_and_outputs_cross(void **state)
{
    (void)state;
    for (int on_host = 0; on_host < 2; on_host++) {
        make_spec(on_host);
        tl_device *device = open_device("");
        tl_executable *x = make();
        int launches, graphs, copies_in, copies_out, in_before, out_before;
        attach(x, device);
        assert_ptr_equal(tl_executable_device(x), device);
        assert_int_equal(tl_executable_loaded(x, 0)->launches[0].registers, 40);
        tl_runner *r = make_runner(x);
        assert_true(tl_runner_memory(r).planned >= 3 * BYTES);
        fake.counts(&launches, &graphs, &in_before, &out_before);
        for (int i = 0; i < 4; i++)
            run_is_right(r, (float)i);
        fake.counts(&launches, &graphs, &copies_in, &copies_out);
        assert_int_equal(copies_in - in_before, 4);
        assert_int_equal(copies_out - out_before, 8);
        assert_int_equal(graphs, 3); /* all but the first run */
        tl_runner_destroy(r);
        tl_executable_destroy(x);
        tl_device_close(device);
        assert_int_equal(fake.alive(), 0);
    }
}

static void steps_are_timed_and_traced(void **state)
{
    make_spec(false);
    tl_device *device = open_device("slow-launch=3");
    tl_executable *x = make();
    int64_t ns[3];
    tl_run_event events[8];
    int count;

    (void)state;
    attach(x, device);
    tl_runner *r = make_runner(x);
    run_is_right(r, 1);
    assert_int_equal(tl_runner_run(r, (const void *[]){ in }, (void *[]){ out[0], out[1] }, ns,
                                   NULL),
                     TL_OK);
    assert_true(is_right(1));
    assert_true(ns[0] >= 3000000 && ns[0] < 4000000 && ns[1] >= 6000000 && ns[1] < 8000000);
    assert_int_equal(tl_runner_event_limit(r), 3);
    assert_int_equal(tl_runner_run_traced(r, (const void *[]){ in }, (void *[]){ out[0], out[1] },
                                          events, &count, NULL),
                     TL_OK);
    assert_true(count == 3 && events[1].begin_ns == events[0].end_ns && events[2].step == 2);
    /* a run of many: what its launches take, without copies, and nothing is copied out */
    double run_ns = 0;
    int64_t launches = (ns[0] + ns[1] + ns[2]) / 1000000;
    float before = out[0][0];
    in[0] += 1;
    assert_int_equal(tl_runner_time_device(r, (const void *[]){ in }, (void *[]){ out[0], out[1] },
                                           5, &run_ns, NULL),
                     TL_OK);
    in[0] -= 1;
    assert_true(run_ns >= 1e6 * (double)(launches - 3) && run_ns < 1e6 * (double)(launches + 3));
    assert_true(out[0][0] == before);
    assert_int_equal(tl_runner_time_device(r, (const void *[]){ in }, (void *[]){ out[0], out[1] },
                                           0, &run_ns, NULL),
                     TL_BAD_ARGUMENT);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

static void look(void *user, int step, bool after, void *const *buffers)
{
    int *seen = user;

    if (step == 0 && after)
        for (int i = 0; i < N; i++)
            assert_true(((float *)buffers[2])[i] == ((float *)buffers[0])[i] * m.w[i]);
    *seen += 1;
}

static void a_hook_sees_the_host_s_copies(void **state)
{
    make_spec(false);
    tl_device *device = open_device("");
    tl_executable *x = make();
    int seen = 0;

    (void)state;
    attach(x, device);
    tl_runner *r = make_runner(x);
    run_is_right(r, 2);
    assert_int_equal(tl_runner_run_hooked(r, (const void *[]){ in }, (void *[]){ out[0], out[1] },
                                          look, &seen, NULL),
                     TL_OK);
    assert_true(is_right(2) && seen == 6);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
    tl_device_close(device);
}

/* Addresses of the device are used where they are: nothing is copied, and the graph is made anew when they move. */
static void buffers_may_lie_on_the_device(void **state)
{
    static const bool on_device[] = { true, true, false };
    make_spec(false);
    tl_device *device = open_device("");
    const tl_device_type *type = device->type;
    tl_executable *x = make();
    tl_queue *queue;
    int ignored, in_before, out_before, copies_in, copies_out, graphs;
    void *dx[2], *du;

    (void)state;
    attach(x, device);
    tl_runner *r = make_runner(x);
    run_is_right(r, 0);
    run_is_right(r, 0);
    assert_int_equal(type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(type->allocate(device, BYTES, &du, NULL), TL_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(type->allocate(device, BYTES, &dx[i], NULL), TL_OK);
        assert_int_equal(type->copy_in(queue, dx[i], in, BYTES, NULL), TL_OK);
    }
    assert_int_equal(type->wait(queue, NULL), TL_OK);
    fake.counts(&ignored, &graphs, &in_before, &out_before);
    for (int i = 0; i < 6; i++) {
        tl_diag diag = { 0 };
        memset(out, 0, sizeof out);
        if (tl_runner_run_device(r, (const void *[]){ dx[i / 3] }, (void *[]){ du, out[1] },
                                 on_device, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(type->copy_out(queue, out[0], du, BYTES, NULL), TL_OK);
        assert_int_equal(type->wait(queue, NULL), TL_OK);
        assert_true(is_right(0));
    }
    fake.counts(&ignored, &graphs, &copies_in, &copies_out);
    assert_int_equal(copies_in, in_before);
    assert_int_equal(copies_out - out_before, 12);
    assert_int_equal(graphs, 1 + 2 * 2);
    run_is_right(r, 5); /* and back */
    type->release(device, dx[0]);
    type->release(device, dx[1]);
    type->release(device, du);
    type->drop_queue(queue);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

/* With the caller's stream and all buffers on the device nothing is waited for. */
static void a_stream_may_be_the_caller_s(void **state)
{
    static const bool on_device[] = { true, true, true };
    make_spec(false);
    tl_device *device = open_device("");
    const tl_device_type *type = device->type;
    tl_executable *x = make();
    tl_runner *r;
    tl_queue *queue;
    void *d[3], *stream, *create, *drop;
    int launches, before, ignored;
    char path[PATH_MAX];

    (void)state;
    attach(x, device);
    fake_path(path);
    void *library = dlopen(path, RTLD_NOW);
    create = dlsym(library, "cuStreamCreate");
    drop = dlsym(library, "cuStreamDestroy_v2");
    void *context = dlsym(library, "cuCtxSetCurrent"),
         *retain = dlsym(library, "cuDevicePrimaryCtxRetain"),
         *give = dlsym(library, "cuDevicePrimaryCtxRelease_v2"), *primary;
    (*(int (**)(void **, int)) & retain)(&primary, 0);
    (*(int (**)(void *)) & context)(primary);
    assert_int_equal((*(int (**)(void **, unsigned)) & create)(&stream, 0), 0);
    assert_int_equal(type->make_queue(device, stream, &queue, NULL), TL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(type->allocate(device, BYTES, &d[i], NULL), TL_OK);
    assert_int_equal(type->copy_in(queue, d[0], in, BYTES, NULL), TL_OK);
    assert_int_equal(tl_runner_create_in_stream(x, pool, stream, &r, NULL), TL_OK);
    fake.counts(&before, &ignored, &ignored, &ignored);
    assert_int_equal(tl_runner_run_device(r, (const void *[]){ d[0] }, (void *[]){ d[1], d[2] },
                                          on_device, NULL),
                     TL_OK);
    fake.counts(&launches, &ignored, &ignored, &ignored);
    assert_int_equal(launches, before); /* it is in the stream */
    assert_int_equal(type->copy_out(queue, out[0], d[1], BYTES, NULL), TL_OK);
    assert_int_equal(type->copy_out(queue, out[1], d[2], BYTES, NULL), TL_OK);
    assert_int_equal(type->wait(queue, NULL), TL_OK);
    assert_true(is_right(in[0]));
    tl_runner_destroy(r);
    type->drop_queue(queue);
    for (int i = 0; i < 3; i++)
        type->release(device, d[i]);
    assert_int_equal((*(int (**)(void *)) & drop)(stream), 0);
    tl_executable_destroy(x);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
    (*(int (**)(void *)) & context)(NULL);
    (*(int (**)(int)) & give)(0);
    dlclose(library);
}

/* Saved, it has its PTX, what a driver made of it, and its prepared values. */
static void it_is_saved_and_loaded(void **state)
{
    make_spec(false);
    tl_device *device = open_device("");
    tl_text native = { 0 };
    tl_diag diag = { 0 };
    tl_executable *again;
    int launches, before, ignored;
    char *path = path_in(folder, "saved");

    (void)state;
    assert_int_equal(device->type->compile(device, &m.kernels[0].descriptor, m.ptx[0],
                                           strlen(m.ptx[0]), &native, NULL),
                     TL_OK);
    m.kernels[0].native = native.data;
    m.kernels[0].native_size = native.size;
    m.kernels[0].native_arch = "sm_90";
    tl_executable *x = make();
    attach(x, device);
    if (tl_executable_save(x, TL_SAVE_WHOLE, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_executable_destroy(x);
    if (tl_executable_load(path, &again, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_string_equal(tl_executable_info(again)->device, "cuda");
    assert_string_equal(tl_executable_info(again)->kernels[0].native_arch, "sm_90");
    assert_int_equal(tl_executable_info(again)->kernels[0].native_size, native.size);
    assert_true(tl_executable_is_prepared(again));
    fake.counts(&before, &ignored, &ignored, &ignored);
    attach(again, device);
    fake.counts(&launches, &ignored, &ignored, &ignored);
    assert_int_equal(launches, before); /* nothing is prepared again */
    tl_runner *r = make_runner(again);
    run_is_right(r, 3);
    tl_runner_destroy(r);
    tl_executable_destroy(again);
    tl_device_close(device);
    tl_text_free(&native);
    free(path);
    assert_int_equal(fake.alive(), 0);
}

static void what_does_not_hold_is_refused(void **state)
{
    tl_executable *x;
    tl_runner *r;
    tl_diag diag = { 0 };
    tl_device *device = open_device("sm=75"), *cpu;

    (void)state;
    make_spec(false);
    m.spec.device = NULL;
    assert_int_equal(tl_executable_create(&m.spec, &x, &diag), TL_BAD_ARGUMENT);
    assert_non_null(
        strstr(diag.text, "step mul has code of the form ptx and is to run on the CPU"));
    m.spec.device = "abacus";
    assert_int_equal(tl_executable_create(&m.spec, &x, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "there are no devices of type abacus"));
    make_spec(false);
    x = make();
    assert_int_equal(tl_executable_prepare(x, pool, 0, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "small is compiled for cuda, and was not put on such"));
    assert_int_equal(tl_executable_attach(x, device, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "ptx for sm_80 does not run on Fake GPU 0, which is sm_75"));
    assert_non_null(strstr(diag.text, "putting small on Fake GPU 0"));
    assert_int_equal(tl_device_open("cpu", &cpu, NULL), TL_OK);
    assert_int_equal(tl_executable_attach(x, cpu, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "small is compiled for cuda, not for a device of type cpu"));
    assert_int_equal(tl_runner_create(x, pool, 0, &r, NULL), TL_BAD_ARGUMENT);
    tl_executable_destroy(x);
    tl_device_close(cpu);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

/* Every allocation fails once: the status says so, nothing leaks, and what is attached afterwards works. */
static void too_little_memory_is_a_status(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        char what[64];
        snprintf(what, sizeof what, "fail-alloc=%d", n);
        make_spec(false);
        tl_device *device = open_device(what);
        tl_executable *x = make();
        tl_runner *r = NULL;
        tl_diag diag = { 0 };
        tl_status status = tl_executable_attach(x, device, &diag);
        if (status == TL_OK)
            status = tl_executable_prepare(x, pool, 0, &diag);
        if (status == TL_OK)
            status = tl_runner_create(x, pool, 0, &r, &diag);
        tl_runner_destroy(r);
        tl_executable_destroy(x);
        tl_device_close(device);
        assert_int_equal(fake.alive(), 0);
        if (status == TL_OK) {
            assert_true(n > 3);
            break;
        }
        assert_int_equal(status, TL_NO_MEMORY);
        assert_non_null(strstr(diag.text, "Fake GPU 0 has no memory for"));
    }
}

/* The device is lost in each launch of two runs in turn: the run fails, and no output looks as if it were right. */
static void a_lost_device_fails_the_run(void **state)
{
    (void)state;
    for (int n = 1; n <= 7; n++) {
        char what[64];
        tl_diag diag = { 0 };
        snprintf(what, sizeof what, "lose-launch=%d", n);
        make_spec(true); /* prepared on the host: every launch is one of a run */
        tl_device *device = open_device(what);
        tl_executable *x = make();
        attach(x, device);
        tl_runner *r = make_runner(x);
        tl_status status = TL_OK;
        int run = 0;
        for (; run < 2 && status == TL_OK; run++) {
            memset(out, 0, sizeof out);
            status =
                tl_runner_run(r, (const void *[]){ in }, (void *[]){ out[0], out[1] }, NULL, &diag);
        }
        if (n < 7) {
            assert_int_equal(status, TL_DEVICE);
            assert_int_equal(run, n <= 3 ? 1 : 2);
            assert_non_null(strstr(diag.text, "Fake GPU 0 is lost until another process opens it"));
            assert_true(out[1][3] == 0);
            assert_int_equal(tl_runner_run(r, (const void *[]){ in }, (void *[]){ out[0], out[1] },
                                           NULL, &diag),
                             TL_DEVICE);
        } else {
            assert_int_equal(status, TL_OK);
        }
        tl_runner_destroy(r);
        tl_executable_destroy(x);
        tl_device_close(device);
    }
}

static int setup(void **state)
{
    (void)state;
    folder = temp_folder_make();
    return tl_pool_create(&(tl_pool_options){ .threads = 2 }, &pool, NULL) == TL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    tl_pool_destroy(pool);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_inputs_and_outputs_cross),
        cmocka_unit_test(steps_are_timed_and_traced),
        cmocka_unit_test(a_hook_sees_the_host_s_copies),
        cmocka_unit_test(buffers_may_lie_on_the_device),
        cmocka_unit_test(a_stream_may_be_the_caller_s),
        cmocka_unit_test(it_is_saved_and_loaded),
        cmocka_unit_test(what_does_not_hold_is_refused),
        cmocka_unit_test(too_little_memory_is_a_status),
        cmocka_unit_test(a_lost_device_fails_the_run),
    };
    return cmocka_run_group_tests_name("executables on a device", tests, setup, teardown);
}
