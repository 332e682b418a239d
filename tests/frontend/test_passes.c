/* tests/frontend/test_passes.c: every file of tests/golden/graph holds a graph, what is done to it, and the graph (or the
 * sentence that refuses it) expected:
 *
 *     # what is shown
 *     do recognize_gelu          passes by name, `prepare`, `scale_weights`, `pad_channels TARGET`, `layouts TARGET` or
 *                                `partition TARGET`
 *     graph
 *       ...
 *     expect
 *       ...
 *
 * GOLDEN_UPDATE=1 rewrites the last section; the reviewer reads the diff. */
#include "tests/frontend/lower_helpers.h"
#include <glob.h>
#include <stdlib.h>
#include "runtime/base/file.h"

/* The indented lines after the line `title`, without their indentation. */
static const char *section(tl_arena *arena, const char *text, const char *title)
{
    const char *at = strstr(text, title);
    tl_text out = { 0 };
    if (at == NULL)
        fail_msg("the section%s is missing", title);
    at = strchr(at + 1, '\n') + 1;
    while (*at == ' ') {
        size_t length = strcspn(at, "\n");
        tl_text_add_bytes(&out, at + 2, length - 2);
        tl_text_add(&out, "\n");
        at += length + (at[length] == '\n');
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return copy;
}

static void indent_lines(const char *text, tl_text *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        tl_text_format(out, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static tl_status print_partition(tl_arena *arena, tl_graph *g, tl_text *out, tl_diag *diag)
{
    tl_partition partition;
    TL_TRY(tl_partition_graph(arena, g, &partition, diag));
    for (int i = 0; i < partition.count; i++) {
        tl_program *program;
        TL_TRY(tl_kernel_program(arena, &partition.kernels[i], NULL, &program, diag));
        TL_TRY(tl_program_verify(program, diag));
        tl_program_print(program, out);
    }
    return TL_OK;
}

static tl_status run_step(tl_arena *arena, tl_graph *g, const char *step, const char *target,
                          tl_text *out, tl_diag *diag)
{
    tl_target machine;
    bool partition = strcmp(step, "partition") == 0;
    if (strncmp(step, "prepare", 7) == 0)
        return tl_graph_prepare(g,
                                strcmp(step, "prepare_strict") == 0 ? TL_NUMERICS_STRICT
                                : strcmp(step, "prepare_tf32") == 0 ? TL_NUMERICS_TF32
                                                                    : TL_NUMERICS_RELAXED,
                                diag);
    if (target[0] == '\0')
        return tl_graph_run_pass(g, step, NULL, diag);
    TL_TRY(tl_target_named(target, &machine, diag));
    if (strcmp(step, "pad_channels") == 0)
        return tl_graph_run_pass(g, step, &machine, diag);
    TL_TRY(tl_assign_layouts(g, &machine, diag));
    return partition ? print_partition(arena, g, out, diag) : TL_OK;
}

static void run_golden(const char *path)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text file = { 0 }, out = { 0 }, indented = { 0 };
    tl_diag diag = { { 0 } };
    assert_int_equal(tl_file_read(path, &file, &diag), TL_OK);
    const char *text = tl_text_get(&file), *steps = strstr(text, "\ndo ");
    if (steps == NULL)
        fail_msg("%s does not say what to do", path);
    char *words = tl_arena_strndup(arena, steps + 4, strcspn(steps + 4, "\n"));
    tl_graph *g = parse_graph(arena, section(arena, text, "\ngraph\n"));

    tl_status status = strncmp(words, "prepare", 7) == 0 ? TL_OK : tl_infer_shapes(g, &diag);
    char *rest = words;
    for (char *word = strtok_r(rest, " ", &rest); word != NULL && status == TL_OK;
         word = strtok_r(NULL, " ", &rest)) {
        bool has_target = strcmp(word, "layouts") == 0 || strcmp(word, "partition") == 0 ||
                          strcmp(word, "pad_channels") == 0;
        const char *target = has_target ? strtok_r(NULL, " ", &rest) : "";
        status = run_step(arena, g, word, target, &out, &diag);
    }
    if (status != TL_OK) {
        tl_text_free(&out);
        tl_text_add(&out, diag.text);
        tl_text_add(&out, "\n");
    } else if (tl_text_get(&out)[0] == '\0') {
        tl_graph_print(g, &out);
    }
    indent_lines(tl_text_get(&out), &indented);
    const char *head = strstr(text, "\nexpect\n");
    if (head == NULL)
        fail_msg("%s has no section expect", path);
    tl_text whole = { 0 };
    tl_text_format(&whole, "%.*s\nexpect\n%s", (int)(head - text), text, tl_text_get(&indented));
    if (getenv("GOLDEN_UPDATE") != NULL)
        assert_int_equal(tl_file_write(path, tl_text_get(&whole), strlen(tl_text_get(&whole)),
                                       &diag),
                         TL_OK);
    else if (strcmp(tl_text_get(&whole), text) != 0)
        fail_msg("%s: got\n%s", path, tl_text_get(&indented));
    tl_text_free(&file);
    tl_text_free(&out);
    tl_text_free(&indented);
    tl_text_free(&whole);
    tl_arena_destroy(arena);
}

static void goldens(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("tests/golden/graph/*.txt", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_golden(found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(goldens) };
    return cmocka_run_group_tests_name("graph passes", tests, NULL, NULL);
}
