/* tests/codegen/test_lower_golden.c: every file of tests/golden/lower holds a scheduled kernel and what each pass of lowering
 * makes of what the one before it left:
 *
 *     # what is shown
 *     target x86-64-v3
 *     kernel
 *       ...
 *     after split_inits
 *       (unchanged)
 *     after lower_blocks
 *       ...
 *
 * GOLDEN_UPDATE=1 rewrites all after the kernel; the reviewer reads the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/file.h"
#include "tests/support/golden_group.h"

static void add_indented(tl_text *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        tl_text_format(out, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

/* The lines after `title` without their indentation of two; false: there is no such title. */
static bool take_section(const char *file, const char *title, tl_text *out)
{
    const char *at = strstr(file, title);
    if (at == NULL)
        return false;
    for (at += strlen(title); strncmp(at, "  ", 2) == 0;) {
        size_t length = strcspn(at, "\n");
        tl_text_format(out, "%.*s\n", (int)length - 2, at + 2);
        at += length + (at[length] == '\n');
    }
    return true;
}

typedef struct {
    tl_text all;    /* the sections so far */
    tl_text latest; /* what the pass before left */
} passes;

static void add_pass(void *context, int number, const char *pass, const char *text)
{
    passes *p = context;
    (void)number;
    bool is_changed = strcmp(text, tl_text_get(&p->latest)) != 0;
    tl_text_format(&p->all, "after %s\n", pass);
    add_indented(&p->all, is_changed ? text : "(unchanged)\n");
    p->latest.size = 0;
    tl_text_add(&p->latest, text);
}

static void check_golden(void **state)
{
    const char *path = *state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_text file = { 0 }, kernel = { 0 };
    passes p = { 0 };
    char name[32] = "";
    tl_target target;
    tl_program *program;
    if (tl_file_read(path, &file, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *text = tl_text_get(&file), *title = strstr(text, "\ntarget ");
    if (title == NULL || sscanf(title, "\ntarget %31s", name) != 1 ||
        !take_section(text, "\nkernel\n", &kernel))
        fail_msg("%s: a target and a kernel are expected", path);
    if (tl_target_named(name, &target, &diag) != TL_OK ||
        tl_program_parse(arena, tl_text_get(&kernel), path, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);

    const char *head_end = strstr(text, "\nafter ");
    size_t head = head_end == NULL ? file.size : (size_t)(head_end + 1 - text);
    tl_text_add_bytes(&p.all, text, head);
    tl_text_add(&p.latest, tl_program_text(arena, program));
    tl_codegen_observer observer = { add_pass, &p };
    if (tl_codegen_observe(program, false, &target, &observer, &diag) != TL_OK)
        fail_msg("%s: %s", path, diag.text);
    if (getenv("GOLDEN_UPDATE") == NULL)
        assert_string_equal(tl_text_get(&p.all), text);
    else if (tl_file_write(path, p.all.data, p.all.size, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&p.all);
    tl_text_free(&p.latest);
    tl_text_free(&kernel);
    tl_text_free(&file);
    tl_arena_destroy(arena);
}

int main(void)
{
    return run_golden_group("lowering golden", "tests/golden/lower/*.txt", check_golden);
}
