/* tests/codegen/test_write_object.c: several kernels and data in one object file, which a linker takes and a program calls;
 * several kernels in one text, which an assembler takes; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>
#include "codegen/object/write_object.h"
#include "tests/codegen/compiled.h"

enum { N = 37 };
static const char *const texts[] = {
    "kernel twice(A: f32[37], out B: f32[37])\n  for i in 0..37 vectorized\n    block b\n"
    "      spatial i\n      B[i] = A[i]*2.0 + 1.0\n",
    "kernel root(A: f32[37], out B: f32[37])\n  for i in 0..37\n    block b\n"
    "      spatial i\n      B[i] = sqrt(A[i])\n",
};
enum { KERNELS = 2 };

static char folder[64];
static tl_arena *arena;
static tl_target target;
static const tl_program *programs[KERNELS];
static tl_text objects[KERNELS];

static int start(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tilth-object-XXXXXX");
    arena = tl_arena_create(0);
    if (mkdtemp(folder) == NULL || compiled_target(NULL, &target, NULL) != TL_OK)
        return -1;
    for (int i = 0; i < KERNELS; i++) {
        tl_program *program;
        tl_descriptor descriptor;
        if (tl_program_parse(arena, texts[i], "test", &program, NULL) != TL_OK ||
            tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT, &objects[i],
                               &descriptor, NULL) != TL_OK)
            return -1;
        programs[i] = program;
    }
    return 0;
}

static int finish(void **state)
{
    (void)state;
    char command[100];
    for (int i = 0; i < KERNELS; i++)
        tl_text_free(&objects[i]);
    tl_arena_destroy(arena);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void need_x86(void)
{
    if (target.isa == TL_ISA_NEON) {
        print_message("skip: object files are written for x86-64 only\n");
        skip();
    }
}

/* What the tests put together: a table of functions with a pointer to data, and the data. */
typedef struct {
    tl_phase_fn *functions[KERNELS];
    const int64_t *numbers;
} table;
static const int64_t numbers[2] = { 40, 2 };
static const table empty_table;

typedef struct {
    tl_object_section sections[2];
    tl_object_pointer pointers[KERNELS + 1];
    tl_object_export export;
    tl_object_parts parts;
} object;

static void make_object(tl_object_data kind, object *o)
{
    *o = (object){
        .sections = { { TL_OBJECT_POINTERS, "table", tl_pieces_make(arena, 1) },
                      { kind, "numbers", tl_pieces_make(arena, 2) } },
        .pointers = { { 0, offsetof(table, functions[0]), 0, "twice_0", 0 },
                      { 0, offsetof(table, functions[1]), 1, "root_0", 0 },
                      { 0, offsetof(table, numbers), 1, NULL, sizeof numbers[0] } },
        .export = { "the_table", 0 },
        .parts = { .code = tl_pieces_make(arena, KERNELS),
                   .section_count = 2,
                   .pointer_count = KERNELS + 1,
                   .export_count = 1 },
    };
    tl_pieces_add(&o->sections[0].pieces, &empty_table, sizeof empty_table, 8);
    tl_pieces_add(&o->sections[1].pieces, &numbers[0], sizeof numbers[0], 8);
    tl_pieces_add(&o->sections[1].pieces, &numbers[1], sizeof numbers[1], 8);
    for (int i = 0; i < KERNELS; i++)
        tl_pieces_add(&o->parts.code, objects[i].data, (int64_t)objects[i].size, 64);
    o->parts.sections = o->sections;
    o->parts.pointers = o->pointers;
    o->parts.exports = &o->export;
}

static tl_status write_parts(const tl_object_parts *parts, tl_diag *diag)
{
    char path[80];
    tl_file *file;
    snprintf(path, sizeof path, "%s/a.o", folder);
    TL_TRY(tl_file_create(path, &file, diag));
    tl_status status = tl_object_write(parts, file, diag);
    if (status == TL_OK)
        return tl_file_commit_unsynced(file, diag);
    tl_file_abandon(file);
    return status;
}

static void must_run(const char *format)
{
    char command[300];
    snprintf(command, sizeof command, format, folder, folder);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static void call_kernels(const table *t)
{
    float in[48] __attribute__((aligned(64))), out[48] __attribute__((aligned(64)));
    void *buffers[2] = { in, out };
    tl_kernel_args args = { .buffers = buffers };
    for (int i = 0; i < N; i++)
        in[i] = (float)(i * i);
    t->functions[0](&args, 0, 1, 0);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == in[i] * 2 + 1);
    t->functions[1](&args, 0, 1, 0);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)i);
}

static void a_linker_takes_it(void **state)
{
    (void)state;
    static const tl_object_data kinds[] = { TL_OBJECT_TEXT, TL_OBJECT_BULK, TL_OBJECT_LARGE };
    need_x86();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        object o;
        tl_diag diag = { 0 };
        char path[80];
        make_object(kinds[k], &o);
        if (write_parts(&o.parts, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        must_run("${CC:-cc} -shared -nostdlib -o %s/a.so %s/a.o");
        snprintf(path, sizeof path, "%s/a.so", folder);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            fail_msg("%s", dlerror());
        const table *t = dlsym(library, "the_table");
        assert_non_null(t);
        assert_null(dlsym(library, "twice_0")); /* local */
        assert_int_equal(t->numbers[0], 2);
        assert_int_equal(t->numbers[-1], 40);
        call_kernels(t);
        dlclose(library);
        /* the stack of the program stays as it is: not executable */
        must_run("readelf -lW %s/a.so | grep GNU_STACK | grep -vq RWE && test -e %s/a.o");
    }
}

static void expect_refused(const tl_object_parts *parts, tl_status want, const char *part)
{
    tl_diag diag = { 0 };
    tl_status got = write_parts(parts, &diag);
    if (got != want || strstr(diag.text, part) == NULL)
        fail_msg("status %d (want %d), \"%s\" (want \"%s\")", got, want, diag.text, part);
}

static void refusals(void **state)
{
    (void)state;
    object o;
    need_x86();
    make_object(TL_OBJECT_BULK, &o);
    o.pointers[1].function = "cube_0";
    expect_refused(&o.parts, TL_BAD_ARGUMENT, "does not define cube_0");

    make_object(TL_OBJECT_BULK, &o);
    unsigned char *copy = tl_arena_copy(arena, objects[1].data, objects[1].size, 16);
    o.parts.code.items[1].data = copy;
    ((Elf64_Ehdr *)copy)->e_machine = EM_AARCH64;
    expect_refused(&o.parts, TL_UNSUPPORTED, "for x86-64");
    memcpy(copy, "text", 4);
    expect_refused(&o.parts, TL_BAD_ARGUMENT, "no relocatable 64-bit ELF");
    o.parts.code.items[1].size = 10;
    expect_refused(&o.parts, TL_BAD_ARGUMENT, "too small");
}

/* Whatever byte of an object is another: an answer, and no access outside of it (the sanitized build sees to that). */
static void damaged_objects_get_an_answer(void **state)
{
    (void)state;
    need_x86();
    for (size_t at = 0; at < objects[0].size; at += 7) {
        object o;
        make_object(TL_OBJECT_BULK, &o);
        unsigned char *copy = malloc(objects[0].size);
        memcpy(copy, objects[0].data, objects[0].size);
        copy[at] ^= 0xff;
        o.parts.code.items[0].data = copy;
        (void)write_parts(&o.parts, NULL);
        free(copy);
    }
}

static void several_kernels_are_one_text(void **state)
{
    (void)state;
    const tl_codegen_part parts[KERNELS] = { { programs[0], false }, { programs[1], false } };
    static const struct {
        tl_emit what;
        const char *file, *first, *second;
    } forms[] = {
        { TL_EMIT_ASSEMBLY, "a.s", "twice_0:", "root_0:" },
        { TL_EMIT_LLVM, "a.ll", "void @twice_0(", "void @root_0(" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        tl_text text = { 0 };
        tl_diag diag = { 0 };
        char path[80];
        if (tl_codegen_emit("both", parts, KERNELS, &target, forms[i].what, &text, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_non_null(strstr(text.data, forms[i].first));
        assert_non_null(strstr(text.data, forms[i].second));
        assert_non_null(strstr(text.data, "\"both\"")); /* the name of the source */
        snprintf(path, sizeof path, "%s/%s", folder, forms[i].file);
        assert_int_equal(tl_file_write(path, text.data, text.size, NULL), TL_OK);
        tl_text_free(&text);
    }
    must_run("${CC:-cc} -c -o %s/s.o %s/a.s");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linker_takes_it),
        cmocka_unit_test(refusals),
        cmocka_unit_test(damaged_objects_get_an_answer),
        cmocka_unit_test(several_kernels_are_one_text),
    };
    return cmocka_run_group_tests_name("write_object", tests, start, finish);
}
