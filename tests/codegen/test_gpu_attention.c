/* tests/codegen/test_gpu_attention.c: attention as the lowering `fragments` writes it (tests/golden/fragments), under the default
 * schedules of a Hopper: one launch of warpgroups' products that computes, emulated or on the device that TILTH_TEST_DEVICE
 * names, what the interpreter computes of the naive programs, and, where there is a ptxas, neither spills nor is serialised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "runtime/base/file.h"
#include "tests/codegen/emulated.h"
#include "tests/codegen/gpu_kernels.h"

enum { MOST_BUFFERS = 8 };

static const struct {
    const char *name;
    const char *first, *second; /* products */
    const char *word;
} cases[] = {
    { "two_groups", "wgmma_m64n64k16_bf16_nk)", "wgmma_m64n64k16_bf16)", "turns, 1)" },
    { "masked", "wgmma_m64n32k16_f16_nk)", "wgmma_m64n96k16_f16)", "specialize(" },
    { "wide", "wgmma_m64n128k16_bf16_nk)", "wgmma_m64n128k16_bf16)", "turns, 1)" },
    { "batch", "wgmma_m64n64k16_bf16_nk)", "wgmma_m64n64k16_bf16)", "cluster, 2)" },
    { "long", "wgmma_m64n128k16_f16_nk)", "wgmma_m64n64k16_f16)", "software_pipeline(t, 3)" },
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* By default neither: where a case asks for turns or clusters, that is decided so. */
static int decide(void *user, const tl_decision *open)
{
    const char *word = user, *role = strrchr(open->name, '.');
    for (size_t d = 0; role != NULL && d < 2; d++)
        if (strcmp(role, d == 0 ? ".turns" : ".cluster") == 0)
            return strstr(word, role + 1) != NULL ? open->count - 1 : open->initial;
    return open->initial;
}

static gpu_case schedule(tl_arena *arena, int i)
{
    tl_diag diag = { 0 };
    tl_text text = { 0 };
    const char *path = tl_arena_format(arena, "tests/golden/fragments/%s.tk", cases[i].name);
    if (tl_file_read(path, &text, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    gpu_case c =
        gpu_by_default(arena, cases[i].name, tl_text_get(&text), "sm_90a", decide, cases[i].word);
    tl_text_free(&text);
    return c;
}

static void attention_is_one_launch(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_descriptor descriptor;
        tl_diag diag = { 0 };
        gpu_case c = schedule(arena, i);
        if (tl_codegen_describe(arena, c.program, false, &c.target, &descriptor, &diag) != TL_OK)
            fail_msg("%s: %s", cases[i].name, diag.text);
        const char *words[] = { cases[i].first, cases[i].second, "set_scope(p, warpgroup)",
                                "specialize(", cases[i].word };
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            if (strstr(c.trace, words[w]) == NULL || descriptor.phase_count != 1)
                fail_msg("%s: %d launches, or no %s in\n%s", cases[i].name, descriptor.phase_count,
                         words[w], c.trace);
        tl_arena_destroy(arena);
    }
}

static void attention_is_right(void **state)
{
    (void)state;
    emulated device;
    tl_diag diag = { 0 };
    if (emulated_open(&device, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < CASES; i++) {
        tl_arena *arena = tl_arena_create(0);
        void *want[MOST_BUFFERS], *got[MOST_BUFFERS];
        gpu_case c = schedule(arena, i);
        emulated_data(arena, c.naive, 7, 5, want);
        emulated_data(arena, c.naive, 7, 5, got);
        if (emulated_want(arena, c.naive, want, &diag) != TL_OK ||
            emulated_run(&device, arena, c.program, &c.target, got, NULL, &diag) != TL_OK)
            fail_msg("%s: %s\n%s", cases[i].name, diag.text, c.trace);
        int last = c.naive->param_count - 1;
        const tl_buffer *y = c.naive->params[last];
        double bound = y->dtype == TL_BF16 ? 0x1p-7 : 0x1p-10, largest = 0;
        for (int64_t k = 0; k < tl_buffer_max_elements(y); k++)
            largest = fmax(largest, fabs(tl_number_load(y->dtype, want[last], (size_t)k).f));
        for (int64_t k = 0; k < tl_buffer_max_elements(y); k++) {
            double w = tl_number_load(y->dtype, want[last], (size_t)k).f,
                   g = tl_number_load(y->dtype, got[last], (size_t)k).f;
            if (!(fabs(w - g) <= bound * largest))
                fail_msg("%s: y[%lld] is %.9g, not %.9g", cases[i].name, (long long)k, g, w);
        }
        tl_arena_destroy(arena);
    }
    emulated_close(&device);
}

static void attention_assembles(void **state)
{
    (void)state;
    gpu_need_ptxas();
    for (int i = 0; i < CASES; i++) {
        tl_arena *arena = tl_arena_create(0);
        gpu_case c = schedule(arena, i);
        gpu_expect_assembles(arena, cases[i].name, &c, "sm_90a");
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_one_launch),
        cmocka_unit_test(attention_is_right),
        cmocka_unit_test(attention_assembles),
    };
    return cmocka_run_group_tests_name("gpu attention", tests, NULL, NULL);
}
