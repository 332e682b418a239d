/* tests/driver/test_memory.c: what `tilth run` has resident. tests/bench/memory.c measures networks against their bars; here
 * is what must not come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/cli_run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true; /* shadow memory is resident, too */
#else
static const bool is_sanitized = false;
#endif

/* The number behind a key of what was printed. */
static double number_of(const tl_text *printed, const char *key)
{
    tl_text quoted = { 0 };
    tl_text_format(&quoted, "\"%s\":", key);
    const char *at = strstr(tl_text_get(printed), tl_text_get(&quoted));
    if (at == NULL)
        fail_msg("there is no %s in %s", key, tl_text_get(printed));
    double number = strtod(at + quoted.size, NULL);
    tl_text_free(&quoted);
    return number;
}

/* A model from the cache runs without LLVM, which alone would be more. */
static void a_cached_run_is_small(void **state)
{
    (void)state;
    tl_text printed = { 0 };
    expect(0, "wrote", "model bert_tiny -o $D/m.onnx");
    expect(0, "\"from_cache\":false", "run $D/m.onnx --threads 1 --json");
    assert_int_equal(cli_shell(&printed, "$TILTH run $D/m.onnx --threads 1 --json"), 0);
    double model = number_of(&printed, "prepared_bytes") + number_of(&printed, "plan_bytes") +
                   number_of(&printed, "constant_bytes") + number_of(&printed, "external_bytes");
    assert_non_null(strstr(tl_text_get(&printed), "\"from_cache\":true"));
    if (!is_sanitized)
        assert_true(number_of(&printed, "peak_bytes") < 1.15 * model + 25e6);
    tl_text_free(&printed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cached_run_is_small),
    };
    return cmocka_run_group_tests_name("memory", tests, cli_set_up, cli_tear_down);
}
