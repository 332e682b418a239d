/* tests/runtime/test_cuda.c: GPUs by the CUDA driver, as far as a driver without a GPU can tell: what a device does, and that
 * each thing that goes wrong is a status and a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>
#include "runtime/cuda/cuda_abi.h"
#include "runtime/device/device.h"
#include "tests/gpu/with_fake.h"

enum { N = 1000 };

static int twice(const fake_launch *l)
{
    const float *x = *(const float **)l->parameters[0];
    float *y = *(float **)l->parameters[1];

    for (unsigned i = 0; i < l->grid[0] * l->block[0] && i < N; i++)
        y[i] = 2.0f * x[i];
    return 0;
}

static tl_launch a_launch(int blocks)
{
    return (tl_launch){ .grid = { blocks, 1, 1 },
                        .block = { 256, 1, 1 },
                        .cluster = { 1, 1, 1 },
                        .registers = -1,
                        .spill_bytes = -1 };
}

static tl_descriptor doubling(const tl_launch *launch)
{
    return (tl_descriptor){ .name = "twice",
                            .phase_count = 1,
                            .buffer_count = 2,
                            .form = TL_FORM_PTX,
                            .arch = "sm_80",
                            .launches = launch };
}

static tl_device *open_device(const char *what)
{
    tl_device *device;
    tl_diag diag = { 0 };

    fake_say(what);
    fake.add("twice_0", twice);
    if (tl_device_open("cuda", &device, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return device;
}

static tl_device_kernel *load_kernel(tl_device *device, const tl_descriptor *d)
{
    char ptx[4096];
    tl_device_kernel *kernel;
    tl_diag diag = { 0 };

    fake_ptx(ptx, sizeof ptx, "twice_0", 2);
    if (device->type->load(device, d, ptx, strlen(ptx), &kernel, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return kernel;
}

/* In a child: what is loaded once a process, and whether it fails, is different in each. */
static void child_says(const char *what, tl_status want, const char *sentence)
{
    pid_t child = fork();
    if (child == 0) {
        tl_device *device;
        tl_diag diag = { 0 };
        char path[PATH_MAX];
        fake_path(path);
        setenv("TILTH_CUDA_LIBRARY", what[0] == '/' ? what : path, 1);
        setenv("FAKE_CUDA", what, 1);
        tl_status status = tl_device_open("cuda:1", &device, &diag);
        if (status != want || strstr(diag.text, sentence) == NULL) {
            fprintf(stderr, "%s: %d, %s\n", what, (int)status, diag.text);
            _exit(1);
        }
        tl_status again = tl_device_open("cuda:1", &device, &diag);
        _exit(again == want ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void why_there_is_none_is_said(void **state)
{
    (void)state;
    child_says("no-device", TL_DEVICE, "the CUDA driver finds no GPU");
    child_says("devices=0", TL_DEVICE, "the CUDA driver finds no GPU");
    child_says("devices=1", TL_DEVICE, "there is no device cuda:1: this machine has 1, cuda:0");
    child_says("version=10020", TL_DEVICE, "is of CUDA 10.2, 11.0 is needed");
    child_says("fail-init=803", TL_DEVICE,
               "failed in cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): system has");
    child_says("devices=2,sm=60", TL_UNSUPPORTED, "compute capability 6.0; 7.0 is needed");
    child_says("/nowhere/libcuda.so.1", TL_DEVICE, "there is no CUDA driver: TILTH_CUDA_LIBRARY: ");
    child_says("/lib/x86_64-linux-gnu/libm.so.6", TL_DEVICE, "too old: it has no cuInit");
}

static void a_device_says_what_it_is(void **state)
{
    tl_device *d = open_device("devices=2,memory=4000000"), *second;
    int64_t available, total;

    (void)state;
    assert_string_equal(d->facts.name, "Fake GPU 0");
    assert_string_equal(d->facts.arch, "sm_90");
    assert_string_equal(d->facts.driver, "CUDA 12.8");
    assert_string_equal(d->facts.fingerprint, "Fake GPU 0 sm_90 132 SM 1980 MHz");
    assert_string_equal(d->facts.id, "00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_true(d->facts.multiprocessors == 132 && d->facts.shared_block == 232448);
    assert_true(d->facts.has_graphs && d->facts.has_clusters && d->facts.has_tensor_maps);
    assert_int_equal(d->type->memory(d, &available, &total, NULL), TL_OK);
    assert_true(available == 4000000 && total == 4000000);
    assert_int_equal(tl_device_open("cuda:1", &second, NULL), TL_OK);
    assert_string_equal(second->facts.name, "Fake GPU 1");
    tl_device_close(second);
    tl_device_close(d);
    assert_int_equal(fake.alive(), 0);
}

/* Everything that a queue does, at once or as a graph that runs twice. */
static void doubles(bool as_graph)
{
    tl_device *device = open_device("");
    const tl_device_type *type = device->type;
    const tl_launch launch = a_launch(4);
    const tl_descriptor d = doubling(&launch);
    tl_device_kernel *kernel = load_kernel(device, &d);
    tl_queue *queue;
    tl_device_event *first, *last;
    tl_device_graph *graph = NULL;
    void *x, *y, *z, *host;
    float in[N], out[N];
    int64_t bytes = sizeof in;
    double ns = 0;

    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    assert_int_equal(kernel->descriptor.launches[0].registers, 40);
    assert_int_equal(kernel->descriptor.launches[0].spill_bytes, 0);
    assert_int_equal(type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(type->make_event(device, &first, NULL), TL_OK);
    assert_int_equal(type->make_event(device, &last, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &x, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &y, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &z, NULL), TL_OK);
    assert_int_equal(type->allocate_host(device, bytes, &host, NULL), TL_OK);
    const tl_kernel_args args = { .buffers = (void *[]){ x, y } };
    memcpy(host, in, sizeof in);
    assert_int_equal(type->copy_in(queue, x, host, bytes, NULL), TL_OK);
    if (as_graph)
        assert_int_equal(type->begin_graph(queue, NULL), TL_OK);
    assert_int_equal(type->fill(queue, z, 0, bytes, NULL), TL_OK);
    assert_int_equal(type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    assert_int_equal(type->copy_within(queue, z, y, bytes, NULL), TL_OK);
    if (as_graph) {
        assert_int_equal(type->end_graph(queue, &graph, NULL), TL_OK);
        assert_int_equal(type->run_graph(queue, graph, NULL), TL_OK);
        assert_int_equal(type->record(queue, first, NULL), TL_OK);
        assert_int_equal(type->run_graph(queue, graph, NULL), TL_OK);
    } else {
        assert_int_equal(type->record(queue, first, NULL), TL_OK);
        assert_int_equal(type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    }
    assert_int_equal(type->record(queue, last, NULL), TL_OK);
    assert_int_equal(type->copy_out(queue, out, z, bytes, NULL), TL_OK);
    assert_int_equal(type->wait(queue, NULL), TL_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == 2.0f * (float)i);
    assert_int_equal(type->elapsed(first, last, &ns, NULL), TL_OK);
    assert_true(ns >= 2000 && ns < 1e6);

    type->release(device, x);
    type->release(device, y);
    void *again;
    assert_int_equal(type->allocate(device, bytes - 100, &again, NULL), TL_OK);
    assert_true(again == x || again == y); /* it was kept */
    type->release(device, again);
    type->release(device, z);
    type->release_host(device, host);
    if (as_graph)
        type->drop_graph(graph);
    type->drop_event(first);
    type->drop_event(last);
    type->drop_queue(queue);
    type->unload(kernel);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

static void a_queue_copies_launches_and_times(void **state)
{
    (void)state;
    doubles(false);
}

static void a_graph_is_run_again_and_again(void **state)
{
    (void)state;
    doubles(true);
}

/* What the driver made of PTX is loaded in its place. */
static void ptx_is_compiled_once(void **state)
{
    tl_device *device = open_device("");
    const tl_launch launch = a_launch(1);
    tl_descriptor d = doubling(&launch);
    tl_text cubin = { 0 };
    tl_device_kernel *kernel;
    char ptx[4096];

    (void)state;
    fake_ptx(ptx, sizeof ptx, "twice_0", 2);
    assert_int_equal(device->type->compile(device, &d, ptx, strlen(ptx), &cubin, NULL), TL_OK);
    assert_true(cubin.size > 10 && memcmp(cubin.data, "FAKECUBIN", 9) == 0);
    d.form = TL_FORM_CUBIN;
    d.arch = "sm_90";
    assert_int_equal(device->type->load(device, &d, cubin.data, cubin.size, &kernel, NULL), TL_OK);
    device->type->unload(kernel);
    tl_text_free(&cubin);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

/* Loading fails with that sentence. */
static void refuses(const char *what, const tl_descriptor *d, const char *ptx, tl_status want,
                    const char *says)
{
    tl_device *device = open_device(what);
    tl_device_kernel *kernel;
    tl_diag diag = { 0 };

    assert_int_equal(device->type->load(device, d, ptx, strlen(ptx), &kernel, &diag), want);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

static void code_that_does_not_run_is_refused(void **state)
{
    tl_launch launch = a_launch(1);
    tl_descriptor d = doubling(&launch);
    char ptx[4096];

    (void)state;
    fake_ptx(ptx, sizeof ptx, "twice_0", 2);
    refuses("fail-load=1", &d, ptx, TL_UNSUPPORTED,
            "kernel twice: the driver (CUDA 12.8) does not take its code (218): ptxas application "
            "ptx input, line 12; error   : Arguments mismatch");
    refuses("", &d, "", TL_UNSUPPORTED, "Missing .version directive");
    refuses("sm=75", &d, ptx, TL_UNSUPPORTED,
            "ptx for sm_80 does not run on Fake GPU 0, which is sm_75");
    d.arch = "sm_90a";
    refuses("sm=100", &d, ptx, TL_UNSUPPORTED, "ptx for sm_90a does not run on");
    d.arch = "sm_80";
    d.form = TL_FORM_CUBIN;
    refuses("", &d, ptx, TL_UNSUPPORTED, "cubin for sm_80 does not run on");
    d.form = TL_FORM_OBJECT;
    refuses("", &d, ptx, TL_UNSUPPORTED, "a GPU does not run the code of a CPU");
    d.form = TL_FORM_PTX;
    d.name = "thrice";
    refuses("", &d, ptx, TL_BAD_ARGUMENT, "its code has no entry thrice_0");
    d.name = "twice";
    launch.dynamic_shared_bytes = 300000;
    refuses("", &d, ptx, TL_UNSUPPORTED,
            "a block needs 300000 bytes of shared memory, one of Fake GPU 0 has 232448");
    launch.dynamic_shared_bytes = 0;
    launch.block[1] = 2;
    refuses("", &d, ptx, TL_UNSUPPORTED, "a block of 512 threads with 40 registers each");
    launch.block[1] = 1;
    d.buffer_count = 600;
    refuses("", &d, ptx, TL_UNSUPPORTED, "600 buffers, 0 dims and 0 maps are more parameters");
    d.buffer_count = 2;
    launch.cluster[0] = 2;
    refuses("sm=80", &d, ptx, TL_UNSUPPORTED, "Fake GPU 0 has no clusters");
}

static void too_little_memory_is_said(void **state)
{
    tl_device *device = open_device("memory=10000000");
    tl_diag diag = { 0 };
    void *a, *b, *c;

    (void)state;
    assert_int_equal(device->type->allocate(device, 1LL << 40, &a, &diag), TL_NO_MEMORY);
    assert_non_null(
        strstr(diag.text, "Fake GPU 0 has 10000000 bytes of memory, not 1099511627776"));
    assert_int_equal(device->type->allocate(device, 6000000, &a, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, 6000000, &b, &diag), TL_NO_MEMORY);
    assert_non_null(strstr(diag.text, "of 10000000 are free"));
    device->type->release(device, a);
    /* what was kept goes back when the driver has no more */
    assert_int_equal(device->type->allocate(device, 1000, &c, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, 8000000, &b, &diag), TL_OK);
    tl_device_close(device);
    assert_int_equal(fake.alive(), 0);
}

/* After an illegal address everything fails with the same sentence, and nothing crashes. */
static void a_lost_device_stays_lost(void **state)
{
    tl_device *device = open_device("lose-launch=2");
    const tl_device_type *type = device->type;
    const tl_launch launch = a_launch(4);
    const tl_descriptor d = doubling(&launch);
    tl_device_kernel *kernel = load_kernel(device, &d), *second;
    tl_queue *queue;
    tl_diag diag = { 0 }, later = { 0 };
    void *x, *y, *z;

    (void)state;
    assert_int_equal(type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(type->allocate(device, sizeof(float[N]), &x, NULL), TL_OK);
    assert_int_equal(type->allocate(device, sizeof(float[N]), &y, NULL), TL_OK);
    const tl_kernel_args args = { .buffers = (void *[]){ x, y } };
    assert_int_equal(type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    assert_int_equal(type->wait(queue, NULL), TL_OK);
    assert_int_equal(type->check(device, NULL), TL_OK);
    assert_int_equal(type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    assert_int_equal(type->wait(queue, &diag), TL_DEVICE);
    assert_string_equal(diag.text,
                        "Fake GPU 0 is lost until another process opens it: the CUDA driver failed "
                        "in cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal "
                        "memory access was encountered");
    assert_int_equal(type->check(device, &later), TL_DEVICE);
    assert_string_equal(later.text, diag.text);
    later.text[0] = '\0';
    assert_int_equal(type->allocate(device, 64, &z, &later), TL_DEVICE);
    assert_int_equal(type->load(device, &d, "", 0, &second, &later), TL_DEVICE);
    assert_int_equal(type->copy_in(queue, x, &d, 8, &later), TL_DEVICE);
    assert_int_equal(type->launch(queue, kernel, 0, &args, &later), TL_DEVICE);
    type->release(device, x);
    type->release(device, y);
    type->drop_queue(queue);
    type->unload(kernel);
    tl_device_close(device);
}

static int add_dims(const fake_launch *l)
{
    int64_t *out = *(int64_t **)l->parameters[0], scratch = *(int64_t *)l->parameters[1];

    out[0] = *(int64_t *)l->parameters[2] * 1000 + *(int64_t *)l->parameters[3];
    out[1] = scratch;
    out[2] = l->grid[0];
    return 0;
}

/* Addresses, scratch and dims come in that order, and the grid follows the dims. */
static void dims_are_parameters(void **state)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n.visible .entry dims_0(.param .u64 a,"
                              ".param .u64 b,.param .u64 c,.param .u64 d)\n{\nret;\n}\n";
    tl_device *device = open_device("");
    tl_launch launch = a_launch(0);
    tl_descriptor d = { .name = "dims",
                        .phase_count = 1,
                        .buffer_count = 1,
                        .has_sizes = true,
                        .dim_count = 2,
                        .scratch_formula = "d0 8 *",
                        .form = TL_FORM_PTX,
                        .arch = "sm_80",
                        .launches = &launch };
    const int64_t dims[] = { 300, 7 }, nothing[] = { 0, 7 };
    tl_device_kernel *kernel;
    tl_queue *queue;
    int64_t out[3];
    void *x, *scratch;
    int launches, ignored;

    (void)state;
    launch.grid_formula[0] = "d0 255 + 256 /";
    fake.add("dims_0", add_dims);
    assert_int_equal(device->type->load(device, &d, ptx, sizeof ptx - 1, &kernel, NULL), TL_OK);
    assert_int_equal(device->type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, sizeof out, &x, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, 2400, &scratch, NULL), TL_OK);
    tl_kernel_args args = { .buffers = &x, .dims = dims, .scratch = scratch };
    assert_int_equal(device->type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    args.dims = nothing; /* no block at all: not launched */
    assert_int_equal(device->type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    assert_int_equal(device->type->copy_out(queue, out, x, sizeof out, NULL), TL_OK);
    assert_int_equal(device->type->wait(queue, NULL), TL_OK);
    assert_true(out[0] == 300007 && out[1] != 0 && out[2] == 2);
    fake.counts(&launches, &ignored, &ignored, &ignored);
    assert_int_equal(launches, 1);
    device->type->release(device, x);
    device->type->release(device, scratch);
    device->type->drop_queue(queue);
    device->type->unload(kernel);
    tl_device_close(device);
}

static fake_map seen_map;
static unsigned seen_cluster;

static int read_map(const fake_launch *l)
{
    const char *scratch = *(char **)l->parameters[1];
    memcpy(&seen_map, l->parameters[3], sizeof seen_map);
    if (seen_map.base != scratch + 256)
        return CU_LAUNCH_FAILED;
    memcpy(&seen_map, l->parameters[2], sizeof seen_map);
    seen_cluster = l->cluster[0];
    return seen_map.base == *(void **)l->parameters[0] ? 0 : CU_LAUNCH_FAILED;
}

static void maps_and_clusters_are_handed_over(void **state)
{
    static const char ptx[] = ".version 8.0\n.target sm_90a\n.visible .entry map_0(.param .u64 a,"
                              ".param .u64 s,.param .align 64 .b8 m[128],"
                              ".param .align 64 .b8 n[128])\n{\nret;\n}\n";
    tl_tensor_map maps[] = {
        { .dtype = TL_BF16,
          .rank = 2,
          .extents = { 64, 32 },
          .strides = { 2, 128 },
          .box = { 64, 8 },
          .swizzle = 128 },
        { 0 },
    };
    tl_device *device = open_device("");
    tl_launch launch = a_launch(4);
    tl_descriptor d = { .name = "map",
                        .phase_count = 1,
                        .buffer_count = 1,
                        .form = TL_FORM_PTX,
                        .arch = "sm_90a",
                        .launches = &launch,
                        .scratch_bytes = 4352,
                        .map_count = 2,
                        .maps = maps };
    tl_device_kernel *kernel;
    tl_queue *queue;
    void *x, *scratch;

    (void)state;
    launch.cluster[0] = 2;
    maps[1] = maps[0];
    maps[1].buffer = TL_MAP_SCRATCH;
    maps[1].offset = 256;
    fake.add("map_0", read_map);
    assert_int_equal(device->type->load(device, &d, ptx, sizeof ptx - 1, &kernel, NULL), TL_OK);
    assert_int_equal(device->type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, 4096, &x, NULL), TL_OK);
    assert_int_equal(device->type->allocate(device, 4352, &scratch, NULL), TL_OK);
    const tl_kernel_args args = { .buffers = &x, .scratch = scratch };
    assert_int_equal(device->type->launch(queue, kernel, 0, &args, NULL), TL_OK);
    assert_int_equal(device->type->wait(queue, NULL), TL_OK);
    assert_true(seen_cluster == 2 && seen_map.type == CU_MAP_BFLOAT16 && seen_map.rank == 2);
    assert_true(seen_map.swizzle == 3 && seen_map.extents[0] == 64 && seen_map.extents[1] == 32);
    assert_true(seen_map.box[0] == 64 && seen_map.box[1] == 8 && seen_map.strides[1] == 128);
    device->type->release(device, scratch);
    device->type->release(device, x);
    device->type->drop_queue(queue);
    device->type->unload(kernel);
    tl_device_close(device);
}

/* NVIDIA's header and the stub of its library say the same as ours, where they are installed. */
static void the_abi_is_nvidia_s(void **state)
{
    static const char *const symbols[] = {
#define ENTRY(field, symbol, needed, arguments) symbol,
#include "runtime/cuda/cuda_driver.def"
#undef ENTRY
    };
    const char *home = getenv("CUDA_HOME") != NULL ? getenv("CUDA_HOME") : "/usr/local/cuda";
    const char *cc = getenv("CC") != NULL ? getenv("CC") : "cc";
    tl_text line = { 0 }, stub = { 0 };

    (void)state;
    tl_text_format(&line, "%s/include/cuda.h", home);
    if (access(tl_text_get(&line), R_OK) != 0 || access("tests/gpu/abi_check.c", R_OK) != 0) {
        tl_text_free(&line);
        print_message("skip: there is no cuda.h to compare with\n");
        skip();
    }
    line.size = 0;
    tl_text_format(&line, "%s -std=c11 -fsyntax-only -I. -isystem %s/include tests/gpu/abi_check.c",
                   cc, home);
    assert_int_equal(system(tl_text_get(&line)), 0);
    tl_text_format(&stub, "%s/lib64/stubs/libcuda.so", home);
    void *library = dlopen(tl_text_get(&stub), RTLD_LAZY | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < sizeof symbols / sizeof *symbols; i++)
        if (dlsym(library, symbols[i]) == NULL)
            fail_msg("the driver of %s exports no %s", home, symbols[i]);
    tl_text_free(&line);
    tl_text_free(&stub);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_there_is_none_is_said), /* before a driver is loaded */
        cmocka_unit_test(the_abi_is_nvidia_s),
        cmocka_unit_test(a_device_says_what_it_is),
        cmocka_unit_test(a_queue_copies_launches_and_times),
        cmocka_unit_test(a_graph_is_run_again_and_again),
        cmocka_unit_test(ptx_is_compiled_once),
        cmocka_unit_test(code_that_does_not_run_is_refused),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(dims_are_parameters),
        cmocka_unit_test(maps_and_clusters_are_handed_over),
        cmocka_unit_test(a_lost_device_stays_lost),
    };
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
