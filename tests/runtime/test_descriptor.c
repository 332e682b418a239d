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

static void malformed_ones_are_refused(void **state)
{
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
        cmocka_unit_test(malformed_ones_are_refused),
    };
    return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
