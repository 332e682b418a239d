/* tests/runtime/test_formula.c: whole numbers over dims, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "runtime/abi/formula.h"

static void values(void **state)
{
    static const int64_t dims[] = { 130, 7 };
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        { "12", 12 },
        { "d0 127 + 128 /", 2 },
        { "d1 d0 64 min *", 448 },
        { "d0 d1 %", 4 },
        { "d1 d0 -", -123 },
        { "-7 2 /", -4 },
        { "-7 2 %", 1 },
        { "d0 d1 max 1000 max", 1000 },
        { "  d1   d1 *  ", 49 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { 0 };
        int64_t value = -1;
        if (tl_formula_check(cases[i].text, 2, &diag) != TL_OK ||
            tl_formula_evaluate(cases[i].text, dims, &value, &diag) != TL_OK)
            fail_msg("%s: %s", cases[i].text, diag.text);
        assert_int_equal(value, cases[i].value);
    }
}

static void what_is_none_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "does not come to one number" },
        { "1 2", "does not come to one number" },
        { "d2", "'d2' is no number, operator or dim of 2" },
        { "d", "'d' is no number" },
        { "1 +", "'+' has not two operands" },
        { "99999999999999999999", "is no number" },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "does not come to" },
        { "1 2 pow", "'pow' is no number" },
    };
    char deep[256] = "";
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { 0 };
        assert_int_equal(tl_formula_check(cases[i].text, 2, &diag), TL_BAD_TEXT);
        if (strstr(diag.text, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].text, diag.text);
    }
    for (int i = 0; i < 40; i++)
        strcat(deep, "1 ");
    for (int i = 0; i < 39; i++)
        strcat(deep, "+ ");
    assert_int_equal(tl_formula_check(deep, 0, NULL), TL_BAD_TEXT);
}

static void what_has_no_value_is_said(void **state)
{
    static const char *const cases[] = { "d0 d0 *", "d0 d1 /", "d0 d1 %", "d0 d0 +" };
    static const int64_t dims[] = { INT64_MAX, 0 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value;
        assert_int_equal(tl_formula_check(cases[i], 2, NULL), TL_OK);
        assert_int_equal(tl_formula_evaluate(cases[i], dims, &value, NULL), TL_BAD_ARGUMENT);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(what_has_no_value_is_said),
    };
    return cmocka_run_group_tests_name("formula", tests, NULL, NULL);
}
