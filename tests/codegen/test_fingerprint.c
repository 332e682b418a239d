/* tests/codegen/test_fingerprint.c: codegen/fingerprint.sh, on a copy of the tree's sources: what can change code changes the
 * fingerprint, comments do not; and it is the one that was built into this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"

static char folder[] = "/tmp/tilth-fingerprint-XXXXXX";

/* What the fingerprint is after the line was run in a new copy of the sources. */
static void fingerprint_after(const char *line, char out[64])
{
    char command[1024];
    snprintf(
        command, sizeof command,
        "D=%s; rm -rf $D/t && mkdir $D/t && cp -r --parents codegen ir runtime $D/t && cd $D/t && "
        "{ %s\n} && codegen/fingerprint.sh ${CC:-gcc}",
        folder, line);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    if (fgets(out, 64, pipe) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (pclose(pipe) != 0 || strlen(out) != 32)
        fail_msg("%s: no fingerprint, but '%s'", line, out);
}

static void what_changes_it(void **state)
{
    (void)state;
    static const struct {
        const char *edit;
        bool changes;
    } cases[] = {
        { ":", false },
        { "sed -i '1i /* a comment,\\n\\n\\nof several\\n\\n\\n\\n\\n\\n\\n\\n\\nlines */' "
          "codegen/lower/kernel_plan.c",
          false },
        { "echo '// a comment' >>ir/expr/expr.h", false },
        { "echo '  /* a comment */' >>ir/expr/expr_kinds.def", false },
        { "sed -i 's|;$|; /* a comment */|' codegen/emit/emit_llvm.c", false },
        { "touch codegen/lower/kernel_plan.c; echo text >>codegen/README.md", false },
        { "echo 'int x;' >>runtime/tensor/tensor.c", false },
        { "echo 'int x;' >>codegen/lower/kernel_plan.c", true },
        { "echo 'int x;' >>ir/expr/expr.h", true },
        { "echo '#define X \"/* a string */\"' >>runtime/base/float_mode.h", true },
        { "echo '#define X' >>runtime/abi/kernel_abi.h", true },
        { "echo 'ROW(x)' >>ir/program/target.def", true },
        { "sed -i 's/0x1/0x2/' codegen/math/math_erf.c", true },
        { "echo 'int x;' >codegen/new.c", true },
        { "mkdir codegen/new && echo 'int x;' >codegen/new/new.c", true },
        { "rm codegen/lower/kernel_plan.c", true },
        { "sed -i '$d' codegen/lower/statement_questions.c && sed -i '1i }' "
          "codegen/lower/widen_allocs.c",
          true },
    };
    char before[64], after[64];
    fingerprint_after(":", before);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fingerprint_after(cases[i].edit, after);
        if ((strcmp(before, after) != 0) != cases[i].changes)
            fail_msg("%s: the fingerprint %s", cases[i].edit,
                     cases[i].changes ? "stays" : "is another");
    }
}

static void it_is_built_in(void **state)
{
    (void)state;
    char now[64];
    fingerprint_after(":", now);
    assert_string_equal(now, tl_codegen_fingerprint());
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_it),
        cmocka_unit_test(it_is_built_in),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
