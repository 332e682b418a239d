/* tests/runtime/test_code_loader.c: objects of the system's compiler become callable; damaged
 * ones get a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include "runtime/base/random.h"
#include "runtime/device/code_loader.h"
#include "tests/runtime/c_objects.h"

/* Read-only data, a table of addresses, a second function, all permitted externals, a sizes
 * function. */
static const char good[] = KERNEL_START
    "static const float table[4] = { 1.5f, 2.5f, 3.5f, 4.5f };\n"
    "static const float *const rows[2] = { table, table + 2 };\n"
    "__attribute__((noinline)) float helper(float x, int64_t i) { return x*rows[i & 1][i >> 1 & "
    "1]; }\n"
    "void k_0(const args *a, int64_t begin, int64_t end, int thread) {\n"
    "  const float *x = a->buffers[0]; float *y = a->buffers[1]; (void)thread;\n"
    "  for (int64_t i = begin; i < end; i++) y[i] = helper(x[i], i) + 0.25f;\n"
    "}\n"
    "void k_1(const args *a, int64_t begin, int64_t end, int thread) {\n"
    "  size_t n = (size_t)(end - begin)*sizeof(float); (void)thread;\n"
    "  memcpy(a->scratch, (float *)a->buffers[1] + begin, n);\n"
    "  memmove(a->buffers[0], a->scratch, n);\n"
    "  memset(a->scratch, 7, n);\n"
    "}\n"
    "void k_sizes(const int64_t *dims, int64_t *extents, int64_t *scratch, int64_t *thread) {\n"
    "  extents[0] = dims[0]; extents[1] = 1; *scratch = 4*dims[0]; *thread = 0;\n"
    "}\n";

static const tl_descriptor good_descriptor = {
    .name = "k", .phase_count = 2, .has_sizes = true, .dim_count = 1, .buffer_count = 2
};

static void check_runs(const tl_text *object)
{
    static const float table[4] = { 1.5f, 2.5f, 3.5f, 4.5f };
    tl_code *code;
    tl_phase_fn *phases[2];
    tl_sizes_fn *sizes;
    tl_diag diag = { 0 };

    if (tl_code_load(object->data, object->size, &code, &diag) != TL_OK ||
        tl_code_kernel(code, &good_descriptor, phases, &sizes, &diag) != TL_OK)
        fail_msg("%s", diag.text);

    int64_t dims[1] = { 10 }, extents[2], scratch, thread_scratch;
    sizes(dims, extents, &scratch, &thread_scratch);
    assert_int_equal(extents[0], 10);
    assert_int_equal(scratch, 40);

    float x[10], y[10];
    unsigned char memory[40];
    void *buffers[2] = { x, y };
    tl_kernel_args args = { buffers, dims, memory, NULL, 0 };
    for (int i = 0; i < 10; i++)
        x[i] = (float)i;
    phases[0](&args, 0, 10, 0);
    for (int i = 0; i < 10; i++)
        assert_true(y[i] == (float)i * table[2 * (i & 1) + (i >> 1 & 1)] + 0.25f);
    phases[1](&args, 0, 10, 0);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(memory[39], 7);
    assert_null(tl_code_find(code, "k_2"));
    assert_true(tl_code_size(code) >= 2 * 4096);
    tl_code_unload(code);
}

static void objects_run(void **state)
{
    static const char *const options[] = { "",
                                           "-O0",
                                           "-O3 -march=native",
                                           "-fno-plt",
                                           "-ffunction-sections -fdata-sections",
                                           "-fno-asynchronous-unwind-tables -g" };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        tl_text object = { 0 };
        need_c_object(good, options[i], &object);
        check_runs(&object);
        tl_text_free(&object);
    }
}

static void refused(const char *source, const char *options, const char *says)
{
    tl_text object = { 0 };
    tl_code *code;
    tl_diag diag = { 0 };

    need_c_object(source, options, &object);
    assert_int_equal(tl_code_load(object.data, object.size, &code, &diag), TL_BAD_ARGUMENT);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
    tl_text_free(&object);
}

static void open_objects_are_refused(void **state)
{
    (void)state;
    refused("#include <math.h>\nfloat k_0(float x) { return expf(x); }\n", "",
            "refers to \"expf\"");
    refused("extern int other; int k_0(void) { return other; }\n", "", "refers to \"other\"");
    refused("static int n; int k_0(void) { return ++n; }\n", "", "no data but constants");
    refused("int n = 5; int k_0(void) { return ++n; }\n", "", "no data but constants");
    refused("_Thread_local int n; int k_0(void) { return ++n; }\n", "", "no data but constants");
    refused("static const int t[4] = {1,2,3,4}; int k_0(int i) { return t[i]; }\n",
            "-fno-pic -mcmodel=kernel", "does not fit in 32 bits");
}

static void missing_phases_are_named(void **state)
{
    tl_text object = { 0 };
    tl_code *code;
    tl_phase_fn *phases[3];
    tl_sizes_fn *sizes;
    tl_diag diag = { 0 };
    tl_descriptor d = good_descriptor;

    (void)state;
    need_c_object(good, "", &object);
    assert_int_equal(tl_code_load(object.data, object.size, &code, NULL), TL_OK);
    d.phase_count = 3;
    assert_int_equal(tl_code_kernel(code, &d, phases, &sizes, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "does not define k_2"));
    tl_code_unload(code);
    tl_text_free(&object);
}

static void other_machines_are_refused(void **state)
{
    tl_text object = { 0 };
    tl_code *code;
    tl_diag diag = { 0 };

    (void)state;
    need_c_object(good, "", &object);
    object.data[offsetof(Elf64_Ehdr, e_machine)] = (char)EM_AARCH64;
    assert_int_equal(tl_code_load(object.data, object.size, &code, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "only x86-64"));
    tl_text_free(&object);
}

/* An exact allocation, so that the address sanitizer sees any read beyond the end. */
static void load_exact(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size + (size == 0));
    tl_code *code;

    memcpy(copy, bytes, size);
    if (tl_code_load(copy, size, &code, NULL) == TL_OK)
        tl_code_unload(code);
    free(copy);
}

static void damaged_objects_do_not_crash(void **state)
{
    tl_text object = { 0 };
    tl_random r = tl_random_make(11);

    (void)state;
    need_c_object(good, "-fdata-sections", &object);
    size_t size = object.size;
    unsigned char *bytes = malloc(size);
    Elf64_Ehdr header;
    memcpy(&header, object.data, sizeof header);

    for (int i = 0; i < 300; i++)
        load_exact((unsigned char *)object.data, (size_t)tl_random_below(&r, (int64_t)size));
    for (int i = 0; i < 3000; i++) {
        memcpy(bytes, object.data, size);
        for (int64_t n = tl_random_below(&r, 4); n >= 0; n--) {
            /* half of the damage goes into the headers, where it matters most */
            int64_t at = tl_random_below(&r, (int64_t)size);
            if (tl_random_below(&r, 2) == 0)
                at =
                    (int64_t)header.e_shoff + tl_random_below(&r, (int64_t)(size - header.e_shoff));
            static const unsigned char extremes[] = { 0, 1, 0x7f, 0x80, 0xff };
            bytes[at] = tl_random_below(&r, 2) == 0 ? extremes[tl_random_below(&r, 5)]
                                                    : (unsigned char)tl_random_next(&r);
        }
        load_exact(bytes, size);
    }
    free(bytes);
    tl_text_free(&object);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_run),
        cmocka_unit_test(open_objects_are_refused),
        cmocka_unit_test(missing_phases_are_named),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(damaged_objects_do_not_crash),
    };
    return cmocka_run_group_tests_name("code loader", tests, make_folder, remove_folder);
}
