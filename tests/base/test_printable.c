/* tests/base/test_printable.c: nothing that steers a terminal is left in a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "runtime/base/printable.h"
#include "runtime/base/random.h"

static void what_steers_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "conv_1/weight:0", "conv_1/weight:0" },
        { "line\n\ttab", "line\n\ttab" },
        { "\x1b[2J", "\\u001b[2J" },
        { "a\rb\x7f\x08", "a\\u000db\\u007f\\u0008" },
        { "\xc2\x9b"
          "31m",
          "\\u009b31m" }, /* C1: a control sequence of one character */
        { "f\xc3\xbcr \xe6\x97\xa5 \xf0\x9f\x98\x80", "f\xc3\xbcr \xe6\x97\xa5 \xf0\x9f\x98\x80" },
        { "\xe2\x80\xae"
          "gpj.exe\xe2\x81\xa6",
          "\\u202egpj.exe\\u2066" },
        { "\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf",
          "\\u200f\\u061c\\u2028\\u2029\\ufeff" },
        { "\xf3\xa0\x81\x81", "\\udb40\\udc41" },
        { "\xff\xc0\xaf", "\\u00ff\\u00c0\\u00af" }, /* no UTF-8; overlong */
        { "\xed\xa0\x80 \xe6\x97", "\\u00ed\\u00a0\\u0080 \\u00e6\\u0097" }, /* a surrogate; cut */
        { "\xef\xbf\xbf\xf4\x90\x80\x80", "\\uffff\\u00f4\\u0090\\u0080\\u0080" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_text out = { 0 };
        tl_text_add_printable(&out, cases[i].text, strlen(cases[i].text));
        assert_string_equal(tl_text_get(&out), cases[i].want);
        tl_text_free(&out);
    }
}

/* Of any bytes: UTF-8, without control characters, and the same when done again. */
static void any_bytes_become_printable(void **state)
{
    (void)state;
    tl_random r = tl_random_make(7);
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        tl_text once = { 0 }, twice = { 0 };
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(tl_random_below(&r, 3) ? 0x80 + tl_random_below(&r, 128)
                                                     : tl_random_below(&r, 128));
        tl_text_add_printable(&once, bytes, sizeof bytes);
        for (size_t at = 0; at < once.size;) {
            uint32_t code;
            int size = tl_utf8_read(once.data + at, once.size - at, &code);
            assert_true(size > 0 && (tl_is_printable(code) || code == '\n' || code == '\t'));
            at += (size_t)size;
        }
        tl_text_add_printable(&twice, once.data, once.size);
        assert_string_equal(once.data, twice.data);
        tl_text_free(&once);
        tl_text_free(&twice);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steers_is_escaped),
        cmocka_unit_test(any_bytes_become_printable),
    };
    return cmocka_run_group_tests_name("printable", tests, NULL, NULL);
}
