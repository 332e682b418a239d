/* tests/schedule/test_golden.c: every file of tests/golden/schedule holds a kernel, a trace, and the program (or the
 * refusal) expected:
 *
 *     # what is shown
 *     target x86-64-v4          (optional)
 *     kernel
 *       ...
 *     trace
 *       ...
 *     expect
 *       ...
 *
 * GOLDEN_UPDATE=1 rewrites the last section; the reviewer reads the diff. Of every trace that applies it is also
 * checked that what was recorded prints, parses and prints the same, and replays to the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/file.h"
#include "schedule/trace.h"
#include "tests/support/golden_group.h"

typedef struct {
    const char *head; /* everything before "expect" */
    const char *kernel, *trace, *expect;
    tl_target target;
    bool has_target;
} golden;

/* The lines after `title` that are indented, without their indentation. */
static const char *section(tl_arena *arena, const char *text, const char *title)
{
    const char *at = strstr(text, title);
    tl_text out = { 0 };
    if (at == NULL)
        fail_msg("the section %s is missing", title);
    at = strchr(at + 1, '\n');
    at = at ? at + 1 : "";
    while (*at == ' ' || *at == '\n') {
        const char *end = strchr(at, '\n');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        size_t skip = length < 2 ? length : 2;
        tl_text_add_bytes(&out, at + skip, length - skip);
        tl_text_add(&out, "\n");
        at = end ? end + 1 : at + length;
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return copy;
}

static golden read_golden(tl_arena *arena, const char *path)
{
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    if (tl_file_read(path, &file, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    char *text = tl_arena_format(arena, "\n%s", tl_text_get(&file));
    tl_text_free(&file);
    golden g = { 0 };
    g.kernel = section(arena, text, "\nkernel\n");
    g.trace = section(arena, text, "\ntrace\n");
    g.expect = section(arena, text, "\nexpect\n");
    const char *target = strstr(text, "\ntarget ");
    if (target) {
        char name[32] = { 0 };
        sscanf(target, "\ntarget %31s", name);
        if (tl_target_named(name, &g.target, &diag) != TL_OK)
            fail_msg("%s: %s", path, diag.text);
        g.has_target = true;
    }
    char *expect = strstr(text, "\nexpect\n");
    g.head = tl_arena_strndup(arena, text + 1, (size_t)(expect - text));
    return g;
}

static void write_golden(const char *path, const golden *g, const char *got)
{
    tl_text out = { 0 };
    tl_text_format(&out, "%sexpect\n", g->head);
    while (*got) {
        size_t length = strcspn(got, "\n");
        tl_text_format(&out, "%s%.*s\n", length ? "  " : "", (int)length, got);
        got += length + (got[length] == '\n');
    }
    tl_diag diag = { 0 };
    if (tl_file_write(path, out.data, out.size, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&out);
}

/* What was recorded prints, parses, prints the same, and replays to the same program. */
static void check_replay(tl_arena *arena, const golden *g, const tl_program *program,
                         tl_schedule *s)
{
    const tl_target *target = g->has_target ? &g->target : NULL;
    tl_diag diag = { 0 };
    tl_trace *again;
    const char *text = tl_trace_text(arena, tl_schedule_trace(s));
    if (tl_trace_parse(arena, text, "recorded", target, &again, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    assert_string_equal(tl_trace_text(arena, again), text);

    tl_schedule *replayed = tl_schedule_create(arena, program, target, true);
    if (tl_trace_apply(again, replayed, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    const char *want = tl_program_text(arena, tl_schedule_program(s));
    assert_string_equal(tl_program_text(arena, tl_schedule_program(replayed)), want);
    assert_true(tl_program_hash(tl_schedule_program(replayed)) ==
                tl_program_hash(tl_schedule_program(s)));

    tl_program *reread;
    if (tl_program_parse(arena, want, "printed", &reread, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, want);
    assert_string_equal(tl_program_text(arena, reread), want);
}

static const char *run_trace(tl_arena *arena, const char *path, const golden *g)
{
    const tl_target *target = g->has_target ? &g->target : NULL;
    tl_diag diag = { 0 };
    tl_program *program;
    tl_trace *trace;
    if (tl_program_parse(arena, g->kernel, path, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s: %s", path, diag.text);
    if (tl_trace_parse(arena, g->trace, "trace", target, &trace, &diag) != TL_OK)
        return tl_arena_format(arena, "%s\n", diag.text);
    tl_schedule *s = tl_schedule_create(arena, program, target, true);
    if (tl_trace_apply(trace, s, &diag) != TL_OK)
        return tl_arena_format(arena, "%s\n", diag.text);
    check_replay(arena, g, program, s);
    return tl_program_text(arena, tl_schedule_program(s));
}

static void run_golden(void **state)
{
    const char *path = *state;
    tl_arena *arena = tl_arena_create(0);
    golden g = read_golden(arena, path);
    const char *got = run_trace(arena, path, &g);
    if (getenv("GOLDEN_UPDATE"))
        write_golden(path, &g, got);
    else
        assert_string_equal(got, g.expect);
    tl_arena_destroy(arena);
}

int main(void)
{
    return run_golden_group("schedule golden", "tests/golden/schedule/*.txt", run_golden);
}
