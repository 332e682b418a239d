/* tests/codegen/test_default.c: the default and the reference schedule of every program in tests/golden/sketch, compiled
 * for this
 * machine and for a smaller ISA, give what the interpreter gives for the naive program, on one thread and on several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "codegen/codegen.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "tests/codegen/compiled.h"
#include "tests/support/sketch_programs.h"

enum { MAX_BUFFERS = 24 };
static const char *const isas[] = { NULL, "x86-64-v3", "x86-64" }; /* NULL: this machine's own */

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

static void *make_data(tl_arena *arena, const tl_buffer *b, tl_random *random)
{
    int64_t count = tl_buffer_max_elements(b);
    /* one element more, for a buffer may have none */
    void *data = tl_arena_alloc(arena, (size_t)(count + 1) * tl_dtype_size(b->dtype), 64);
    memset(data, 0x7f, (size_t)count * tl_dtype_size(b->dtype));
    for (int64_t k = 0; random != NULL && k < count; k++) {
        tl_number value;
        if (tl_dtype_is_float(b->dtype))
            value.f = tl_random_unit(random) - 0.5;
        else
            value.i = tl_random_below(random, 5);
        tl_number_store(b->dtype, data, (size_t)k, value);
    }
    return data;
}

static void compare(const tl_buffer *b, const void *want, const void *got, const char *name,
                    const tl_target *target, int threads)
{
    /* sums in another order may be rounded to the next number of a narrow dtype */
    double ulp = tl_dtype_is_float(b->dtype) ? ldexp(1, 1 - tl_dtype_infos[b->dtype].digits) : 0;
    for (int64_t k = 0; k < tl_buffer_max_elements(b); k++) {
        tl_number wanted = tl_number_load(b->dtype, want, (size_t)k);
        tl_number given = tl_number_load(b->dtype, got, (size_t)k);
        double w = tl_dtype_is_float(b->dtype) ? wanted.f : (double)wanted.i;
        double g = tl_dtype_is_float(b->dtype) ? given.f : (double)given.i;
        if (!(fabs(w - g) <= fmax(1e-5 * (1 + fabs(w)), fabs(w) * ulp)))
            fail_msg("%s for %s, %d threads: %s[%lld] is %.9g, not %.9g", name,
                     tl_isa_infos[target->isa].text, threads, b->name, (long long)k, g, w);
    }
}

static void check(const char *name, const char *text, const char *isa, bool is_reference)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_target target;
    must(tl_program_parse(arena, text, name, &naive, &diag), &diag, name);
    must(compiled_target(isa, &target, &diag), &diag, "target");
    target.cores = 2;
    tl_schedule *s = tl_schedule_create(arena, naive, &target, false);
    must(is_reference ? tl_schedule_reference(s, 1, &diag) : tl_schedule_default(s, &diag), &diag,
         name);
    const tl_program *scheduled = tl_schedule_program(s);

    tl_argument arguments[MAX_BUFFERS];
    void *buffers[MAX_BUFFERS];
    tl_random random = tl_random_make(11);
    assert_in_range(scheduled->param_count + scheduled->prepared_count, 1, MAX_BUFFERS);
    for (int i = 0; i < naive->param_count; i++) {
        bool output = naive->params[i]->role == TL_ROLE_OUTPUT;
        buffers[i] = make_data(arena, naive->params[i], output ? NULL : &random);
        arguments[i] =
            (tl_argument){ naive->params[i],
                           output ? make_data(arena, naive->params[i], NULL) : buffers[i] };
    }
    for (int i = 0; i < scheduled->prepared_count; i++)
        buffers[naive->param_count + i] = make_data(arena, scheduled->prepared[i], NULL);
    must(tl_interpret(naive, arguments, naive->param_count, NULL, NULL, &diag), &diag, name);

    compiled body, prepare;
    must(compiled_make(arena, scheduled, false, &target, &body, &diag), &diag, name);
    if (scheduled->prepare != NULL) {
        must(compiled_make(arena, scheduled, true, &target, &prepare, &diag), &diag, name);
        compiled_run(&prepare, buffers, NULL, 2);
        compiled_free(&prepare);
    }
    for (int threads = 1; threads <= 2; threads++) {
        compiled_run(&body, buffers, NULL, threads);
        for (int i = 0; i < naive->param_count; i++)
            if (naive->params[i]->role == TL_ROLE_OUTPUT)
                compare(naive->params[i], arguments[i].data, buffers[i], name, &target, threads);
    }
    compiled_free(&body);
    tl_arena_destroy(arena);
}

static void check_program(const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        for (int is_reference = 0; is_reference < 2; is_reference++)
            if (isas[i] == NULL || compiled_runs_here(isas[i]))
                check(name, text, isas[i], is_reference);
}

static void schedules_compile_to_the_same(void **state)
{
    (void)state;
    sketch_programs_visit(NULL, check_program);
}

int main(void)
{
    tl_codegen_own_process();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_compile_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
