/* tests/runtime/test_machine.c: what we believe of the machine is at least plausible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <string.h>
#include "runtime/base/checksum.h"
#include "runtime/base/clock.h"
#include "runtime/device/cpu.h"
#include "runtime/device/peak.h"
#include "runtime/device/topology.h"

static void the_clock_moves(void **state)
{
    (void)state;
    int64_t start = tl_clock_ns(), cpu = tl_clock_cpu_ns();
    tl_clock_sleep_ns(2000000);
    int64_t took = tl_clock_ns() - start;
    assert_true(took >= 2000000);
    assert_true(tl_clock_cpu_ns() - cpu < took); /* sleeping costs no processor time */
    tl_clock_sleep_ns(-1);
}

static void the_topology_is_plausible(void **state)
{
    (void)state;
    const tl_topology *t = tl_topology_get();
    cpu_set_t mask;

    assert_true(t->cores >= 1 && t->processors >= t->cores && t->packages >= 1);
    assert_in_range(t->usable_cores, 1, t->cores);
    assert_in_range(t->usable_processors, t->usable_cores, t->processors);
    assert_in_range(t->threads, 1, t->usable_cores);
    assert_true(t->line_bytes >= 16 && t->memory_bytes > INT64_C(1) << 20);
    assert_true(t->l1_bytes == 0 || (t->l1_bytes >= 4096 && t->l1_bytes < 10 << 20));
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    for (int i = 0; i < t->usable_cores; i++) {
        assert_true(CPU_ISSET(t->core_processor[i], &mask));
        for (int j = 0; j < i; j++)
            assert_int_not_equal(t->core_processor[i], t->core_processor[j]);
    }
}

static void the_affinity_mask_is_respected(void **state)
{
    (void)state;
    cpu_set_t kept, one;
    tl_topology t;

    assert_int_equal(sched_getaffinity(0, sizeof kept, &kept), 0);
    int last = tl_topology_get()->core_processor[tl_topology_get()->usable_cores - 1];
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    tl_topology_probe(&t);
    assert_int_equal(sched_setaffinity(0, sizeof kept, &kept), 0);
    assert_int_equal(t.usable_cores, 1);
    assert_int_equal(t.usable_processors, 1);
    assert_int_equal(t.threads, 1);
    assert_int_equal(t.core_processor[0], last);
}

static void quotas_parse(void **state)
{
    static const struct {
        const char *text;
        double quota;
    } cases[] = {
        { "max 100000\n", 0 }, { "200000 100000\n", 2 }, { "50000 100000", 0.5 },
        { "150000", 1.5 },     { "-1 100000", 0 },       { "", 0 },
        { "nonsense", 0 },     { "100000 0", 0 },        { "nan 100000", 0 },
        { "1e300 1", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(tl_cgroup_quota_parse(cases[i].text) == cases[i].quota);
}

static void processors_have_levels(void **state)
{
    (void)state;
    tl_cpu_features v3, v4, parsed;
    tl_text text = { 0 };

    assert_true(tl_cpu_level("x86-64-v3", &v3) && tl_cpu_level("x86-64-v4", &v4));
    assert_true(tl_cpu_runs(&v4, &v3));
    assert_false(tl_cpu_runs(&v3, &v4));
    assert_true(tl_cpu_has(&v3, TL_CPU_FMA) && !tl_cpu_has(&v3, TL_CPU_AVX512F));
    assert_false(tl_cpu_level("z80", &v3));
    assert_true(tl_cpu_runs(tl_cpu_host(), tl_cpu_host()));
    assert_true(strlen(tl_cpu_host_level()) > 0);

    tl_cpu_print(tl_cpu_host(), &text);
    assert_true(tl_cpu_parse(tl_cpu_host()->machine, tl_text_get(&text), &parsed));
    assert_true(parsed.bits == tl_cpu_host()->bits);
    assert_false(tl_cpu_parse("x86_64", "AVX TELEPATHY", &parsed));
    assert_false(tl_cpu_parse("a machine with a long name", "", &parsed));
    tl_text_free(&text);
}

static void checksums_find_damage(void **state)
{
    (void)state;
    unsigned char bytes[200] = { 0 };
    for (size_t size = 0; size < sizeof bytes; size++) {
        uint64_t sum = tl_checksum(bytes, size);
        assert_true(size == 0 || sum != tl_checksum(bytes, size - 1));
        for (size_t at = 0; at < size; at++) {
            bytes[at] ^= 1;
            assert_true(tl_checksum(bytes, size) != sum);
            bytes[at] ^= 1;
        }
    }
}

static void the_peak_is_plausible(void **state)
{
    (void)state;
    tl_pool *pool;
    assert_int_equal(tl_pool_create(NULL, &pool, NULL), TL_OK);
    double one = tl_peak_gflops(pool, 1, 0, 0.02), all = tl_peak_gflops(pool, 0, 0, 0.02);
    print_message("%s: %.1f GFLOP/s on one thread, %.1f on %d\n", tl_peak_isa(0), one, all,
                  tl_pool_threads(pool));
    assert_true(one > 0.5 && one < 2000);
    assert_true(all > 0.5 && all < 2000.0 * tl_pool_threads(pool));
    double narrow = tl_peak_gflops(pool, 1, 128, 0.02);
    assert_true(narrow > 0.5 && narrow < 1.2 * one);
    assert_string_not_equal(tl_peak_isa(128), "AVX-512");
    tl_pool_destroy(pool);
}

static void the_bandwidth_is_plausible(void **state)
{
    (void)state;
    tl_pool *pool;
    tl_peak_bandwidth b;
    assert_int_equal(tl_pool_create(NULL, &pool, NULL), TL_OK);
    assert_int_equal(tl_peak_measure_bandwidth(pool, 0, 0.05, &b, NULL), TL_OK);
    print_message("read %.1f GB/s, copy %.1f GB/s\n", b.read_gbs, b.copy_gbs);
    assert_true(b.read_gbs > 0.01 && b.read_gbs < 10000);
    assert_true(b.copy_gbs > 0.01 && b.copy_gbs < 10000);
    tl_pool_destroy(pool);
}

/* What fits a cache moves at least half as fast as memory does; what cannot be had is 0. */
static void traffic_is_plausible(void **state)
{
    (void)state;
    tl_pool *pool;
    tl_peak_bandwidth b;
    assert_int_equal(tl_pool_create(NULL, &pool, NULL), TL_OK);
    assert_int_equal(tl_peak_measure_bandwidth(pool, 1, 0.05, &b, NULL), TL_OK);
    static const int64_t sizes[][2] = { { 65536, 65536 }, { 65536, 100 }, { 64, 65536 }, { 7, 0 } };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double gbs = tl_peak_traffic_gbs(pool, 1, sizes[i][0], sizes[i][1], 0.01);
        print_message("%lld read, %lld written: %.1f GB/s\n", (long long)sizes[i][0],
                      (long long)sizes[i][1], gbs);
        assert_true(gbs > (i < 3 ? b.read_gbs / 2 : 0) && gbs < 10000);
    }
    assert_true(tl_peak_traffic_gbs(pool, 1, INT64_MAX / 2, 64, 0.01) == 0);
    tl_pool_destroy(pool);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_moves),
        cmocka_unit_test(the_topology_is_plausible),
        cmocka_unit_test(the_affinity_mask_is_respected),
        cmocka_unit_test(quotas_parse),
        cmocka_unit_test(processors_have_levels),
        cmocka_unit_test(checksums_find_damage),
        cmocka_unit_test(the_peak_is_plausible),
        cmocka_unit_test(the_bandwidth_is_plausible),
        cmocka_unit_test(traffic_is_plausible),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
