/* tests/driver/test_memory.c: what `tilth run` has resident. tests/bench/memory.c measures networks against their bars; here
 * is what must not come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/cli_run.h"
#include "tests/support/sanitized.h"

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

/* Compiled or from the cache: before it is taken. */
static void more_than_the_limit_is_refused(void **state)
{
    (void)state;
    expect(0, "wrote", "model bert_tiny -o $D/l.onnx");
    expect(5, "(--max-memory)", "run $D/l.onnx --cache $D/l --max-memory 1M");
    expect(0, "ready in", "run $D/l.onnx --cache $D/l --max-memory 1G");
    expect(5, "more memory than the limit of 1.0 MB (--max-memory): weights",
           "run $D/l.onnx --cache $D/l --max-memory 1M");
    expect(5, "(--max-memory)", "bench $D/l.onnx --cache $D/l --max-memory 1M");
    expect(5, "(--max-memory)", "verify $D/l.onnx --cache $D/l --max-memory 1M");
    expect(5, "(--max-memory)", "compile $D/l.onnx --cache $D/l --max-memory 1M -o $D/l.tilth");
    expect(2, "--max-memory: 'much' is not a size like 500M or 2G",
           "run $D/l.onnx --max-memory much");
    expect(2, "nothing fits into 0 bytes", "run $D/l.onnx --max-memory 0");
    expect(2, "is not a size", "run $D/l.onnx --max-memory 99999999999T");
}

/* What inspect says beforehand is what a run then takes. */
static void inspect_foretells_it(void **state)
{
    (void)state;
    static const char *const models[] = { "bert_tiny", "mobilenet_v2" };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        tl_text said = { 0 }, cold = { 0 }, cached = { 0 }, line = { 0 };
        tl_text_format(
            &line,
            "$TILTH model %s -o $D/f.onnx && $TILTH inspect $D/f.onnx --quick --json --threads 1",
            models[i]);
        assert_int_equal(cli_shell(&said, tl_text_get(&line)), 0);
        assert_int_equal(cli_shell(&cold, "$TILTH run $D/f.onnx --threads 1 --json --cache $D/f"),
                         0);
        assert_int_equal(cli_shell(&cached, "$TILTH run $D/f.onnx --threads 1 --json --cache $D/f"),
                         0);
        assert_true(number_of(&said, "packed_bytes") == number_of(&cold, "prepared_bytes"));
        assert_true(number_of(&said, "temporary_bytes") == number_of(&cold, "plan_bytes"));
        double peak = number_of(&cached, "peak_bytes"),
               foretold = number_of(&said, "cached_peak_bytes");
        if (!is_sanitized && (peak > 1.4 * foretold || peak < 0.6 * foretold))
            fail_msg("%s from the cache: %.1f MB, not %.1f", models[i], peak * 1e-6,
                     foretold * 1e-6);
        peak = number_of(&cold, "peak_bytes"), foretold = number_of(&said, "cold_peak_bytes");
        if (!is_sanitized && (peak > 1.4 * foretold || peak < 0.6 * foretold))
            fail_msg("%s compiled: %.1f MB, not %.1f", models[i], peak * 1e-6, foretold * 1e-6);
        tl_text_free(&said);
        tl_text_free(&cold);
        tl_text_free(&cached);
        tl_text_free(&line);
    }
    expect(0, "a run       packed weights", "inspect $D/f.onnx --quick");
    expect(0, "more than the limit of 23.1 MB (--max-memory)",
           "inspect $D/f.onnx --quick --max-memory 22M");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cached_run_is_small),
        cmocka_unit_test(more_than_the_limit_is_refused),
        cmocka_unit_test(inspect_foretells_it),
    };
    return cmocka_run_group_tests_name("memory", tests, cli_set_up, cli_tear_down);
}
