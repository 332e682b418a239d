/* tests/codegen/test_loaders.c: the two ways to make an object callable pass the same tests, on the same objects: the
 * ORC session (codegen/object/jit_llvm.c), by which a model runs and candidates are timed, and the code loader
 * (runtime/device/code_loader.c), which serves programs without LLVM. What one of them takes the other takes, and it
 * computes the same to the last bit; what one refuses the other refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/device/code_loader.h"
#include "tests/codegen/compiled.h"
#include "tests/runtime/c_objects.h"

enum { MAX_PHASES = 8, MAX_BUFFERS = 4, MAX_BYTES = 1 << 14 };

/* An object made callable. */
typedef struct {
    tl_phase_fn *phases[MAX_PHASES];
    tl_sizes_fn *sizes;
    tl_jit *jit; /* of ORC */
    tl_jit_kernel *kernel;
    tl_code *code; /* of the code loader */
} loaded;

typedef struct {
    const char *name;
    tl_status (*load)(const tl_text *object, const tl_descriptor *d, loaded *out, tl_diag *diag);
    void (*unload)(loaded *l);
} loader;

static void unload_orc(loaded *l)
{
    tl_jit_remove(l->kernel);
    tl_jit_destroy(l->jit);
}

static tl_status load_orc(const tl_text *object, const tl_descriptor *d, loaded *out, tl_diag *diag)
{
    tl_target target;
    *out = (loaded){ 0 };
    TL_TRY(compiled_target(NULL, &target, diag));
    TL_TRY(tl_jit_create(&target, &out->jit, diag));
    tl_status status = tl_jit_add(out->jit, object->data, object->size, d, &out->kernel, diag);
    if (status != TL_OK) {
        unload_orc(out);
        return status;
    }
    for (int p = 0; p < d->phase_count; p++)
        out->phases[p] = tl_jit_phase(out->kernel, p);
    out->sizes = tl_jit_sizes(out->kernel);
    return TL_OK;
}

static void unload_code(loaded *l)
{
    tl_code_unload(l->code);
}

static tl_status load_code(const tl_text *object, const tl_descriptor *d, loaded *out,
                           tl_diag *diag)
{
    *out = (loaded){ 0 };
    TL_TRY(tl_code_load(object->data, object->size, &out->code, diag));
    tl_status status = tl_code_kernel(out->code, d, out->phases, &out->sizes, diag);
    if (status != TL_OK)
        unload_code(out);
    return status;
}

static const loader loaders[] = {
    { "ORC", load_orc, unload_orc },
    { "the code loader", load_code, unload_code },
};
enum { LOADERS = sizeof loaders / sizeof loaders[0] };

/* ---- objects ---- */

/* Runs all phases on buffers of floats that count up; what they hold then is in `out`. */
static void run(const loaded *l, const tl_descriptor *d, const int64_t *dims,
                unsigned char out[MAX_BUFFERS][MAX_BYTES])
{
    void *buffers[MAX_BUFFERS];
    int64_t extents[MAX_PHASES], scratch = d->scratch_bytes, own = d->thread_scratch_bytes;
    assert_true(d->phase_count <= MAX_PHASES);
    for (int b = 0; b < MAX_BUFFERS; b++) {
        float *data = (float *)out[b];
        buffers[b] = data;
        for (int i = 0; i < MAX_BYTES / 4; i++)
            data[i] = (float)(i % 37 - 18) * 0.25f;
    }
    for (int p = 0; p < d->phase_count; p++)
        extents[p] = d->has_sizes ? 0 : d->extents[p];
    if (d->has_sizes)
        l->sizes(dims, extents, &scratch, &own);
    unsigned char *shared = aligned_alloc(64, (size_t)(scratch + 127) / 64 * 64);
    unsigned char *mine = aligned_alloc(64, (size_t)(own + 127) / 64 * 64);
    tl_kernel_args args = { buffers, dims, shared, mine, 0 };
    for (int p = 0; p < d->phase_count; p++)
        l->phases[p](&args, 0, extents[p], 0);
    free(shared);
    free(mine);
}

/* Every loader takes it, two times at once, and what they compute is the same. */
static void check_alike(const tl_text *object, const tl_descriptor *d, const int64_t *dims)
{
    static unsigned char want[MAX_BUFFERS][MAX_BYTES] __attribute__((aligned(64)));
    static unsigned char got[MAX_BUFFERS][MAX_BYTES] __attribute__((aligned(64)));
    for (int i = 0; i < LOADERS; i++) {
        tl_diag diag = { 0 };
        loaded first, second;
        if (loaders[i].load(object, d, &first, &diag) != TL_OK ||
            loaders[i].load(object, d, &second, &diag) != TL_OK)
            fail_msg("%s: %s", loaders[i].name, diag.text);
        run(&first, d, dims, i == 0 ? want : got);
        if (i > 0)
            assert_memory_equal(want, got, sizeof got);
        loaders[i].unload(&first);
        run(&second, d, dims, got);
        assert_memory_equal(want, got, sizeof got);
        loaders[i].unload(&second);
    }
}

/* Tables, tables of addresses, all permitted externals, a second function, a sizes function. */
static const char c_kernel[] = KERNEL_START
    "static const float table[4] = { 1.5f, 2.5f, 3.5f, 4.5f };\n"
    "static const float *const rows[2] = { table, table + 2 };\n"
    "__attribute__((noinline)) float helper(float x, int64_t i) { return x*rows[i & 1][i >> 1 & "
    "1]; }\n"
    "void k_0(const args *a, int64_t begin, int64_t end, int thread) {\n"
    "  const float *x = a->buffers[0]; float *y = a->buffers[1]; (void)thread;\n"
    "  for (int64_t i = begin; i < end; i++) y[i] = helper(x[i], i) + 0.25f;\n"
    "}\n"
    "void k_1(const args *a, int64_t begin, int64_t end, int thread) {\n"
    "  size_t n = (size_t)(a->dims[0])*sizeof(float); (void)begin; (void)end; (void)thread;\n"
    "  memcpy(a->scratch, a->buffers[1], n);\n"
    "  memmove(a->buffers[2], a->scratch, n);\n"
    "  memset(a->buffers[3], 7, n);\n"
    "}\n"
    "void k_sizes(const int64_t *dims, int64_t *extents, int64_t *scratch, int64_t *thread) {\n"
    "  extents[0] = dims[0]; extents[1] = 1; *scratch = 4*dims[0]; *thread = 0;\n"
    "}\n";
static const tl_descriptor c_descriptor = {
    .name = "k", .phase_count = 2, .has_sizes = true, .dim_count = 1, .buffer_count = 4
};

static void objects_of_a_c_compiler(void **state)
{
    static const char *const options[] = { "",
                                           "-O0",
                                           "-O3 -march=native",
                                           "-fno-plt",
                                           "-ffunction-sections -fdata-sections",
                                           "-fno-asynchronous-unwind-tables -g" };
    static const int64_t dims[] = { 1000 };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        tl_text object = { 0 };
        need_c_object(c_kernel, options[i], &object);
        check_alike(&object, &c_descriptor, dims);
        tl_text_free(&object);
    }
}

/* Constants of functions, several phases, scratch of both kinds, dims, copies and fills, tables of a transposition. */
static const char *const programs[] = {
    "kernel k(A: f32[40], out B: f32[40, 4])\n"
    "  for i in 0..40 vectorized\n    block b\n      spatial i\n      B[i, 0] = exp(A[i])\n"
    "      B[i, 1] = erf(A[i])\n      B[i, 2] = sigmoid(A[i])\n      B[i, 3] = cos(A[i])\n",
    "kernel k(dim N in 1..60, A: f32[N, 33], out B: f32[N, 33])\n"
    "  alloc T: f32[N, 33]\n"
    "  for i in 0..N parallel\n    for j in 0..33 vectorized\n      block t\n"
    "        spatial i, j\n        T[i, j] = A[i, j]*0.5\n"
    "  for i in 0..N parallel\n    alloc G: f32[33]\n    for j in 0..33 vectorized\n"
    "      block g\n        spatial i, j\n        G[j] = T[N - 1 - i, 32 - j]\n"
    "    for j in 0..33 vectorized\n      block o\n        spatial i, j\n"
    "        B[i, j] = G[j] + A[i, j]\n",
    "kernel k(A: f32[19, 23], out B: f32[23, 19], out C: f32[400], out D: f32[400])\n"
    "  for i in 0..23\n    for j in 0..19 vectorized\n      block t\n        spatial i, j\n"
    "        B[i, j] = A[j, i]\n"
    "  for i in 0..400\n    block c\n      spatial i\n      C[i] = 0.0\n"
    "  for i in 0..400\n    block d\n      spatial i\n      D[i] = C[i]\n",
    "kernel k(A: f32[8, 32], out Y: f32[8, 32], out I: i64[8, 32])\n"
    "  for i in 0..8 parallel\n    block s\n      spatial i\n"
    "      call sort_f32(read A[i, 0..32], write Y[i, 0..32], write I[i, 0..32], 1)\n",
};

static void objects_of_our_own(void **state)
{
    static const char *const isas[] = { NULL, "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64" };
    static const int64_t dims[] = { 17 };
    (void)state;
#if !defined(__x86_64__)
    print_message("skip: the code loader is for x86-64\n");
    skip();
#endif
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
            if (isas[i] != NULL && !compiled_runs_here(isas[i]))
                continue;
            tl_arena *arena = tl_arena_create(0);
            tl_diag diag = { 0 };
            tl_program *program;
            tl_target target;
            tl_text object = { 0 };
            tl_descriptor d;
            if (tl_program_parse(arena, programs[p], "k", &program, &diag) != TL_OK ||
                tl_program_verify(program, &diag) != TL_OK ||
                compiled_target(isas[i], &target, &diag) != TL_OK ||
                tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT, &object, &d,
                                   &diag) != TL_OK)
                fail_msg("program %zu: %s", p, diag.text);
            check_alike(&object, &d, dims);
            tl_text_free(&object);
            tl_arena_destroy(arena);
        }
}

/* ---- refusals ---- */

static void check_refused(const tl_text *object, const tl_descriptor *d, const char *what)
{
    for (int i = 0; i < LOADERS; i++) {
        tl_diag diag = { 0 };
        loaded l;
        if (loaders[i].load(object, d, &l, &diag) == TL_OK)
            fail_msg("%s takes %s", loaders[i].name, what);
        if (diag.text[0] == '\0')
            fail_msg("%s refuses %s without a sentence", loaders[i].name, what);
    }
}

static void refused_by_both(void **state)
{
    static const struct {
        const char *what, *source;
    } cases[] = {
        { "a function from outside",
          "#include <math.h>\nfloat k_0(float x) { return expf(x); }\n" },
        { "a variable from outside", "extern int other; int k_0(void) { return other; }\n" },
        { "a counter", "static int n; int k_0(void) { return ++n; }\n" },
        { "a variable", "int n = 5; int k_0(void) { return ++n; }\n" },
        { "a variable of a thread", "_Thread_local int n; int k_0(void) { return ++n; }\n" },
        { "no phase at all", "int other(void) { return 1; }\n" },
    };
    static const int64_t extents[] = { 1 };
    static const tl_descriptor d = { .name = "k", .phase_count = 1, .extents = extents };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_text object = { 0 };
        need_c_object(cases[i].source, "", &object);
        check_refused(&object, &d, cases[i].what);
        tl_text_free(&object);
    }
}

static void what_is_missing_or_cut_is_refused_by_both(void **state)
{
    tl_text object = { 0 };
    tl_descriptor d = c_descriptor;
    (void)state;
    need_c_object(c_kernel, "", &object);
    d.phase_count = 3;
    check_refused(&object, &d, "an object without the third phase");
    d = c_descriptor;
    d.name = "other";
    check_refused(&object, &d, "an object with other names");
    size_t size = object.size;
    for (object.size = 0; object.size < size; object.size += 149)
        check_refused(&object, &c_descriptor, "a part of an object");
    object.size = size;
    object.data[offsetof(Elf64_Ehdr, e_machine)] = (char)EM_AARCH64;
    check_refused(&object, &c_descriptor, "an object of another machine");
    tl_text_free(&object);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_a_c_compiler),
        cmocka_unit_test(objects_of_our_own),
        cmocka_unit_test(refused_by_both),
        cmocka_unit_test(what_is_missing_or_cut_is_refused_by_both),
    };
    return cmocka_run_group_tests_name("loaders", tests, make_folder, remove_folder);
}
