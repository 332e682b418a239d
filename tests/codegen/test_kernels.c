/* tests/codegen/test_kernels.c: every kernel of models/kernels, under its hand-written trace and under the default
 * schedule, compiled for this machine and for the smaller ISAs that it can run, gives what the naive program
 * gives, on one thread and with its phases shared out among several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "codegen/codegen.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/kernel_files.h"

enum { POINTS = 120 };

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

/* A kernel with its arguments, and what the naive program makes of them. */
typedef struct {
    const char *name;
    tl_program *naive;
    kernel_arguments arguments;
    kernel_points points;
    void *output;
} subject;

static void run(const subject *k, const compiled *prepare, const compiled *body,
                const tl_program *program, int threads, const char *what)
{
    tl_diag diag = { "" };
    void *buffers[2 * KERNEL_BUFFERS];
    int count = 0;
    for (int i = 0; i < k->arguments.count; i++)
        buffers[count++] = k->arguments.arguments[i].data;
    assert_true(program->prepared_count <= KERNEL_BUFFERS);
    for (int i = 0; i < program->prepared_count; i++)
        buffers[count++] = aligned_alloc(64, kernel_bytes(program->prepared[i]));
    memset(k->output, 0xFF, kernel_bytes(k->points.output));
    if (program->prepare != NULL)
        compiled_run(prepare, buffers, NULL, threads);
    compiled_run(body, buffers, NULL, threads);
    for (int i = k->arguments.count; i < count; i++)
        free(buffers[i]);
    if (kernel_points_check(&k->points, k->output, 1e-4, &diag) != TL_OK)
        fail_msg("%s, %d threads: %s", what, threads, diag.text);
}

static void check(const subject *k, const char *isa, bool by_hand)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_target target;
    tl_schedule *s;
    compiled body, prepare = { 0 };
    const char *what = tl_arena_format(arena, "%s under %s on %s", k->name,
                                       by_hand ? "its trace" : "the default schedule",
                                       isa == NULL ? "this machine" : isa);
    must(compiled_target(isa, &target, &diag), &diag, what);
    must(kernel_schedule(arena, k->name, k->naive, &target, by_hand, &s, &diag), &diag, what);
    const tl_program *program = tl_schedule_program(s);
    must(compiled_make(arena, program, false, &target, &body, &diag), &diag, what);
    if (program->prepare != NULL)
        must(compiled_make(arena, program, true, &target, &prepare, &diag), &diag, what);
    run(k, &prepare, &body, program, 1, what);
    run(k, &prepare, &body, program, COMPILED_THREADS, what);
    compiled_free(&body);
    if (program->prepare != NULL)
        compiled_free(&prepare);
    tl_arena_destroy(arena);
}

static void kernel(void **state)
{
    static const char *const isas[] = { NULL, "x86-64-v3", "x86-64" };
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    subject k = { .name = *state };
    must(kernel_parse(arena, k.name, &k.naive, &diag), &diag, k.name);
    must(kernel_arguments_make(k.naive, 3, &k.arguments, &diag), &diag, k.name);
    must(kernel_points_make(arena, k.naive, &k.arguments, 5, POINTS, &k.points, &diag), &diag,
         k.name);
    for (int i = 0; i < k.arguments.count; i++)
        if (k.arguments.arguments[i].buffer == k.points.output)
            k.output = k.arguments.arguments[i].data;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (isas[i] == NULL || compiled_runs_here(isas[i])) {
            check(&k, isas[i], true);
            check(&k, isas[i], false);
        }
    kernel_arguments_free(&k.arguments);
    tl_arena_destroy(arena);
}

int main(void)
{
    tl_codegen_own_process();
    static kernel_names names;
    struct CMUnitTest tests[KERNEL_FILES] = { { 0 } };
    tl_diag diag = { "" };
    if (kernel_names_read(&names, &diag) != TL_OK || names.count < 23) {
        fprintf(stderr, "%d kernels in %s: %s\n", names.count, KERNEL_FOLDER, diag.text);
        return 1;
    }
    for (int i = 0; i < names.count; i++)
        tests[i] = (struct CMUnitTest){ names.names[i], kernel, NULL, NULL, names.names[i] };
    return _cmocka_run_group_tests("kernels", tests, (size_t)names.count, NULL, NULL);
}
