/* tests/bench/bench_codegen.c: compiles kernels (.tk) for this machine and times them on one core, in rounds with the
 * machine's peak: bench_codegen FLOPS KERNEL.tk ... ; --asm KERNEL.tk prints the assembly instead. */
#include <stdio.h>
#include "runtime/base/file.h"
#include "runtime/clock.h"
#include "runtime/peak.h"
#include "tests/codegen/compiled.h"

static void must(tl_status status, const tl_diag *diag)
{
    if (status == TL_OK)
        return;
    fprintf(stderr, "%s\n", diag->text);
    exit(1);
}

static tl_program *parse(tl_arena *arena, const char *path)
{
    tl_diag diag = { "" };
    tl_text text = { 0 };
    tl_program *program;
    must(tl_file_read(path, &text, &diag), &diag);
    must(tl_program_parse(arena, tl_text_get(&text), path, &program, &diag), &diag);
    tl_text_free(&text);
    return program;
}

static void show(const char *path, tl_emit what)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_text out = { 0 };
    tl_target target;
    must(compiled_target(NULL, &target, &diag), &diag);
    must(tl_codegen_compile(arena, parse(arena, path), false, &target, what, &out, NULL, &diag),
         &diag);
    fputs(tl_text_get(&out), stdout);
    tl_text_free(&out);
    tl_arena_destroy(arena);
}

static void *filled(const tl_buffer *b)
{
    size_t count = (size_t)tl_buffer_max_elements(b);
    float *data = aligned_alloc(64, (count * tl_dtype_size(b->dtype) + 127) / 64 * 64);
    for (size_t i = 0; i < count && b->dtype == TL_F32; i++)
        data[i] = (float)(i % 17) / 17 - 0.5f;
    return data;
}

static double best_of(const compiled *c, void *const *buffers, int runs)
{
    double best = 1e30;
    for (int r = 0; r < runs; r++) {
        int64_t start = tl_clock_ns();
        for (int p = 0; p < c->descriptor.phase_count; p++) {
            tl_kernel_args args = { buffers, NULL, NULL, NULL, 0 };
            tl_jit_phase(c->kernel, p)(&args, 0, c->descriptor.extents[p], 0);
        }
        double ns = (double)(tl_clock_ns() - start);
        best = ns < best ? ns : best;
    }
    return best;
}

static void bench(double flops, const char *path)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_target target;
    void *buffers[64];
    tl_program *program = parse(arena, path);
    compiled body, prepare = { 0 };
    must(compiled_target(NULL, &target, &diag), &diag);
    must(compiled_make(arena, program, false, &target, &body, &diag), &diag); /* warm */
    compiled_free(&body);
    tl_text object = { 0 };
    int64_t start = tl_clock_ns();
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT, &object, NULL, &diag),
         &diag);
    double compile_ms = (double)(tl_clock_ns() - start) / 1e6;
    tl_text_free(&object);
    must(compiled_make(arena, program, false, &target, &body, &diag), &diag);
    for (int i = 0; i < program->param_count; i++)
        buffers[i] = filled(program->params[i]);
    for (int i = 0; i < program->prepared_count; i++)
        buffers[program->param_count + i] = filled(program->prepared[i]);
    if (program->prepare != NULL) {
        must(compiled_make(arena, program, true, &target, &prepare, &diag), &diag);
        compiled_run(&prepare, buffers, NULL, 1);
        compiled_free(&prepare);
    }
    tl_pool *pool;
    tl_pool_options options = { .threads = 1 };
    must(tl_pool_create(&options, &pool, &diag), &diag);
    double best_percent = 0, best_gflops = 0;
    for (int round = 0; round < 9; round++) {
        double peak = tl_peak_gflops(pool, 1, 0.02);
        double gflops = flops / best_of(&body, buffers, 20);
        printf("%s: %.1f GFLOP/s, %.1f %% of %.1f\n", program->name, gflops, 100 * gflops / peak,
               peak);
        best_percent = 100 * gflops / peak > best_percent ? 100 * gflops / peak : best_percent;
        best_gflops = gflops > best_gflops ? gflops : best_gflops;
    }
    printf("%s: best %.1f GFLOP/s, %.1f %% of peak; compiled in %.2f ms\n", program->name,
           best_gflops, best_percent, compile_ms);
    for (int i = 0; i < program->param_count + program->prepared_count; i++)
        free(buffers[i]);
    tl_pool_destroy(pool);
    compiled_free(&body);
    tl_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--asm") == 0) {
        show(argv[2], TL_EMIT_ASSEMBLY);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--llvm") == 0) {
        show(argv[2], TL_EMIT_LLVM);
        return 0;
    }
    if (argc < 3) {
        fprintf(stderr,
                "usage: bench_codegen FLOPS KERNEL.tk ... | --asm KERNEL.tk | --llvm KERNEL.tk\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        bench(strtod(argv[1], NULL), argv[i]);
    return 0;
}
