/* tests/ir/test_machine.c: machine profiles: rounding, what an earlier profile keeps, the text and back, hostile texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "ir/program/machine.h"
#include "runtime/base/random.h"

/* As if measured: every value a little beside that of a machine, by a factor of up to 1 + noise. */
static tl_machine measured(double noise, uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    tl_machine m = tl_machine_built_in;
    strcpy(m.cpu, "Some Processor 9000");
    strcpy(m.caches, "48K 1024K 32768K");
    strcpy(m.date, "2026-11-24");
    m.cores = 2;
#define NEAR(x) ((x) * (1 + noise * tl_random_unit(&random)))
    m.clock_ghz = NEAR(3.7);
    m.mispredict_cycles = NEAR(17);
    m.l2_line_cycles = NEAR(1.9);
    m.l3_line_cycles = NEAR(6.5);
    m.memory_gbs = NEAR(33);
    m.barrier_ns = NEAR(120);
    m.units[TL_ISA_AVX512] = (tl_machine_unit){ .peak_gflops = NEAR(230),
                                                .fma_per_cycle = NEAR(1.97),
                                                .fma_latency = NEAR(4),
                                                .add_latency = NEAR(2),
                                                .loads_per_cycle = NEAR(1.95),
                                                .stores_per_cycle = NEAR(1),
                                                .broadcast_cycles = NEAR(0.51),
                                                .divide_cycles = NEAR(5),
                                                .exp_cycles = NEAR(6) };
#undef NEAR
    return m;
}

static void values_are_rounded(void **state)
{
    (void)state;
    tl_machine m = measured(0, 1);
    m.l1_latency = 4.4;
    m.page_cycles = NAN; /* nobody knows */
    m.fetched_part = -1;
    m.l2_latency = 1e9; /* nonsense stays in its bounds */
    tl_machine_seal(&m, NULL);
    assert_true(m.l1_latency == 4);
    assert_true(m.page_cycles == tl_machine_built_in.page_cycles);
    assert_true(m.fetched_part == tl_machine_built_in.fetched_part);
    assert_true(m.l2_latency == 200);
    assert_true(m.units[TL_ISA_AVX512].fma_per_cycle == 2);
    assert_true(m.units[TL_ISA_AVX512].broadcast_cycles == 0.5);
    assert_true(m.units[TL_ISA_AVX2].fma_per_cycle == 0); /* was not looked at */
    tl_machine again = m;
    tl_machine_seal(&again, NULL); /* rounded is rounded */
    assert_string_equal(again.digest, m.digest);
}

/* Two looks that differ by little end with the same values, at the edge between two steps, too. */
static void an_earlier_profile_keeps_its_values(void **state)
{
    (void)state;
    tl_machine first = measured(0.02, 1);
    char stamp[33], now[33];
    tl_machine_seal(&first, NULL);
    tl_machine_stamp(&first, stamp);
    for (uint64_t seed = 2; seed < 200; seed++) {
        tl_machine later = measured(0.02, seed);
        tl_machine_seal(&later, &first);
        tl_machine_stamp(&later, now);
        assert_string_equal(now, stamp);
    }
    tl_machine other = measured(0, 1);
    other.units[TL_ISA_AVX512].fma_per_cycle = 1; /* but not what is clearly otherwise */
    tl_machine_seal(&other, &first);
    tl_machine_stamp(&other, now);
    assert_string_not_equal(now, stamp);
}

static void facts_are_not_in_the_stamp(void **state)
{
    (void)state;
    tl_machine a = measured(0, 1), b = a;
    char of_a[33], of_b[33];
    b.memory_gbs = 60;
    b.units[TL_ISA_AVX512].peak_gflops = 100;
    tl_machine_seal(&a, NULL);
    tl_machine_seal(&b, NULL);
    tl_machine_stamp(&a, of_a);
    tl_machine_stamp(&b, of_b);
    assert_string_equal(of_a, of_b); /* no schedule asks for them */
    assert_string_not_equal(a.digest, b.digest);
}

static void the_built_in_profile_is_that_of_no_profile(void **state)
{
    (void)state;
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
    assert_ptr_equal(tl_machine_of(&target), &tl_machine_built_in);
    assert_true(tl_machine_unit_of(&target)->fma_per_cycle == 2);
    tl_machine m = measured(0, 1); /* of another instruction set than the target's */
    tl_machine_seal(&m, NULL);
    target.machine = &m;
    assert_true(tl_machine_of(&target)->l2_line_cycles == m.l2_line_cycles);
    assert_true(tl_machine_unit_of(&target)->broadcast_cycles == 0.75);
    /* and the target's own text knows nothing of it */
    tl_text with = { 0 }, without = { 0 };
    tl_target_print(&target, &with);
    target.machine = NULL;
    tl_target_print(&target, &without);
    assert_string_equal(tl_text_get(&with), tl_text_get(&without));
    tl_text_free(&with);
    tl_text_free(&without);
}

/* A processor whose vectors are known: they have every value that the built-in profile has, and a profile goes before. */
static void known_processors_have_units_of_their_own(void **state)
{
    (void)state;
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
    const tl_machine_unit *built_in = tl_machine_unit_of(&target);
    snprintf(target.cpu, sizeof target.cpu, "alderlake");
    const tl_machine_unit *known = tl_machine_unit_of(&target);
    assert_true(known->broadcast_cycles < built_in->broadcast_cycles);
#define MACHINE_UNIT(name, ...) assert_int_equal(known->name > 0, built_in->name > 0);
#include "ir/program/machine.def"
#undef MACHINE_UNIT
    tl_machine m = measured(0, 1);
    m.units[TL_ISA_AVX2] = m.units[TL_ISA_AVX512];
    tl_machine_seal(&m, NULL);
    target.machine = &m;
    assert_true(tl_machine_unit_of(&target)->broadcast_cycles ==
                m.units[TL_ISA_AVX2].broadcast_cycles);
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    snprintf(target.cpu, sizeof target.cpu, "sapphirerapids");
    assert_ptr_equal(tl_machine_unit_of(&target),
                     built_in); /* of its wider vectors nothing is known */
}

static void the_text_reads_back(void **state)
{
    (void)state;
    tl_text text = { 0 }, again = { 0 };
    tl_machine m = measured(0.1, 7), back;
    tl_machine_seal(&m, NULL);
    tl_machine_print(&m, &text);
    assert_int_equal(tl_machine_parse(text.data, text.size, &back, NULL), TL_OK);
    assert_string_equal(back.digest, m.digest);
    tl_machine_print(&back, &again);
    assert_string_equal(tl_text_get(&text), tl_text_get(&again));
    tl_text_free(&text);
    tl_text_free(&again);
}

static void refused(const char *text, const char *part)
{
    tl_machine m;
    tl_diag diag = { 0 };
    tl_status status = tl_machine_parse(text, strlen(text), &m, &diag);
    if (status != TL_BAD_TEXT || strstr(diag.text, part) == NULL)
        fail_msg("%s: status %d, \"%s\" (want \"%s\")", text, (int)status, diag.text, part);
}

#define START "tilth machine profile 1\ncpu = X\n"

static void broken_texts_are_refused(void **state)
{
    (void)state;
    refused("", "no machine profile");
    refused("tilth machine profile 2\n", "the first line");
    refused("tilth machine profile 1\n", "without a line \"cpu");
    refused(START "clock_ghz 3\n", "line 3: neither");
    refused(START "clock_ghz = nan\n", "is not between");
    refused(START "clock_ghz = 1e9\n", "is not between 0.1 and 10");
    refused(START "clock_ghz = 3 4\n", "is not between");
    refused(START "clock_ghz = 3\nclock_ghz = 3\n", "said twice");
    refused(START "speed = 3\n", "a machine has no value speed");
    refused(START "[sparc]\n", "no instruction set");
    refused(START "[x86-64-v3]\n[x86-64-v3]\n", "a second time");
    refused(START "[x86-64-v3]\nclock_ghz = 3\n", "an instruction set has no value clock_ghz");
    refused(START "cores = 0\n", "no number of cores");
    refused("tilth machine profile 1\ncpu = \033[31mred\n", "none of a name");
    refused(START "digest = 00000000000000000000000000000000\n", "not those of its digest");
    char *deep = calloc(1, 100000);
    memset(deep, '[', 99999);
    refused(deep, "no machine profile");
    strcpy(deep, START);
    memset(deep + strlen(START), 'x', 300);
    deep[strlen(START) + 300] = '\0';
    refused(deep, "line 3: longer than");
    free(deep);
}

/* Cut off anywhere, or with any byte turned, it is refused or still within its bounds. */
static void damage_is_noticed(void **state)
{
    (void)state;
    tl_text text = { 0 };
    tl_machine m = measured(0.1, 7), back;
    tl_machine_seal(&m, NULL);
    tl_machine_print(&m, &text);
    for (size_t size = 0; size + 1 < text.size; size++)
        if (tl_machine_parse(text.data, size, &back, NULL) == TL_OK)
            assert_true(back.units[TL_ISA_AVX512].fma_per_cycle >= 0 && back.clock_ghz >= 0);
    tl_random random = tl_random_make(3);
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)tl_random_below(&random, (int64_t)text.size);
        char was = text.data[at];
        text.data[at] = (char)tl_random_below(&random, 256);
        if (tl_machine_parse(text.data, text.size, &back, NULL) == TL_OK)
            assert_true(isfinite(back.clock_ghz) && back.cores >= 0);
        text.data[at] = was;
    }
    tl_text_free(&text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_rounded),
        cmocka_unit_test(an_earlier_profile_keeps_its_values),
        cmocka_unit_test(facts_are_not_in_the_stamp),
        cmocka_unit_test(the_built_in_profile_is_that_of_no_profile),
        cmocka_unit_test(known_processors_have_units_of_their_own),
        cmocka_unit_test(the_text_reads_back),
        cmocka_unit_test(broken_texts_are_refused),
        cmocka_unit_test(damage_is_noticed),
    };
    return cmocka_run_group_tests_name("machine profiles", tests, NULL, NULL);
}
