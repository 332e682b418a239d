/* tests/runtime/test_descriptor.c: descriptors print and parse back; malformed ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "runtime/abi/descriptor.h"

static void round_trip(const tl_descriptor *d, const char *want)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text text = { 0 }, again = { 0 };
    tl_descriptor parsed;
    tl_diag diag = { 0 };

    tl_descriptor_print(d, &text);
    assert_string_equal(tl_text_get(&text), want);
    if (tl_descriptor_parse(arena, text.data, &parsed, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_descriptor_print(&parsed, &again);
    assert_string_equal(tl_text_get(&again), want);
    tl_text_free(&text);
    tl_text_free(&again);
    tl_arena_destroy(arena);
}

static void round_trips(void **state)
{
    (void)state;
    round_trip(&(tl_descriptor){ .name = "conv_relu_3",
                                 .phase_count = 2,
                                 .extents = (int64_t[]){ 14, 1 },
                                 .scratch_bytes = 4096,
                                 .thread_scratch_bytes = 64,
                                 .buffer_count = 3 },
               "{\"name\":\"conv_relu_3\",\"phases\":2,\"extents\":[14,1],\"scratch\":4096,"
               "\"thread_scratch\":64,\"sizes\":false,\"dims\":0,\"buffers\":3}");
    round_trip(
        &(tl_descriptor){
            .name = "g", .phase_count = 1, .has_sizes = true, .dim_count = 2, .buffer_count = 4 },
        "{\"name\":\"g\",\"phases\":1,\"extents\":[],\"scratch\":0,\"thread_scratch\":0,"
        "\"sizes\":true,\"dims\":2,\"buffers\":4}");
}

static void a_gpu_s_says_how_it_is_launched(void **state)
{
    const tl_launch launches[] = {
        { .grid = { 32, 4, 1 },
          .block = { 16, 16, 1 },
          .cluster = { 2, 1, 1 },
          .shared_bytes = 16384,
          .dynamic_shared_bytes = 131072,
          .registers = 168,
          .spill_bytes = 0 },
        { .grid_formula = { "d0 127 + 128 /", NULL, "d1" },
          .grid = { 0, 1, 0 },
          .block = { 128, 1, 1 },
          .cluster = { 1, 1, 1 },
          .registers = -1,
          .spill_bytes = -1 },
    };
    const tl_tensor_map maps[] = {
        { .buffer = 1,
          .dtype = TL_F16,
          .rank = 2,
          .extents = { 4096, 64 },
          .strides = { 2, 8192 },
          .box = { 64, 64 },
          .swizzle = 128 },
        { .buffer = TL_MAP_SCRATCH,
          .offset = 512,
          .dtype = TL_F32,
          .rank = 1,
          .extents = { 64 },
          .strides = { 4 },
          .box = { 32 } },
    };
    const tl_descriptor d = { .name = "gemm",
                              .phase_count = 2,
                              .has_sizes = true,
                              .dim_count = 2,
                              .buffer_count = 3,
                              .form = TL_FORM_PTX,
                              .arch = "sm_90a",
                              .launches = launches,
                              .scratch_formula = "d0 4 *",
                              .map_count = 2,
                              .maps = maps };
    int64_t grid[TL_LAUNCH_AXES], scratch;

    (void)state;
    round_trip(&d, "{\"name\":\"gemm\",\"phases\":2,\"extents\":[],\"scratch\":0,"
                   "\"thread_scratch\":0,\"sizes\":true,\"dims\":2,\"buffers\":3,"
                   "\"code\":\"ptx\",\"arch\":\"sm_90a\",\"launches\":[{\"grid\":[32,4,1],"
                   "\"block\":[16,16,1],\"cluster\":[2,1,1],\"shared\":16384,"
                   "\"dynamic\":131072,\"registers\":168,\"spills\":0},"
                   "{\"grid\":[\"d0 127 + 128 /\",1,\"d1\"],\"block\":[128,1,1],"
                   "\"cluster\":[1,1,1],\"shared\":0,\"dynamic\":0,\"registers\":-1,"
                   "\"spills\":-1}],\"scratch_formula\":\"d0 4 *\",\"maps\":[{\"buffer\":1,"
                   "\"dtype\":\"f16\",\"extents\":[4096,64],\"strides\":[2,8192],"
                   "\"box\":[64,64],\"swizzle\":128},{\"buffer\":-1,\"offset\":512,"
                   "\"dtype\":\"f32\",\"extents\":[64],\"strides\":[4],\"box\":[32],"
                   "\"swizzle\":0}]}");
    assert_int_equal(tl_descriptor_function_count(&d), 2);
    assert_int_equal(tl_descriptor_grid(&d, 1, (int64_t[]){ 130, 5 }, grid, NULL), TL_OK);
    assert_true(grid[0] == 2 && grid[1] == 1 && grid[2] == 5);
    assert_int_equal(tl_descriptor_grid(&d, 1, (int64_t[]){ 1, 65536 }, grid, NULL),
                     TL_BAD_ARGUMENT);
    assert_int_equal(tl_descriptor_scratch(&d, (int64_t[]){ 130, 5 }, &scratch, NULL), TL_OK);
    assert_int_equal(scratch, 520);
    assert_int_equal(tl_descriptor_scratch(&d, (int64_t[]){ -1, 5 }, &scratch, NULL),
                     TL_BAD_ARGUMENT);
}

/* What was written before there were forms is a CPU's. */
static void older_ones_are_a_cpu_s(void **state)
{
    tl_arena *arena = tl_arena_create(0);
    tl_descriptor d;

    (void)state;
    assert_int_equal(tl_descriptor_parse(arena,
                                         "{\"name\":\"k\",\"phases\":1,\"extents\":[3],"
                                         "\"scratch\":0,\"thread_scratch\":0,\"sizes\":false,"
                                         "\"dims\":0,\"buffers\":1}",
                                         &d, NULL),
                     TL_OK);
    assert_true(d.form == TL_FORM_OBJECT && !tl_descriptor_is_gpu(&d) && d.extents[0] == 3);
    tl_arena_destroy(arena);
}

static void malformed_ones_are_refused(void **state)
{
#define GPU(arch, launch)                                                             \
    "{\"name\":\"k\",\"phases\":1,\"extents\":[],\"scratch\":0,\"thread_scratch\":0," \
    "\"sizes\":false,\"dims\":0,\"buffers\":1,\"code\":\"ptx\",\"arch\":\"" arch      \
    "\",\"launches\":[{" launch ",\"cluster\":[1,1,1],\"shared\":0,\"dynamic\":0,"    \
    "\"registers\":-1,\"spills\":-1}]"
#define REST ",\"scratch\":0,\"thread_scratch\":0,\"sizes\":false,\"dims\":0,\"buffers\":1}"
    static const struct {
        const char *json, *says;
    } cases[] = {
        { "", "not JSON" },
        { "{", "not JSON" },
        { "[]", "\"name\"" },
        { "{\"name\":\"\",\"phases\":1,\"extents\":[1]" REST, "\"name\"" },
        { "{\"name\":\"a b\",\"phases\":1,\"extents\":[1]" REST, "\"name\"" },
        { "{\"name\":\"k\",\"phases\":-1,\"extents\":[]" REST, "\"phases\" is -1" },
        { "{\"name\":\"k\",\"phases\":100000,\"extents\":[]" REST, "\"phases\" is 100000" },
        { "{\"name\":\"k\",\"phases\":\"1\",\"extents\":[1]" REST, "\"phases\" is not" },
        { "{\"name\":\"k\",\"phases\":2,\"extents\":[1]" REST, "not a list of 2" },
        { "{\"name\":\"k\",\"phases\":1,\"extents\":[-4]" REST, "extent 0" },
        { "{\"name\":\"k\",\"phases\":1,\"extents\":[1.5]" REST, "extent 0" },
        { "{\"name\":\"k\",\"phases\":1,\"extents\":[1],\"scratch\":0,\"thread_scratch\":0,"
          "\"dims\":0,\"buffers\":1}",
          "\"sizes\"" },
        { "{\"name\":\"k\",\"name\":\"k\",\"phases\":1,\"extents\":[1]" REST, "not JSON" },
        { "{\"name\":\"k\",\"phases\":1,\"extents\":[1],\"scratch\":9223372036854775807,"
          "\"thread_scratch\":0,\"sizes\":false,\"dims\":0,\"buffers\":1}",
          "\"scratch\"" },
        { "{\"name\":\"k\",\"phases\":1,\"extents\":[1],\"code\":\"wasm\"" REST, "\"code\"" },
        { GPU("x86", "\"grid\":[1,1,1],\"block\":[1,1,1]") "}", "\"arch\"" },
        { GPU("sm_80", "\"grid\":[1,1],\"block\":[1,1,1]") "}", "\"grid\"" },
        { GPU("sm_80", "\"grid\":[1,-1,1],\"block\":[1,1,1]") "}", "a grid of -1 blocks" },
        { GPU("sm_80", "\"grid\":[1,\"d0\",1],\"block\":[1,1,1]") "}", "should be a number" },
        { GPU("sm_80", "\"grid\":[1,1,1],\"block\":[1,0,1]") "}", "\"block\"" },
        { GPU("sm_80", "\"grid\":[1,1,1],\"block\":[64,64,1]") "}", "a block of 64x64x1 threads" },
        { GPU("sm_80", "\"grid\":[1,1,1],\"block\":[1,1,1]") ",\"maps\":[{\"buffer\":1}]}",
          "\"buffer\"" },
    };
    tl_arena *arena = tl_arena_create(0);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_descriptor d;
        tl_diag diag = { 0 };
        assert_int_equal(tl_descriptor_parse(arena, cases[i].json, &d, &diag), TL_BAD_TEXT);
        if (strstr(diag.text, cases[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].json, diag.text, cases[i].says);
    }
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(a_gpu_s_says_how_it_is_launched),
        cmocka_unit_test(older_ones_are_a_cpu_s),
        cmocka_unit_test(malformed_ones_are_refused),
    };
    return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
