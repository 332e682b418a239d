/* tests/codegen/test_emission.c: the code of a fixed set of programs is the one that tests/golden/emission/digests.txt has for
 * TL_CODEGEN_REVISION: whoever changes what is emitted raises the revision, so that times of the code of before do not count
 * for that of now; a comment, or a change that emits the same, makes no record stale.
 *
 * The programs are those of models/kernels under the default schedule and the one written by hand, of
 * tests/golden/sketch under the default one, of tests/golden/proof as they stand, and all functions of
 * ir/expr/functions.def. A line is a program, how it is scheduled, a target, the digest of the scheduled program and
 * that of its objects. Where the program is the one of the file, its objects have to be, too; where it is another
 * (schedule/ changed), nothing is said about emission. Objects do not depend on the machine, but on LLVM, whose
 * version the file names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include "codegen/codegen.h"
#include "runtime/base/map.h"
#include "tests/codegen/kernel_files.h"
#include "tests/support/proof.h"

#define DIGESTS "tests/golden/emission/digests.txt"
static const char *const isas[] = { "x86-64-v2", "x86-64-v3", "x86-64-v4" };

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

static void add_line(tl_text *out, const char *name, const char *how, const char *isa,
                     const tl_program *scheduled, const tl_target *target)
{
    tl_text text = { 0 };
    tl_digest digest;
    char program[33], objects[33];
    tl_program_print(scheduled, &text);
    tl_digest_start(&digest);
    tl_digest_add(&digest, text.data, text.size);
    tl_digest_text(&digest, program);
    tl_text_free(&text);

    tl_digest_start(&digest);
    for (int prepare = 0; prepare <= (scheduled->prepare != NULL); prepare++) {
        tl_arena *arena = tl_arena_create(0);
        tl_text object = { 0 };
        tl_descriptor descriptor;
        tl_diag diag = { 0 };
        must(tl_codegen_compile(arena, scheduled, prepare, target, TL_EMIT_OBJECT, &object,
                                &descriptor, &diag),
             &diag, name);
        tl_digest_add(&digest, object.data, object.size);
        tl_text_free(&object);
        tl_arena_destroy(arena);
    }
    tl_digest_text(&digest, objects);
    tl_text_format(out, "%s %s %s %s %s\n", name, how, isa, program, objects);
}

typedef enum { AS_WRITTEN, STRICT, DEFAULT, BY_HAND } scheduling;
static const char *const scheduling_names[] = { "as_written", "strict", "default", "by_hand" };

/* The program (text of the file `name`) scheduled in that way for every target. */
static void add_program(tl_text *out, const char *name, const char *text, scheduling how)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *naive;
        tl_target target;
        must(tl_program_parse(arena, text, name, &naive, &diag), &diag, name);
        must(tl_program_verify(naive, &diag), &diag, name);
        must(tl_target_named(isas[i], &target, &diag), &diag, isas[i]);
        naive->strict = how == STRICT;
        const tl_program *scheduled = naive;
        if (how == DEFAULT || how == BY_HAND) {
            tl_schedule *s;
            must(kernel_schedule(arena, name, naive, &target, how == BY_HAND, &s, &diag), &diag,
                 name);
            scheduled = tl_schedule_program(s);
        }
        add_line(out, name, scheduling_names[how], isas[i], scheduled, &target);
        tl_arena_destroy(arena);
    }
}

static void add_file(tl_text *out, const char *path, scheduling how)
{
    tl_text text = { 0 };
    tl_diag diag = { 0 };
    char name[64];
    must(tl_file_read(path, &text, &diag), &diag, path);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(strrchr(path, '/')) - 4),
             strrchr(path, '/') + 1);
    add_program(out, name, tl_text_get(&text), how);
    tl_text_free(&text);
}

static void add_files(tl_text *out, const char *pattern, scheduling how)
{
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_file(out, found.gl_pathv[i], how);
    globfree(&found);
}

/* One program that calls every function that takes numbers of the dtype, in lanes and a tail. */
static void add_functions(tl_text *out, tl_dtype dtype, scheduling how)
{
    const char *type = tl_dtype_infos[dtype].text;
    tl_operands others = tl_dtype_is_float(dtype) ? TL_OPERANDS_INT : TL_OPERANDS_FLOAT;
    tl_text text = { 0 };
    char name[32];
    tl_text_format(&text, "kernel k(A: %s[37], B: %s[37], out C: %s[%d, 37])\n", type, type, type,
                   TL_FUNCTION_COUNT);
    for (int f = 0; f < TL_FUNCTION_COUNT; f++)
        if (tl_function_infos[f].operands != others)
            tl_text_format(&text,
                           "  for i in 0..37 vectorized\n    block b%d\n      spatial i\n"
                           "      C[%d, i] = %s(%s(A[i]%s))\n",
                           f, f, type, tl_function_infos[f].text,
                           tl_function_infos[f].arity == 2 ? ", B[i]" : "");
    snprintf(name, sizeof name, "functions_%s", type);
    add_program(out, name, tl_text_get(&text), how);
    tl_text_free(&text);
}

static void print_digests(tl_text *out)
{
    tl_text_format(out, "revision %d\nllvm %s\n", TL_CODEGEN_REVISION, tl_codegen_llvm_version());
    add_files(out, "models/kernels/*.tk", DEFAULT);
    add_files(out, "models/kernels/*.tk", BY_HAND);
    add_files(out, "tests/golden/sketch/*.tk", DEFAULT);
    for (int i = 0; i < proof_case_count; i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/golden/proof/%s.tk", proof_cases[i].name);
        if (!proof_cases[i].is_gpu)
            add_file(out, path, AS_WRITTEN);
    }
    static const tl_dtype dtypes[] = { TL_F32, TL_F64, TL_F16, TL_I32, TL_U8 };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        add_functions(out, dtypes[i], AS_WRITTEN);
    add_functions(out, TL_F32, STRICT);
}

/* The rest of the line of `text` that begins so, copied into `out`; whether there is one. */
static bool find_line(const char *text, const char *begin, char out[128])
{
    size_t size = strlen(begin);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, begin, size) == 0) {
            snprintf(out, 128, "%.*s", (int)((end ? end : line + strlen(line)) - line - (int)size),
                     line + size);
            return true;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

/* The first line of `now` whose kernel and program `before` has with other objects, as a text; NULL: there is none. */
static const char *find_changed(const char *before, const char *now, char out[256])
{
    for (const char *line = now; *line != '\0'; line = strchr(line, '\n') + 1) {
        char begin[256], objects[128];
        const char *end = strchr(line, '\n');
        if (end - line < 33 || end[-33] != ' ')
            continue; /* not of a kernel */
        snprintf(begin, sizeof begin, "%.*s", (int)(end - 32 - line), line);
        if (find_line(before, begin, objects) && strncmp(objects, end - 32, 32) != 0) {
            snprintf(out, 256, "%.*s", (int)(end - 66 - line), line);
            return out;
        }
    }
    return NULL;
}

/* Why the revision has to be raised: that of the file stands, but its code does not. */
static bool was_not_raised(const char *before, const char *now, char changed[256])
{
    char old[128] = "", new[128] = "";
    return find_line(before, "revision ", old) && find_line(now, "revision ", new) &&
           strcmp(old, new) == 0 && find_changed(before, now, changed) != NULL;
}

static void changed_code_has_another_revision(void **state)
{
    (void)state;
    tl_text before = { 0 }, now = { 0 };
    char llvm[128] = "", changed[256];
    bool update = getenv("GOLDEN_UPDATE") != NULL;
    tl_status status = tl_file_read(DIGESTS, &before, NULL);
    bool same_llvm = find_line(tl_text_get(&before), "llvm ", llvm) &&
                     strcmp(llvm, tl_codegen_llvm_version()) == 0;
    if (status == TL_OK && !same_llvm && !update) {
        print_message("skipped: the digests are those of LLVM %s, this is %s\n", llvm,
                      tl_codegen_llvm_version());
        tl_text_free(&before);
        skip();
    }
    print_digests(&now);
    if (same_llvm && was_not_raised(tl_text_get(&before), tl_text_get(&now), changed))
        fail_msg("%s: the same program gives other code than before: raise TL_CODEGEN_REVISION "
                 "(codegen/codegen.h), then make golden",
                 changed);
    if (update)
        assert_int_equal(tl_file_write(DIGESTS, now.data, now.size, NULL), TL_OK);
    else if (strcmp(tl_text_get(&before), tl_text_get(&now)) != 0)
        fail_msg("%s is of another revision, or of other programs: make golden", DIGESTS);
    tl_text_free(&before);
    tl_text_free(&now);
}

/* What the test above goes by. */
static void a_forgotten_revision_is_seen(void **state)
{
    (void)state;
#define P "00000000000000000000000000000001"
#define Q "00000000000000000000000000000002"
    static const struct {
        const char *before, *now, *changed;
    } cases[] = {
        { "revision 9\nk x " P " " P "\n", "revision 9\nk x " P " " P "\n", NULL },
        { "revision 9\nk x " P " " P "\n", "revision 9\nk x " P " " Q "\n", "k x" },
        { "revision 9\nk x " P " " P "\n", "revision 10\nk x " P " " Q "\n", NULL },
        { "revision 9\nk x " P " " P "\n", "revision 9\nk x " Q " " Q "\n", NULL },
        { "revision 9\nk x " P " " P "\n", "revision 9\nk y " P " " Q "\n", NULL },
        { "revision 9\nk x " P " " P "\nk y " P " " P "\n",
          "revision 9\nk x " P " " P "\nk y " P " " Q "\n", "k y" },
        { "", "revision 9\nk x " P " " P "\n", NULL },
    };
#undef P
#undef Q
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char changed[256];
        bool found = was_not_raised(cases[i].before, cases[i].now, changed);
        if (found != (cases[i].changed != NULL))
            fail_msg("case %zu: %s", i, found ? changed : "not seen");
        if (found)
            assert_string_equal(changed, cases[i].changed);
    }
}

int main(void)
{
    tl_codegen_own_process();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forgotten_revision_is_seen),
        cmocka_unit_test(changed_code_has_another_revision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
