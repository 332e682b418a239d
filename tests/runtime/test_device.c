/* tests/runtime/test_device.c: devices by name, and what the row of the CPU does. */
#include "runtime/device/device.h"
#include "tests/runtime/c_objects.h"

static void devices_have_names(void **state)
{
    tl_device *device;
    tl_diag diag = { 0 };

    (void)state;
    assert_string_equal(tl_device_type_at(0)->name, "cpu");
    assert_ptr_equal(tl_device_type_named("cpu:3"), tl_device_type_at(0));
    assert_null(tl_device_type_named("cpus"));
    assert_int_equal(tl_device_open("abacus", &device, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "there is no device abacus; known are cpu"));
    assert_int_equal(tl_device_open("cpu:x", &device, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_device_open("cpu:1", &device, &diag), TL_DEVICE);
    assert_non_null(strstr(diag.text, "there is no device cpu:1: this machine has 1"));
}

enum { N = 1000 };

/* y = 2x on a device, with everything that a queue does around it. */
static void doubles(tl_device *device, const tl_descriptor *d, const void *code, size_t size)
{
    const tl_device_type *type = device->type;
    tl_device_kernel *kernel;
    tl_queue *queue;
    tl_device_event *begin, *end;
    tl_diag diag = { 0 };
    void *x, *y, *z;
    float in[N], out[N];
    int64_t bytes = sizeof in, free_bytes, total;
    double ns = -1;

    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    if (type->load(device, d, code, size, &kernel, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(type->make_queue(device, NULL, &queue, NULL), TL_OK);
    assert_int_equal(type->make_event(device, &begin, NULL), TL_OK);
    assert_int_equal(type->make_event(device, &end, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &x, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &y, NULL), TL_OK);
    assert_int_equal(type->allocate(device, bytes, &z, NULL), TL_OK);
    assert_true((uintptr_t)x % 256 == 0);
    assert_int_equal(type->memory(device, &free_bytes, &total, NULL), TL_OK);
    assert_true(free_bytes > 0 && total >= free_bytes);

    const tl_kernel_args args = { .buffers = (void *[]){ x, y } };
    assert_int_equal(type->fill(queue, y, 0xff, bytes, NULL), TL_OK);
    assert_int_equal(type->copy_in(queue, x, in, bytes, NULL), TL_OK);
    assert_int_equal(type->record(queue, begin, NULL), TL_OK);
    if (type->launch(queue, kernel, 0, &args, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(type->record(queue, end, NULL), TL_OK);
    assert_int_equal(type->copy_within(queue, z, y, bytes, NULL), TL_OK);
    assert_int_equal(type->copy_out(queue, out, z, bytes, NULL), TL_OK);
    assert_int_equal(type->wait(queue, NULL), TL_OK);
    assert_int_equal(type->elapsed(begin, end, &ns, NULL), TL_OK);
    assert_true(ns >= 0);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == 2.0f * (float)i);
    assert_int_equal(type->check(device, NULL), TL_OK);

    type->release(device, x);
    type->release(device, y);
    type->release(device, z);
    type->drop_event(begin);
    type->drop_event(end);
    type->drop_queue(queue);
    type->unload(kernel);
}

static const int64_t extent = N;
static const tl_descriptor doubling = {
    .name = "twice", .phase_count = 1, .extents = &extent, .buffer_count = 2
};

static void the_cpu_is_one(void **state)
{
    tl_device *cpu;
    tl_text object = { 0 };
    tl_diag diag = { 0 };

    (void)state;
    need_c_object(KERNEL_START "void twice_0(const args *a, int64_t b, int64_t e, int t) {\n"
                               "  const float *x = a->buffers[0]; float *y = a->buffers[1];\n"
                               "  for (int64_t i = b; i < e; i++) y[i] = 2.0f * x[i]; }\n",
                  "-O1", &object);
    if (tl_device_open("cpu", &cpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_true(cpu->facts.multiprocessors >= 1);
    doubles(cpu, &doubling, object.data, object.size);
    tl_device_close(cpu);
    tl_text_free(&object);
}

static void a_cpu_runs_no_ptx(void **state)
{
    tl_device *cpu;
    tl_device_kernel *kernel;
    tl_queue *queue;
    tl_descriptor d = doubling;
    tl_diag diag = { 0 };

    (void)state;
    d.form = TL_FORM_PTX;
    assert_int_equal(tl_device_open("cpu:0", &cpu, NULL), TL_OK);
    assert_int_equal(cpu->type->load(cpu, &d, "", 1, &kernel, &diag), TL_UNSUPPORTED);
    assert_string_equal(diag.text, "kernel twice: a CPU does not run ptx");
    assert_int_equal(cpu->type->make_queue(cpu, &d, &queue, &diag), TL_BAD_ARGUMENT);
    tl_device_close(cpu);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_names),
        cmocka_unit_test(the_cpu_is_one),
        cmocka_unit_test(a_cpu_runs_no_ptx),
    };
    return cmocka_run_group_tests_name("device", tests, make_folder, remove_folder);
}
