/* tests/runtime/test_executable.c: a small model of compiled C kernels is made, saved, loaded,
 * prepared and run; damage is found.
 *
 *     W (constant) --pack (prepare)--> P
 *     x --scale(P)--> a --rev: two phases, scratch--> b --copy--> y2
 *                     a + b + C (constant) --add--> y
 * / */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <pthread.h>
#include <sys/stat.h>
#include "runtime/base/random.h"
#include "runtime/code_loader.h"
#include "runtime/executable.h"
#include "runtime/linked.h"
#include "tests/runtime/kernels.h"

enum { N = 1000 };

static const char source[] = KERNEL_START
    /* pack: P[i] = 2*W[i]; the buffers of what it does not touch are NULL */
    "void pack_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *w = a->buffers[1]; float *p = a->buffers[2]; (void)thread;\n"
    "  if (a->buffers[0] != 0) return;\n"
    "  for (int64_t i = b; i < e; i++) p[i] = 2*w[i];\n}\n"
    /* scale: A[i] = X[i]*P[i] for i < n, a dim */
    "void scale_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0], *p = a->buffers[1]; float *y = a->buffers[2]; "
    "(void)thread;\n"
    "  for (int64_t i = b; i < e; i++) y[i] = x[i]*p[i];\n}\n"
    "void scale_sizes(const int64_t *d, int64_t *x, int64_t *s, int64_t *t) {\n"
    "  x[0] = d[0]; *s = 0; *t = 0;\n}\n"
    /* rev: scratch[i] = A[i], then B[i] = scratch[n-1-i]; checks that thread scratch is its own */
    "void rev_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0]; float *s = (float *)a->scratch;\n"
    "  float *mine = (float *)(a->thread_scratch + thread*a->thread_scratch_stride);\n"
    "  for (int64_t i = b; i < e; i++) { mine[0] = x[i]; s[i] = mine[0]; }\n}\n"
    "void rev_1(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  float *y = a->buffers[1]; const float *s = (float *)a->scratch; (void)thread;\n"
    "  for (int64_t i = b; i < e; i++) y[i] = s[1000 - 1 - i];\n}\n"
    /* add: Y[i] = A[i] + B[i] + C[i] */
    "void add_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0], *y = a->buffers[1], *c = a->buffers[2]; (void)thread;\n"
    "  float *z = a->buffers[3]; for (int64_t i = b; i < e; i++) z[i] = x[i] + y[i] + c[i];\n}\n";

enum { V_X, V_W, V_P, V_A, V_B, V_C, V_Y, V_Y2, VALUES };
enum { K_PACK, K_SCALE, K_REV, K_ADD, KERNELS };

/* A model with everything that its spec points to. */
typedef struct {
    tl_text object;
    unsigned char storage[4 * N + 64] __attribute__((aligned(64)));
    float c[N] __attribute__((aligned(64)));
    const void *w_bytes; /* misaligned on purpose */
    float w[N];
    tl_port input, outputs[2];
    tl_executable_value values[VALUES];
    tl_executable_kernel kernels[KERNELS];
    tl_executable_step prepare[1], steps[4];
    tl_executable_spec spec;
} model;

static char *folder;
static tl_pool *pool;
static model *m;

static void fill_kernels(void)
{
    static const int64_t extents[2] = { N, N };
    static const char *const names[KERNELS] = { "pack", "scale", "rev", "add" };
    static const int buffers[KERNELS] = { 3, 3, 2, 4 };

    for (int i = 0; i < KERNELS; i++)
        m->kernels[i] = (tl_executable_kernel){
            .key = names[i],
            .descriptor = { .name = names[i],
                            .phase_count = i == K_REV ? 2 : 1,
                            .extents = extents,
                            .buffer_count = buffers[i] },
            .object = m->object.data,
            .object_size = m->object.size,
        };
    m->kernels[K_SCALE].descriptor.has_sizes = true;
    m->kernels[K_SCALE].descriptor.dim_count = 1;
    m->kernels[K_REV].descriptor.scratch_bytes = sizeof(float[N]);
    m->kernels[K_REV].descriptor.thread_scratch_bytes = 4;
}

static void fill_model(void)
{
    static const int pack[3] = { TL_NO_VALUE, V_W, V_P }, scale[3] = { V_X, V_P, V_A },
                     rev[2] = { V_A, V_B }, add[4] = { V_A, V_B, V_C, V_Y },
                     copy[2] = { V_B, V_Y2 };
    static const int64_t dims[1] = { N };
    static const struct {
        const char *name;
        tl_place place;
        int port;
    } values[VALUES] = {
        { "x", TL_PLACE_INPUT, 0 },  { "W", TL_PLACE_CONSTANT, 0 }, { "P", TL_PLACE_PREPARED, 0 },
        { "a", TL_PLACE_ARENA, 0 },  { "b", TL_PLACE_ARENA, 0 },    { "C", TL_PLACE_CONSTANT, 0 },
        { "y", TL_PLACE_OUTPUT, 0 }, { "y2", TL_PLACE_OUTPUT, 1 },
    };

    m->w_bytes = m->storage + 1;
    for (int i = 0; i < N; i++) {
        m->w[i] = (float)(i % 13);
        m->c[i] = (float)(i % 7) / 8;
    }
    memcpy(m->storage + 1, m->w, sizeof m->w);
    m->input = (tl_port){ "x", TL_F32, 2, { 2, N / 2 } };
    m->outputs[0] = (tl_port){ "y", TL_F32, 1, { N } };
    m->outputs[1] = (tl_port){ "y2", TL_F32, 1, { N } };
    for (int i = 0; i < VALUES; i++)
        m->values[i] = (tl_executable_value){ .name = values[i].name,
                                              .place = values[i].place,
                                              .port = values[i].port,
                                              .size = sizeof(float[N]) };
    m->values[V_W].data = m->w_bytes;
    m->values[V_C].data = m->c;
    fill_kernels();
    m->prepare[0] = (tl_executable_step){ "pack_w", K_PACK, 3, pack, NULL, NULL, NULL, 0, 0 };
    m->steps[0] = (tl_executable_step){ "scale_1", K_SCALE, 3, scale, dims, "c1", "w1", N, 12 * N };
    m->steps[1] = (tl_executable_step){ "rev_2", K_REV, 2, rev, NULL, NULL, NULL, 0, 8 * N };
    m->steps[2] = (tl_executable_step){ "add_3", K_ADD, 4, add, NULL, NULL, NULL, 2 * N, 16 * N };
    m->steps[3] = (tl_executable_step){ "copy_4", TL_STEP_COPY, 2, copy, NULL, NULL, NULL, 0, 0 };
    m->spec = (tl_executable_spec){ .model = "small",
                                    .note = "a note",
                                    .input_count = 1,
                                    .output_count = 2,
                                    .value_count = VALUES,
                                    .kernel_count = KERNELS,
                                    .prepare_count = 1,
                                    .step_count = 4,
                                    .inputs = &m->input,
                                    .outputs = m->outputs,
                                    .values = m->values,
                                    .kernels = m->kernels,
                                    .prepare = m->prepare,
                                    .steps = m->steps };
}

static int start(void **state)
{
    tl_pool_options options = { .threads = 3, .pin = TL_PIN_NEVER };

    (void)state;
    folder = temp_folder_make();
    if (tl_pool_create(&options, &pool, NULL) != TL_OK)
        return -1;
    m = aligned_alloc(64, (sizeof *m + 63) / 64 * 64);
    memset(m, 0, sizeof *m);
#if defined(__x86_64__)
    compile_kernel(folder, source, "", &m->object);
#endif
    return 0;
}

static int finish(void **state)
{
    (void)state;
    tl_text_free(&m->object);
    free(m);
    tl_pool_destroy(pool);
    temp_folder_remove(folder);
    return 0;
}

static int fresh(void **state)
{
    (void)state;
    fill_model();
    return 0;
}

static void need_object(void)
{
    if (m->object.size == 0) {
        print_message("skip: no x86-64 C compiler to make kernels with\n");
        skip();
    }
}

static tl_executable *make(void)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    need_object();
    if (tl_executable_create(&m->spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return x;
}

static tl_runner *make_runner(const tl_executable *x, int threads)
{
    tl_runner *r;
    tl_diag diag = { 0 };

    if (tl_runner_create(x, pool, threads, &r, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return r;
}

/* Runs with an input made from the seed; false when an output is wrong. */
static bool run_is_right(tl_runner *r, int seed)
{
    float *x = aligned_alloc(64, 4096), *y = aligned_alloc(64, 4096), *y2 = aligned_alloc(64, 4096);
    const void *inputs[1] = { x };
    void *outputs[2] = { y, y2 };
    bool right = true;

    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 7 + seed) % 31);
    right = tl_runner_run(r, inputs, outputs, NULL, NULL) == TL_OK;
    for (int i = 0; i < N && right; i++) {
        float a = x[i] * 2 * m->w[i], b = x[N - 1 - i] * 2 * m->w[N - 1 - i];
        right = y2[i] == b && y[i] == a + b + m->c[i];
    }
    free(x);
    free(y);
    free(y2);
    return right;
}

static void check_all(const tl_executable *x)
{
    for (int threads = 0; threads <= 3; threads++) {
        tl_runner *r = make_runner(x, threads);
        assert_int_equal(tl_runner_threads(r), threads == 0 ? 3 : threads);
        for (int seed = 0; seed < 5; seed++)
            assert_true(run_is_right(r, seed));
        tl_runner_destroy(r);
    }
}

static void makes_prepares_and_runs(void **state)
{
    (void)state;
    tl_executable *x = make();
    tl_runner *r;
    tl_diag diag = { 0 };

    assert_false(tl_executable_is_prepared(x));
    assert_int_equal(tl_runner_create(x, pool, 1, &r, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "not prepared"));
    assert_int_equal(tl_executable_prepare(x, pool, 0, &diag), TL_OK);
    assert_int_equal(tl_executable_prepare(x, pool, 0, &diag), TL_OK);
    check_all(x);
    assert_int_equal(tl_executable_find_input(x, "x"), 0);
    assert_int_equal(tl_executable_find_output(x, "y2"), 1);
    assert_int_equal(tl_executable_find_output(x, "z"), -1);

    tl_executable_sizes sizes = tl_executable_measure(x);
    assert_int_equal(sizes.constant_bytes, 2 * 4 * N);
    assert_true(sizes.prepared_bytes >= 4 * N && sizes.code_bytes > 0);
    r = make_runner(x, 2);
    tl_plan_sizes plan = tl_runner_memory(r);
    assert_true(plan.floor <= plan.planned && plan.planned <= plan.sum && plan.planned >= 8 * N);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

/* W is packed into a temporary, and that again: P is 4*W, and a is twice what it was. */
static void prepare_steps_hand_on(void **state)
{
    static const int first[3] = { TL_NO_VALUE, V_W, VALUES },
                     second[3] = { TL_NO_VALUE, VALUES, V_P };
    tl_executable_value values[VALUES + 1];
    tl_executable_step prepare[2] = { m->prepare[0], m->prepare[0] };

    (void)state;
    memcpy(values, m->values, sizeof m->values);
    values[VALUES] =
        (tl_executable_value){ .name = "t", .place = TL_PLACE_ARENA, .size = sizeof(float[N]) };
    prepare[0].values = first;
    prepare[1].values = second;
    m->spec.values = values;
    m->spec.value_count = VALUES + 1;
    m->spec.prepare = prepare;
    m->spec.prepare_count = 2;
    for (int i = 0; i < N; i++)
        m->w[i] *= 2; /* what the check computes with; the constant itself is in the storage */
    tl_executable *x = make();
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    check_all(x);
    tl_executable_destroy(x);
}

static void given_functions_run_too(void **state)
{
    (void)state;
    need_object();
    tl_code *code;
    tl_phase_fn *phases[KERNELS][2];
    assert_int_equal(tl_code_load(m->object.data, m->object.size, &code, NULL), TL_OK);
    for (int i = 0; i < KERNELS; i++) {
        assert_int_equal(tl_code_kernel(code, &m->kernels[i].descriptor, phases[i],
                                        &m->kernels[i].sizes, NULL),
                         TL_OK);
        m->kernels[i].phases = phases[i];
        m->kernels[i].object = NULL;
        m->kernels[i].object_size = 0;
    }
    tl_executable *x = make();
    tl_diag diag = { 0 };
    assert_int_equal(tl_executable_prepare(x, pool, 2, NULL), TL_OK);
    check_all(x);
    char *path = path_in(folder, "functions");
    assert_int_equal(tl_executable_save(x, false, path, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "has no object"));
    free(path);
    tl_executable_destroy(x);
    tl_code_unload(code);
}

static volatile float smallest = FLT_MIN, half_of_it;

static void halve(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)args, (void)begin, (void)end, (void)thread;
    half_of_it = smallest * 0.5f;
}

static void subnormal_numbers_are_zero_in_a_run_only(void **state)
{
    (void)state;
    tl_phase_fn *phases[2] = { halve, halve };
    const void *inputs[1] = { NULL };
    void *outputs[2];
    for (int i = 0; i < KERNELS; i++) {
        m->kernels[i].phases = phases;
        m->kernels[i].object = NULL;
        m->kernels[i].object_size = 0;
        m->kernels[i].descriptor.has_sizes = false;
    }
    tl_executable *x = make();
    half_of_it = 1;
    assert_int_equal(tl_executable_prepare(x, pool, 1, NULL), TL_OK);
    assert_true(half_of_it == 0);
    tl_runner *r = make_runner(x, 1);
    inputs[0] = aligned_alloc(64, (N * sizeof(float) + 63) / 64 * 64);
    for (int i = 0; i < 2; i++)
        outputs[i] = aligned_alloc(64, (N * sizeof(float) + 63) / 64 * 64);
    half_of_it = 1;
    assert_int_equal(tl_runner_run(r, inputs, outputs, NULL, NULL), TL_OK);
    assert_true(half_of_it == 0);
    halve(NULL, 0, 0, 0);
    assert_true(half_of_it > 0);
    free((void *)(uintptr_t)inputs[0]);
    free(outputs[0]);
    free(outputs[1]);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void save_and_load(const char *name, bool prepare_first)
{
    char *path = path_in(folder, name), *prepared = path_in(path, "prepared.bin");
    tl_executable *x = make(), *y;
    tl_diag diag = { 0 };

    if (prepare_first)
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    if (tl_executable_save(x, false, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_executable_destroy(x);
    assert_int_equal(access(prepared, F_OK), prepare_first ? 0 : -1);

    for (int round = 0; round < 2; round++) {
        if (tl_executable_load(path, &y, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(tl_executable_is_prepared(y), prepare_first || round == 1);
        assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
        assert_int_equal(access(prepared, F_OK), 0);
        check_all(y);
        const tl_executable_spec *spec = tl_executable_info(y);
        assert_string_equal(spec->note, "a note");
        assert_string_equal(spec->steps[0].workload, "w1");
        assert_int_equal(spec->steps[2].flops, 2 * N);
        assert_int_equal(spec->prepare_count, prepare_first ? 0 : 1);
        assert_int_equal(spec->kernel_count, prepare_first ? KERNELS - 1 : KERNELS);
        assert_string_equal(spec->inputs[0].name, "x");
        assert_int_equal(spec->inputs[0].rank, 2);
        tl_executable_destroy(y);
    }
    free(prepared);
    free(path);
}

static void saves_and_loads_prepared(void **state)
{
    (void)state;
    save_and_load("prepared", true);
}

static void saves_and_loads_unprepared(void **state)
{
    (void)state;
    save_and_load("unprepared", false);
}

/* A loaded executable can be saved again, elsewhere. */
static void saves_what_was_loaded(void **state)
{
    (void)state;
    char *first = path_in(folder, "first"), *second = path_in(folder, "second");
    tl_executable *x = make(), *y, *z;

    assert_int_equal(tl_executable_save(x, false, first, NULL), TL_OK);
    assert_int_equal(tl_executable_load(first, &y, NULL), TL_OK);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    assert_int_equal(tl_executable_save(y, false, second, NULL), TL_OK);
    tl_executable_destroy(y);
    assert_int_equal(tl_executable_load(second, &z, NULL), TL_OK);
    check_all(z);
    tl_executable_destroy(z);
    tl_executable_destroy(x);
    free(first);
    free(second);
}

/* a and b lie in one value, b first and 64 bytes of nothing between. */
static tl_executable_value *in_one_value(void)
{
    enum { APART = (sizeof(float[N]) + 63) / 64 * 64 + 64 };
    static tl_executable_value values[VALUES + 1];

    memcpy(values, m->values, sizeof m->values);
    values[VALUES] = (tl_executable_value){ .name = "ab", .place = TL_PLACE_ARENA };
    values[VALUES].size = APART + sizeof(float[N]);
    for (int i = 0; i < 2; i++) {
        tl_executable_value *v = &values[i == 0 ? V_B : V_A];
        v->place = TL_PLACE_WINDOW;
        v->whole = VALUES;
        v->offset = i * APART;
    }
    m->spec.values = values;
    m->spec.value_count = VALUES + 1;
    return values;
}

static void windows_are_saved_too(void **state)
{
    (void)state;
    in_one_value();
    save_and_load("windows", true);
    in_one_value();
    save_and_load("windows_unprepared", false);
    tl_executable *x = make();
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    tl_runner *r = make_runner(x, 1);
    assert_in_range(tl_runner_memory(r).floor, m->spec.values[VALUES].size, 16 * N);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void copy_16(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)begin, (void)end, (void)thread;
    memcpy(args->buffers[1], args->buffers[0], sizeof(float[16]));
}

/* x = (p, q) becomes y = (q, p): t = (q, ?), u = p, t = (q, u), and y from t, half by half: u comes and goes while t waits
 * for its second half. Nothing but windows of x, t and y is used. */
static void windows_lie_in_ports_and_live_as_long_as_the_whole(void **state)
{
    enum { X, Y, T, U, X0, X1, Y0, Y1, T0, T1, COUNT };
    static const int pairs[5][2] = { { X1, T0 }, { X0, U }, { U, T1 }, { T0, Y0 }, { T1, Y1 } };
    static const int wholes[3] = { X, Y, T };
    static const int64_t extent = 1;
    tl_executable_value values[COUNT] = { { .name = "x", .place = TL_PLACE_INPUT, .size = 128 },
                                          { .name = "y", .place = TL_PLACE_OUTPUT, .size = 128 },
                                          { .name = "t", .place = TL_PLACE_ARENA, .size = 128 },
                                          { .name = "u", .place = TL_PLACE_ARENA, .size = 64 } };
    tl_phase_fn *phases[1] = { copy_16 };
    const tl_executable_kernel kernel = {
        .key = "copy",
        .descriptor = { .name = "copy", .phase_count = 1, .extents = &extent, .buffer_count = 2 },
        .phases = phases
    };
    const tl_port ports[2] = { { "x", TL_F32, 1, { 32 } }, { "y", TL_F32, 1, { 32 } } };
    tl_executable_step steps[5];
    (void)state;
    for (int i = 0; i < 6; i++)
        values[X0 + i] = (tl_executable_value){ .name = "window",
                                                .place = TL_PLACE_WINDOW,
                                                .size = 64,
                                                .whole = wholes[i / 2],
                                                .offset = i % 2 * 64 };
    for (int i = 0; i < 5; i++)
        steps[i] = (tl_executable_step){ .name = "copy", .value_count = 2, .values = pairs[i] };
    m->spec = (tl_executable_spec){ .model = "windows",
                                    .input_count = 1,
                                    .output_count = 1,
                                    .value_count = COUNT,
                                    .kernel_count = 1,
                                    .step_count = 5,
                                    .inputs = &ports[0],
                                    .outputs = &ports[1],
                                    .values = values,
                                    .kernels = &kernel,
                                    .steps = steps };
    tl_executable *x;
    tl_diag diag = { 0 };
    if (tl_executable_create(&m->spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_runner *r = make_runner(x, 1);
    assert_int_equal(tl_runner_memory(r).planned, 192);
    float in[32] __attribute__((aligned(64))), out[32] __attribute__((aligned(64)));
    for (int i = 0; i < 32; i++)
        in[i] = (float)i;
    assert_int_equal(tl_runner_run(r, (const void *[]){ in }, (void *[]){ out }, NULL, NULL),
                     TL_OK);
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == in[(i + 16) % 32]);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void weights_stay_in_the_models_file(void **state)
{
    (void)state;
    need_object();
    char *weights = path_in(folder, "weights.bin"), *path = path_in(folder, "external");
    char *constants = path_in(path, "constants.bin"), *whole = path_in(folder, "whole");
    unsigned char *file = calloc(1, 12 + sizeof(float[N]));
    tl_executable *y;
    tl_diag diag = { 0 };
    struct stat info;

    memcpy(file + 12, m->w, sizeof(float[N]));
    assert_int_equal(tl_file_write(weights, file, 12 + sizeof(float[N]), NULL), TL_OK);
    m->values[V_W].file = weights;
    m->values[V_W].file_offset = 12;
    tl_executable *x = make();
    if (tl_executable_save(x, false, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(stat(constants, &info), 0);
    assert_int_equal(info.st_size, sizeof(float[N])); /* C, not W */
    assert_int_equal(tl_executable_save(x, true, whole, &diag), TL_OK);
    tl_executable_destroy(x);

    if (tl_executable_load(path, &y, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    check_all(y);
    assert_int_equal(tl_executable_measure(y).external_bytes, sizeof(float[N]));
    tl_executable_destroy(y);

    assert_int_equal(tl_file_write(weights, file, 12 + sizeof(float[N]), NULL), TL_OK);
    assert_int_equal(tl_executable_load(path, &y, &diag), TL_IO); /* another file now */
    unlink(weights);
    assert_int_equal(tl_executable_load(path, &y, &diag), TL_IO);
    assert_non_null(strstr(diag.text, "has changed"));
    if (tl_executable_load(whole, &y, &diag) != TL_OK) /* has them all */
        fail_msg("%s", diag.text);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    check_all(y);
    tl_executable_destroy(y);
    free(whole);
    free(file);
    free(weights);
    free(constants);
    free(path);
}

static void damage_file(const char *path, const tl_text *whole, tl_random *r)
{
    char *bytes = malloc(whole->size + 1);
    size_t size = whole->size;

    memcpy(bytes, whole->data, size);
    if (tl_random_below(r, 3) == 0)
        size = (size_t)tl_random_below(r, (int64_t)size);
    else
        bytes[tl_random_below(r, (int64_t)size)] ^= (char)(1 << tl_random_below(r, 8));
    assert_int_equal(tl_file_write(path, bytes, size, NULL), TL_OK);
    free(bytes);
}

/* Damage anywhere is a miss, or (padding between pieces) harmless. */
static void damage_is_found(void **state)
{
    static const char *const files[] = { "executable.json", "objects.bin", "constants.bin",
                                         "prepared.bin" };
    char *path = path_in(folder, "damaged");
    tl_executable *x = make();
    tl_random r = tl_random_make(21);
    int found = 0;

    (void)state;
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    assert_int_equal(tl_executable_save(x, false, path, NULL), TL_OK);
    tl_executable_destroy(x);
    for (int i = 0; i < 4; i++) {
        char *file = path_in(path, files[i]);
        tl_text whole = { 0 };
        assert_int_equal(tl_file_read(file, &whole, NULL), TL_OK);
        for (int round = 0; round < 60; round++) {
            tl_diag diag = { 0 };
            damage_file(file, &whole, &r);
            tl_status status = tl_executable_load(path, &x, &diag);
            if (status == TL_OK) {
                check_all(x);
                tl_executable_destroy(x);
                continue;
            }
            found++;
            assert_int_equal(status, TL_IO);
            assert_non_null(strstr(diag.text, path));
        }
        unlink(file);
        assert_int_equal(tl_executable_load(path, &x, NULL), i == 0 ? TL_BAD_ARGUMENT : TL_IO);
        assert_int_equal(tl_file_write(file, whole.data, whole.size, NULL), TL_OK);
        tl_text_free(&whole);
        free(file);
    }
    assert_true(found > 200);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    tl_executable_destroy(x);
    free(path);
}

static void a_bad_prepared_file_is_made_again(void **state)
{
    (void)state;
    char *path = path_in(folder, "stale"), *file = path_in(path, "prepared.bin");
    tl_executable *x = make();

    assert_int_equal(tl_executable_save(x, false, path, NULL), TL_OK);
    tl_executable_destroy(x);
    assert_int_equal(tl_file_write(file, "rubbish", 7, NULL), TL_OK);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    assert_false(tl_executable_is_prepared(x));
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    check_all(x);
    tl_executable_destroy(x);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    assert_true(tl_executable_is_prepared(x));
    tl_executable_destroy(x);
    free(file);
    free(path);
}

static void another_processors_code_is_refused(void **state)
{
    (void)state;
    char *path = path_in(folder, "foreign");
    tl_executable *x;
    tl_diag diag = { 0 };

    m->spec.cpu = (tl_cpu_features){ "x86_64", ~UINT64_C(0) };
    x = make();
    assert_int_equal(tl_executable_save(x, false, path, NULL), TL_OK);
    tl_executable_destroy(x);
    assert_int_equal(tl_executable_load(path, &x, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "compiled for a x86_64 processor"));
    free(path);
}

/* A model as a linker would have put it into a program. */
typedef struct {
    tl_packed packed;
    tl_code *code;
    tl_linked_function *functions[2 * KERNELS];
    unsigned char *constants;
    struct tilth_linked linked;
} linked_model;

static void link_model(bool prepared, linked_model *out)
{
    tl_executable *x = make();
    tl_diag diag = { 0 };
    int count = 0;

    if (prepared)
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    if (tl_executable_pack(x, true, &out->packed, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_code_load(m->object.data, m->object.size, &out->code, NULL), TL_OK);
    assert_int_equal(out->packed.objects.count, prepared ? KERNELS - 1 : KERNELS);
    for (int i = 0; i < out->packed.objects.count; i++) {
        const tl_descriptor *d = out->packed.descriptors[i];
        for (int k = 0; k < tl_descriptor_function_count(d); k++) {
            void *address = tl_code_find(out->code, tl_descriptor_function(d, k).text);
            assert_non_null(address);
            memcpy(&out->functions[count++], &address, sizeof address);
        }
    }
    tl_piece *pieces = out->packed.constants.items;
    out->constants = aligned_alloc(64, 3 * 4096);
    for (int i = 0; i < out->packed.constants.count; i++)
        memcpy(out->constants + pieces[i].offset, pieces[i].data, (size_t)pieces[i].size);
    void *weights = prepared ? aligned_alloc(64, 4096) : NULL;
    if (prepared)
        memcpy(weights, out->packed.prepared, sizeof(float[N]));
    out->linked = (struct tilth_linked){
        .magic = TL_LINKED_MAGIC,
        .text_size = out->packed.text.size,
        .constants_size = (uint64_t)out->packed.constants.size,
        .prepared_size = (uint64_t)out->packed.prepared_size,
        .function_count = (uint64_t)count,
        .text = out->packed.text.data,
        .constants = out->constants,
        .prepared = weights,
        .functions = out->functions,
    };
    tl_executable_destroy(x);
}

static void unlink_model(linked_model *l)
{
    tl_packed_free(&l->packed);
    tl_code_unload(l->code);
    free(l->constants);
    free((void *)l->linked.prepared);
}

static void opens_what_is_linked(void **state)
{
    (void)state;
    for (int prepared = 0; prepared < 2; prepared++) {
        linked_model l = { 0 };
        tl_executable *x;
        tl_diag diag = { 0 };
        link_model(prepared != 0, &l);
        if (tl_executable_open_linked(&l.linked, &x, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(tl_executable_is_prepared(x), prepared);
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
        check_all(x);
        assert_true(tl_executable_measure(x).code_bytes > 0);
        assert_string_equal(tl_executable_info(x)->steps[0].workload, "w1");
        tl_packed again; /* the code has no objects any more */
        assert_int_equal(tl_executable_pack(x, true, &again, &diag), TL_BAD_ARGUMENT);
        tl_executable_destroy(x);
        unlink_model(&l);
    }
}

static void expect_damaged(const struct tilth_linked *linked, const char *part)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    assert_int_equal(tl_executable_open_linked(linked, &x, &diag), TL_IO);
    if (strstr(diag.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, part);
}

static void refuses_what_is_not_linked_well(void **state)
{
    (void)state;
    linked_model l = { 0 };
    link_model(true, &l);

    struct tilth_linked bad = l.linked;
    bad.magic[7]++;
    expect_damaged(&bad, "of this version");
    bad = l.linked;
    bad.text_size--;
    expect_damaged(&bad, "checksum");
    bad = l.linked;
    bad.function_count--;
    expect_damaged(&bad, "not as many functions");
    bad = l.linked;
    bad.constants_size -= 64;
    expect_damaged(&bad, "constants");
    bad = l.linked;
    bad.prepared_size = 0;
    expect_damaged(&bad, "prepared constants are absent");
    unlink_model(&l);
}

static void *run_often(void *executable)
{
    tl_runner *r;

    if (tl_runner_create(executable, pool, 0, &r, NULL) != TL_OK)
        return executable;
    bool right = true;
    for (int i = 0; i < 100 && right; i++)
        right = run_is_right(r, i);
    tl_runner_destroy(r);
    return right ? NULL : executable;
}

static void several_callers_run_at_once(void **state)
{
    (void)state;
    enum { CALLERS = 3 };
    pthread_t callers[CALLERS];
    tl_executable *x = make();

    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, run_often, x), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
    tl_executable_destroy(x);
}

static void count_hook(void *user, int step, bool after, void *const *buffers)
{
    int *calls = user;

    assert_int_equal(step, *calls / 2);
    assert_int_equal(after, *calls % 2);
    assert_non_null(buffers[0]);
    ++*calls;
}

static void tensors_hooks_and_times(void **state)
{
    (void)state;
    tl_executable *x = make();
    tl_diag diag = { 0 };
    int64_t step_ns[4] = { -1, -1, -1, -1 };
    float *storage = calloc(N + 1, sizeof(float));
    tl_tensor input, outputs[2] = { { 0 }, { 0 } };

    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    tl_runner *r = make_runner(x, 2);
    for (int i = 0; i < N; i++)
        storage[i + 1] = (float)i;
    assert_int_equal(tl_tensor_borrow(TL_F32, 2, (int64_t[]){ 2, N / 2 }, storage + 1, &input,
                                      NULL),
                     TL_OK);
    if (tl_runner_run_tensors(r, &input, outputs, step_ns, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < N; i++)
        assert_true(((float *)outputs[1].data)[i] == (float)(N - 1 - i) * 2 * m->w[N - 1 - i]);
    for (int i = 0; i < 4; i++)
        assert_true(step_ns[i] >= 0);
    assert_true(tl_runner_time_step(r, 1, 3) > 0);

    int calls = 0;
    const void *in[1] = { outputs[0].data };
    void *out[2] = { outputs[1].data, outputs[0].data };
    assert_int_equal(tl_runner_run_hooked(r, in, out, count_hook, &calls, NULL), TL_OK);
    assert_int_equal(calls, 8);

    assert_int_equal(tl_runner_run(r, (const void *[]){ storage + 1 }, out, NULL, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "the buffer of x"));
    input.dtype = TL_I32;
    assert_int_equal(tl_runner_run_tensors(r, &input, outputs, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "x is i32[2, 500]; the model wants f32[2, 500]"));

    tl_tensor_free(&outputs[0]);
    tl_tensor_free(&outputs[1]);
    free(storage);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void refused(const char *says)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    assert_int_equal(tl_executable_create(&m->spec, &x, &diag), TL_BAD_ARGUMENT);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
    fill_model();
}

static void bad_specs_are_refused(void **state)
{
    static const int wild[3] = { V_X, VALUES, V_A }, port[3] = { V_X, V_W, V_P },
                     shared[3] = { TL_NO_VALUE, V_A, V_P };
    (void)state;
    need_object();
    m->steps[0].values = wild;
    refused("step scale_1: value 8 of 8");
    m->prepare[0].values = port;
    refused("prepare step pack_w uses x, which is an input");
    m->prepare[0].values = shared;
    refused("arena value a is used by prepare steps and by steps");
    m->steps[0].dims = NULL;
    refused("no values for the 1 dims");
    m->steps[1].value_count = 1;
    refused("1 values for the 2 buffers of kernel rev");
    m->steps[1].kernel = 4;
    refused("kernel 4 of 4");
    m->values[V_Y].port = 2;
    refused("output 2 of 2");
    m->values[V_Y].size = 4 * N + 1;
    refused("do not fit");
    m->values[V_A].size = -1;
    refused("negative");
    m->values[V_W].data = NULL;
    refused("constant W has no data");
    m->values[V_B].size = 8;
    refused("copy copy_4");
    m->spec.step_count = 3;
    refused("no step writes output y2");
    m->kernels[K_ADD].object = "not an object";
    m->kernels[K_ADD].object_size = 13;
    refused("kernel add");
    m->kernels[K_ADD].object = NULL;
    refused("kernel add has no code");
    m->spec.prepare_count = 0;
    refused("prepared values but no prepare steps");
    m->outputs[0].shape[0] = -2;
    refused("output y");
    in_one_value()[V_A].offset += 4;
    refused("no aligned window");
    in_one_value()[V_A].offset += 64;
    refused("no aligned window");
    in_one_value()[V_A].offset = -64;
    refused("no aligned window");
    in_one_value()[V_A].whole = VALUES + 1;
    refused("a window of value 9 of 9");
    in_one_value()[V_A].whole = V_B;
    refused("a window of a value that is no input, output or arena value");
    in_one_value()[V_A] = (tl_executable_value){
        .name = "a", .place = TL_PLACE_WINDOW, .size = sizeof(float[N]), .whole = V_X
    };
    m->prepare[0].values = (const int[]){ TL_NO_VALUE, V_A, V_P };
    refused("prepare step pack_w uses a, which is an input");
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(makes_prepares_and_runs),
        TEST(prepare_steps_hand_on),
        TEST(given_functions_run_too),
        TEST(subnormal_numbers_are_zero_in_a_run_only),
        TEST(saves_and_loads_prepared),
        TEST(saves_and_loads_unprepared),
        TEST(saves_what_was_loaded),
        TEST(windows_are_saved_too),
        TEST(windows_lie_in_ports_and_live_as_long_as_the_whole),
        TEST(weights_stay_in_the_models_file),
        TEST(damage_is_found),
        TEST(a_bad_prepared_file_is_made_again),
        TEST(another_processors_code_is_refused),
        TEST(opens_what_is_linked),
        TEST(refuses_what_is_not_linked_well),
        TEST(several_callers_run_at_once),
        TEST(tensors_hooks_and_times),
        TEST(bad_specs_are_refused),
    };
    return cmocka_run_group_tests_name("executable", tests, start, finish);
}
