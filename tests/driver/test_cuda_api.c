/* tests/driver/test_cuda_api.c: the C API on a GPU: loading, saving and opening a model for one, buffers and streams of the
 * device. By the driver without a GPU that executes kernels in the emulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "driver/api/tilth.h"
#define FAKE_LIBRARY "libcuda_emulated.so"
#include "models/zoo.h"
#include "tests/gpu/with_fake.h"
#include "tests/runtime/kernels.h"

/* bert_tiny of four tokens: inputs i64[1, 4] (ids, mask), outputs f32[1, 4, 128] and f32[1, 128]. */
enum { TOKENS = 4, IDS = TOKENS * 8, STATES = TOKENS * 128, POOLED = 128 };

static char *folder;
static _Alignas(64) int64_t ids[8] = { 3, 14, 15, 92 }, mask[8] = { 1, 1, 1, 1 };
static _Alignas(64) float want[POOLED], states[STATES], got[POOLED];

/* The driver's own calls, as another user of the GPU in this process has them. */
static struct {
    int (*retain)(void **, int), (*release)(int), (*set)(void *);
    int (*allocate)(uintptr_t *, size_t), (*free_memory)(uintptr_t);
    int (*stream)(void **, unsigned), (*drop)(void *), (*wait)(void *);
    int (*in)(uintptr_t, const void *, size_t, void *), (*out)(void *, uintptr_t, size_t, void *);
} cu;

static void find_driver(void)
{
    char path[PATH_MAX];
    fake_path(path);
    void *library = dlopen(path, RTLD_NOW);
    *(void **)&cu.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cu.release = dlsym(library, "cuDevicePrimaryCtxRelease_v2");
    *(void **)&cu.set = dlsym(library, "cuCtxSetCurrent");
    *(void **)&cu.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&cu.free_memory = dlsym(library, "cuMemFree_v2");
    *(void **)&cu.stream = dlsym(library, "cuStreamCreate");
    *(void **)&cu.drop = dlsym(library, "cuStreamDestroy_v2");
    *(void **)&cu.wait = dlsym(library, "cuStreamSynchronize");
    *(void **)&cu.in = dlsym(library, "cuMemcpyHtoDAsync_v2");
    *(void **)&cu.out = dlsym(library, "cuMemcpyDtoHAsync_v2");
}

static char *model_path;

static bool is_right(void)
{
    for (int i = 0; i < POOLED; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-4f))
            return false;
    return true;
}

static tilth_model *load(const char *target)
{
    tilth_model *model;
    tilth_error error;
    const tilth_load_options options = { .struct_size = sizeof options,
                                         .target = target,
                                         .no_cache = 1 };

    if (tilth_model_load(model_path, &options, &model, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    return model;
}

static void run(tilth_model *model)
{
    tilth_runner *r;
    tilth_error error;

    memset(got, 0, sizeof got);
    if (tilth_runner_create(model, 0, &r, &error) != TILTH_OK ||
        tilth_runner_bind_input(r, 0, ids, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_input(r, 1, mask, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_output(r, 1, got, sizeof got, &error) != TILTH_OK ||
        tilth_runner_run(r, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    tilth_runner_destroy(r);
}

static void run_is_right(tilth_model *model)
{
    run(model);
    assert_true(is_right());
}

static void it_is_loaded_saved_and_opened(void **state)
{
    char *path = path_in(folder, "saved.tilth");
    tilth_model *model = load("cuda"), *again;
    tilth_error error;

    (void)state;
    assert_string_equal(tilth_model_device(model), "cuda:0");
    run_is_right(model);
    assert_int_equal(tilth_model_save(model, path, &error), TILTH_OK);
    tilth_model_destroy(model);
    assert_int_equal(tilth_model_open(path, NULL, &again, &error), TILTH_OK);
    assert_string_equal(tilth_model_device(again), "cuda:0");
    run_is_right(again);
    tilth_model_destroy(again);
    assert_int_equal(tilth_model_open_on(path, "cuda:1", NULL, &again, &error), TILTH_OK);
    assert_string_equal(tilth_model_device(again), "cuda:1");
    run_is_right(again);
    tilth_model_destroy(again);
    assert_int_equal(tilth_model_open_on(path, "cuda:7", NULL, &again, &error), TILTH_DEVICE);
    assert_non_null(strstr(error.text, "there is no device cuda:7: this machine has 2"));
    assert_int_equal(tilth_model_open_on(path, "cpu", NULL, &again, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(tilth_model_open_on(path, "tpu", NULL, &again, &error), TILTH_BAD_ARGUMENT);
    free(path);
    assert_int_equal(fake.alive(), 0);
}

static void buffers_and_streams_are_the_caller_s(void **state)
{
    tilth_model *model = load("cuda:0");
    tilth_runner *r;
    tilth_error error;
    void *context, *stream;
    uintptr_t dx, dm, ds, dy;

    (void)state;
    assert_int_equal(cu.retain(&context, 0), 0);
    assert_int_equal(cu.set(context), 0);
    assert_int_equal(cu.stream(&stream, 0), 0);
    assert_int_equal(cu.allocate(&dx, IDS), 0);
    assert_int_equal(cu.allocate(&dm, IDS), 0);
    assert_int_equal(cu.allocate(&ds, sizeof states), 0);
    assert_int_equal(cu.allocate(&dy, sizeof got), 0);
    if (tilth_runner_create_in_stream(model, stream, &r, &error) != TILTH_OK ||
        tilth_runner_bind_device_input(r, 0, (void *)dx, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_device_input(r, 1, (void *)dm, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_device_output(r, 0, (void *)ds, sizeof states, &error) != TILTH_OK ||
        tilth_runner_bind_device_output(r, 1, (void *)dy, sizeof got, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < 3; i++) {
        memset(got, 0, sizeof got);
        assert_int_equal(cu.in(dx, ids, IDS, stream), 0);
        assert_int_equal(cu.in(dm, mask, IDS, stream), 0);
        if (tilth_runner_run(r, &error) != TILTH_OK)
            fail_msg("%s", error.text);
        assert_int_equal(cu.out(got, dy, sizeof got, stream), 0);
        assert_int_equal(cu.wait(stream), 0);
        assert_true(is_right());
    }
    assert_int_equal(tilth_runner_read_output(r, 1, got, sizeof got, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "is bound to memory of a GPU"));
    /* one on the device, one on the host */
    memset(got, 0, sizeof got);
    assert_int_equal(tilth_runner_bind_output(r, 1, got, sizeof got, &error), TILTH_OK);
    assert_int_equal(tilth_runner_run(r, &error), TILTH_OK);
    assert_true(is_right());
    tilth_runner_destroy(r);
    assert_int_equal(cu.free_memory(dx), 0);
    assert_int_equal(cu.free_memory(dm), 0);
    assert_int_equal(cu.free_memory(ds), 0);
    assert_int_equal(cu.free_memory(dy), 0);
    assert_int_equal(cu.drop(stream), 0);
    tilth_model_destroy(model);
    assert_int_equal(cu.set(NULL), 0);
    assert_int_equal(cu.release(0), 0);
    assert_int_equal(fake.alive(), 0);
}

static void a_cpu_has_neither(void **state)
{
    tilth_model *model = load("cpu");
    tilth_runner *r;
    tilth_error error;

    (void)state;
    assert_string_equal(tilth_model_device(model), "cpu");
    assert_int_equal(tilth_runner_create_in_stream(model, &error, &r, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "runs on the CPU, which has no streams"));
    assert_int_equal(tilth_runner_create(model, 1, &r, &error), TILTH_OK);
    assert_int_equal(tilth_runner_bind_device_input(r, 0, ids, IDS, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "the model runs on the CPU"));
    tilth_runner_destroy(r);
    tilth_model_destroy(model);
    assert_null(tilth_model_device(NULL));
}

/* Last: the device is lost for this process. */
static void a_lost_device_is_a_status(void **state)
{
    tilth_model *model = load("cuda");
    tilth_runner *r;
    tilth_error error;

    (void)state;
    assert_int_equal(tilth_runner_create(model, 0, &r, &error), TILTH_OK);
    assert_int_equal(tilth_runner_bind_input(r, 0, ids, IDS, &error), TILTH_OK);
    assert_int_equal(tilth_runner_bind_input(r, 1, mask, IDS, &error), TILTH_OK);
    fake_say("devices=2,lose-launch=1");
    assert_int_equal(tilth_runner_run(r, &error), TILTH_DEVICE);
    assert_non_null(strstr(error.text, "Fake GPU 0 is lost until another process opens it"));
    assert_int_equal(tilth_runner_read_output(r, 1, got, sizeof got, &error), TILTH_BAD_ARGUMENT);
    tilth_runner_destroy(r);
    tilth_model_destroy(model);
}

static int set_up(void **state)
{
    const tl_shape_override shape = {
        .name = "input_ids",
        .shape = { .rank = 2, .dims = { { .extent = 1 }, { .extent = TOKENS } } }
    };
    (void)state;
    folder = temp_folder_make();
    model_path = path_in(folder, "model.onnx");
    setenv("TILTH_PTX_WITH_IR", "1", 1);
    fake_say("devices=2");
    find_driver();
    if (tl_zoo_write("bert_tiny", &shape, 1, 3, false, model_path, NULL) != TL_OK)
        return -1;
    tilth_model *model = load("cpu");
    run(model);
    tilth_model_destroy(model);
    memcpy(want, got, sizeof want);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(model_path);
    temp_folder_remove(folder);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_loaded_saved_and_opened),
        cmocka_unit_test(buffers_and_streams_are_the_caller_s), cmocka_unit_test(a_cpu_has_neither),
        cmocka_unit_test(a_lost_device_is_a_status), /* last */
    };
    return cmocka_run_group_tests_name("the C API on a GPU", tests, set_up, tear_down);
}
