/* tests/runtime/small_model.h: a small model of compiled C kernels, and whether it computes what it should.
 *
 *     W (constant) --pack (prepare)--> P
 *     x --scale(P)--> a --rev: two phases, scratch--> b --copy--> y2
 *                     a + b + C (constant) --add--> y
 */
#ifndef TL_TESTS_RUNTIME_SMALL_MODEL_H
#define TL_TESTS_RUNTIME_SMALL_MODEL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runtime/executable/executable.h"
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

static inline void fill_kernels(void)
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

static inline void fill_model(void)
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
    m->input = (tl_port){ .name = "x", .dtype = TL_F32, .rank = 2, .shape = { 2, N / 2 } };
    m->outputs[0] = (tl_port){ .name = "y", .dtype = TL_F32, .rank = 1, .shape = { N } };
    m->outputs[1] = (tl_port){ .name = "y2", .dtype = TL_F32, .rank = 1, .shape = { N } };
    for (int i = 0; i < VALUES; i++)
        m->values[i] = (tl_executable_value){ .name = values[i].name,
                                              .place = values[i].place,
                                              .port = values[i].port,
                                              .size = sizeof(float[N]) };
    m->values[V_W].data = m->w_bytes;
    m->values[V_C].data = m->c;
    fill_kernels();
    m->prepare[0] = (tl_executable_step){
        .name = "pack_w", .kernel = K_PACK, .value_count = 3, .values = pack
    };
    m->steps[0] = (tl_executable_step){ .name = "scale_1",
                                        .kernel = K_SCALE,
                                        .value_count = 3,
                                        .values = scale,
                                        .dims = dims,
                                        .class_key = "c1",
                                        .workload = "w1",
                                        .flops = N,
                                        .bytes = 12 * N };
    m->steps[1] = (tl_executable_step){
        .name = "rev_2", .kernel = K_REV, .value_count = 2, .values = rev, .bytes = 8 * N
    };
    m->steps[2] = (tl_executable_step){ .name = "add_3",
                                        .kernel = K_ADD,
                                        .value_count = 4,
                                        .values = add,
                                        .flops = 2 * N,
                                        .bytes = 16 * N };
    m->steps[3] = (tl_executable_step){
        .name = "copy_4", .kernel = TL_STEP_COPY, .value_count = 2, .values = copy
    };
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

static inline int start(void **state)
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

static inline int finish(void **state)
{
    (void)state;
    tl_text_free(&m->object);
    free(m);
    tl_pool_destroy(pool);
    temp_folder_remove(folder);
    return 0;
}

static inline int fresh(void **state)
{
    (void)state;
    fill_model();
    return 0;
}

static inline void need_object(void)
{
    if (m->object.size == 0) {
        print_message("skip: no x86-64 C compiler to make kernels with\n");
        skip();
    }
}

static inline tl_executable *make(void)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    need_object();
    if (tl_executable_create(&m->spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return x;
}

static inline tl_runner *make_runner(const tl_executable *x, int threads)
{
    tl_runner *r;
    tl_diag diag = { 0 };

    if (tl_runner_create(x, pool, threads, &r, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return r;
}

/* Runs with an input made from the seed; false when an output is wrong. */
static inline bool run_is_right(tl_runner *r, int seed)
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

static inline void check_all(const tl_executable *x)
{
    for (int threads = 0; threads <= 3; threads++) {
        tl_runner *r = make_runner(x, threads);
        assert_int_equal(tl_runner_threads(r), threads == 0 ? 3 : threads);
        for (int seed = 0; seed < 5; seed++)
            assert_true(run_is_right(r, seed));
        tl_runner_destroy(r);
    }
}

/* a and b lie in one value, b first and 64 bytes of nothing between. */
static inline tl_executable_value *in_one_value(void)
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

#endif
