/* tests/frontend/test_hostile.c: graphs whose numbers, operators and operands were changed at random go through everything
 * after reading and end in a status, never in a crash; what is accepted verifies. TL_SEED=N repeats a run,
 * TL_HOSTILE=N makes N graphs of each text. */
#include "tests/frontend/lower_helpers.h"
#include <glob.h>
#include <stdlib.h>
#include "runtime/base/file.h"

static const char *const numbers[] = { "0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "-2",
                                       "5",
                                       "7",
                                       "64",
                                       "65537",
                                       "2147483648",
                                       "9223372036854775807",
                                       "-9223372036854775808" };

static const char *any_operator(tl_random *r)
{
    return tl_op_infos[tl_random_below(r, TL_OP_COUNT)].text;
}

/* The graph's lines without the indentation, one or two places changed. */
static char *mutated(tl_arena *arena, const char *text, tl_random *r)
{
    char *copy = tl_arena_strdup(arena, text);
    int changes = 1 + (int)tl_random_below(r, 2);
    for (int c = 0; c < changes; c++) {
        size_t size = strlen(copy), at = (size_t)tl_random_below(r, (int64_t)size), length;
        while (at < size && strchr("0123456789(", copy[at]) == NULL)
            at++;
        if (at == size)
            continue;
        const char *with = numbers[tl_random_below(r, (int64_t)(sizeof numbers / sizeof *numbers))];
        if (copy[at] == '(') { /* the operator before it */
            length = 0;
            while (at > 0 && copy[at - 1] != ' ') {
                at--;
                length++;
            }
            with = any_operator(r);
        } else {
            length = strspn(copy + at, "0123456789");
        }
        copy = tl_arena_format(arena, "%.*s%s%s", (int)at, copy, with, copy + at + length);
    }
    return copy;
}

/* Large but allowed sizes would take memory that the test has no reason to take: those graphs end here. */
static bool is_small(const tl_graph *g)
{
    for (int i = 0; i < g->value_count; i++)
        if (tl_shape_elements(&g->values[i]->shape) > 1 << 22)
            return false;
    return true;
}

static void go_through(tl_arena *arena, const char *text, const char *target, uint64_t seed)
{
    tl_diag diag = { { 0 } };
    tl_graph *g;
    tl_target machine;
    tl_partition partition;
    if (tl_graph_parse(arena, text, "hostile", &g, &diag) != TL_OK)
        return;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i]->data != NULL && !is_small(g))
            return;
    tl_status status = tl_infer_shapes(g, &diag);
    if (status == TL_OK && !is_small(g))
        return;
    if (status == TL_OK)
        status = tl_graph_prepare(g, TL_NUMERICS_RELAXED, &diag);
    if (status == TL_OK)
        status = tl_target_named(target, &machine, &diag);
    if (status == TL_OK)
        status = tl_assign_layouts(g, &machine, &diag);
    if (status == TL_OK)
        status = tl_partition_graph(arena, g, &partition, &diag);
    for (int i = 0; status == TL_OK && i < partition.count; i++) {
        tl_program *program;
        status = tl_kernel_program(arena, &partition.kernels[i], NULL, &program, &diag);
        if (status == TL_OK)
            status = tl_program_verify(program, &diag);
    }
    if (status == TL_INTERNAL || status == TL_BAD_IR || (status != TL_OK && diag.text[0] == '\0'))
        fail_msg("TL_SEED=%llu: %s: %s\n%s", (unsigned long long)seed, tl_status_text(status),
                 diag.text, text);
}

static const char *graph_section(tl_arena *arena, const char *path)
{
    tl_text file = { 0 };
    assert_int_equal(tl_file_read(path, &file, NULL), TL_OK);
    const char *start = strstr(tl_text_get(&file), "\ngraph\n");
    const char *end = strstr(tl_text_get(&file), "\nexpect");
    assert_true(start != NULL && end != NULL);
    char *text = tl_arena_strndup(arena, start + 7, (size_t)(end - start - 6));
    size_t to = 0;
    for (size_t at = 0; text[at] != '\0'; at++) /* indentation off */
        if (!(text[at] == ' ' && (at == 0 || text[at - 1] == '\n' ||
                                  (text[at - 1] == ' ' && (at == 1 || text[at - 2] == '\n')))))
            text[to++] = text[at];
    text[to] = '\0';
    tl_text_free(&file);
    return text;
}

static void changed_graphs(void **state)
{
    (void)state;
    const char *given = getenv("TL_SEED"), *wanted = getenv("TL_HOSTILE");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t count = given != NULL ? 1 : wanted != NULL ? strtoull(wanted, NULL, 10) : 60;
    glob_t found;
    assert_int_equal(glob("tests/golden/graph/*.txt", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (uint64_t seed = first; seed < first + count; seed++) {
            tl_arena *arena = tl_arena_create(0);
            tl_random r = tl_random_make(seed);
            const char *text = mutated(arena, graph_section(arena, found.gl_pathv[i]), &r);
            go_through(arena, text, seed % 2 == 0 ? "x86-64" : "x86-64-v3", seed);
            tl_arena_destroy(arena);
        }
    globfree(&found);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(changed_graphs) };
    return cmocka_run_group_tests_name("hostile graphs", tests, NULL, NULL);
}
