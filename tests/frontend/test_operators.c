/* tests/frontend/test_operators.c: what every row of frontend/operators.def must satisfy, and that a row that does not is found:
 * what a row says of zeros and of reads is compared with the programs that it makes. */
#include "tests/frontend/lower_helpers.h"
#include <stdlib.h>
#include <sys/stat.h>
#include "frontend/operators.h"
#include "ir/program/program.h"

static int words_in(const char *words)
{
    size_t size;
    int count = 0;
    while (tl_operator_word(words, count, &size), size > 0)
        count++;
    return count;
}

/* Every word of `binds` names an attribute that is a list of integers, for an optional input. */
static void check_binds(tl_op op)
{
    const char *text = tl_op_infos[op].text, *binds = tl_operators[op].binds;
    int count = words_in(binds);
    assert_true(count <= tl_op_infos[op].max_inputs || tl_op_infos[op].max_inputs < 0);
    for (int i = 0; i < count; i++) {
        size_t size;
        tl_attr_type type;
        bool is_dtype;
        char name[64];
        const char *word = tl_operator_word(binds, i, &size);
        snprintf(name, sizeof name, "%.*s", (int)size, word);
        if (name[0] != '-' && name[0] != '=' &&
            (i < tl_op_infos[op].min_inputs || !tl_op_attribute_type(op, name, &type, &is_dtype) ||
             type != TL_ATTR_INTS))
            fail_msg("%s: input %d cannot become '%s'", text, i, name);
    }
}

static bool has_dtype(tl_op op, const char *name)
{
    tl_attr_type type;
    bool is_dtype = false;
    return tl_op_attribute_type(op, name, &type, &is_dtype) && is_dtype;
}

static void rows_agree_with_themselves(void **state)
{
    (void)state;
    for (int i = 0; i < TL_OP_COUNT; i++) {
        tl_op op = (tl_op)i;
        const tl_operator *row = &tl_operators[op];
        bool vanishes = row->kind == TL_KIND_VANISHING || row->kind == TL_KIND_CONTROL;
        bool injective = row->kind == TL_KIND_ELEMENTWISE || row->kind == TL_KIND_LAYOUT;
        const struct {
            bool holds;
            const char *what;
        } rules[] = {
            { row->direct.op == op, "another operator's lowering" },
            { vanishes == (row->direct.value == tl_value_none), "a value just where it stays" },
            { (vanishes || injective) == (row->direct.stages == tl_stages_none),
              "stages just where it has loops of its own" },
            { (row->direct.value == tl_value_elementwise) ==
                  (row->expression != tl_expression_none),
              "an expression just where operands' elements make the value" },
            { row->direct.value != tl_value_elementwise || row->kind == TL_KIND_ELEMENTWISE,
              "elements of operands in an operator that is not elementwise" },
            { row->kind != TL_KIND_ELEMENTWISE || row->block == tl_block_shared,
              "elementwise, and its block is not its operands'" },
            { row->kind != TL_KIND_REDUCTION || (row->takes & TL_TAKES_CHAIN) != 0,
              "reads each element once, and takes no chain" },
            { row->kind != TL_KIND_POOL || row->takes == TL_TAKES_MEMORY,
              "reads elements again and again, and takes what is not in memory" },
            { row->reads >= 1 && (injective || row->reads == 1), "a count of reads" },
            { words_in(row->roles) >= 1 || vanishes, "a role" },
            { row->dtype != TL_GIVES_TO || has_dtype(op, "to"), "a dtype in `to`" },
            { row->dtype != TL_GIVES_DTYPE || has_dtype(op, "dtype"), "a dtype in `dtype`" },
            { row->dtype != TL_GIVES_SECOND || tl_op_infos[op].min_inputs >= 2, "a second input" },
            { row->fold == TL_FOLDS_PROGRAM || row->fold == TL_FOLDS_NEVER ||
                  tl_op_infos[op].outputs == 1 || op == TL_OP_SPLIT, /* into one part */
              "one output to fold" },
        };
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
            if (!rules[r].holds)
                fail_msg("%s: %s", tl_op_infos[op].text, rules[r].what);
        check_binds(op);
    }
}

/* A graph of one operator, whose program is asked. */
static const struct {
    tl_op op;
    const char *lowering, *graph;
} cases[] = {
#define CASE(op, lowering, domain, graph) { TL_OP_##op, #lowering, graph },
#include "tests/driver/error_bound_cases.def"
#undef CASE
};

/* The naive program of a graph of one elementwise node; NULL: it is another. */
static tl_program *program_of(tl_arena *arena, const char *text)
{
    tl_diag diag = { { 0 } };
    tl_program *program;
    tl_partition partition;
    tl_graph *g =
        prepared_graph(arena, tl_arena_format(arena, "graph g\n%soutput y\n", text), "x86-64-v3");
    if (g->node_count != 1 || !tl_is_elementwise(g->nodes[0]))
        return NULL;
    if (tl_partition_graph(arena, g, &partition, &diag) != TL_OK ||
        tl_kernel_program(arena, &partition.kernels[0], "direct", &program, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    return program;
}

/* Of an operator that has no case of its own: its operands are floats. */
static tl_program *program_of_floats(tl_arena *arena, tl_op op)
{
    const char *inputs = "", *operands = "";
    for (int i = 0; i < tl_op_infos[op].min_inputs; i++) {
        inputs = tl_arena_format(arena, "%sinput x%d: f32[5]\n", inputs, i);
        operands = tl_arena_format(arena, "%s%sx%d", operands, i > 0 ? ", " : "", i);
    }
    return program_of(arena, tl_arena_format(arena, "%sy: ?[...] = %s(%s)\n", inputs,
                                             tl_op_infos[op].text, operands));
}

static bool is_zero(tl_dtype dtype, tl_number n)
{
    return tl_dtype_is_float(dtype) ? n.f == 0 : n.i == 0;
}

/* What the program makes of zeros is what the row says. */
static void check_zeros(tl_arena *arena, tl_op op, const tl_program *program)
{
    tl_diag diag = { { 0 } };
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, program->param_count);
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        size_t size = (size_t)tl_buffer_max_bytes(b);
        arguments[p] = (tl_argument){ b, tl_arena_alloc(arena, size, 64) };
        memset(arguments[p].data, 0, size);
    }
    if (tl_interpret(program, arguments, program->param_count, NULL, NULL, &diag) != TL_OK)
        fail_msg("%s: %s", tl_op_infos[op].text, diag.text);
    const tl_argument *y = &arguments[program->param_count - 1];
    tl_number result = tl_number_load(y->buffer->dtype, y->data, 0);
    bool finite = !tl_dtype_is_float(y->buffer->dtype) || isfinite(result.f);
    tl_operator_zero says = tl_operators[op].zero;
    if ((says == TL_ZERO_STAYS && !is_zero(y->buffer->dtype, result)) ||
        (says == TL_ZERO_FINITE && !finite))
        fail_msg("%s makes %g of zeros", tl_op_infos[op].text, result.f);
}

static void zeros_are_as_the_rows_say(void **state)
{
    bool is_seen[TL_OP_COUNT] = { false };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tl_program *program = program_of(*state, cases[i].graph);
        if (program != NULL)
            check_zeros(*state, cases[i].op, program);
        is_seen[cases[i].op] |= program != NULL;
    }
    for (int op = 0; op < TL_OP_COUNT; op++)
        if (tl_operators[op].kind == TL_KIND_ELEMENTWISE && !is_seen[op])
            check_zeros(*state, (tl_op)op, program_of_floats(*state, (tl_op)op));
}

static int loads_of(const tl_expr *e, const tl_buffer *b)
{
    int count = e->kind == TL_EXPR_LOAD && e->u.buffer == b;
    for (int i = 0; i < e->arg_count; i++)
        count += loads_of(e->args[i], b);
    return count;
}

typedef struct {
    const tl_buffer *buffer;
    int loads;
} load_count;

static bool count_loads(const tl_stmt *stmt, void *context)
{
    load_count *c = context;
    for (int i = 0; stmt->kind == TL_STMT_BLOCK && i < stmt->u.block->store_count; i++)
        c->loads += loads_of(stmt->u.block->stores[i].value, c->buffer);
    return true;
}

/* An operator that is said to read an operand once does. */
static void reads_are_as_the_rows_say(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tl_program *program = program_of(*state, cases[i].graph);
        for (int p = 0; program != NULL && p < program->param_count - 1; p++) {
            load_count c = { program->params[p], 0 };
            tl_stmt_visit(program->body, count_loads, &c);
            if (tl_operators[cases[i].op].reads == 1 && c.loads != 1)
                fail_msg("%s reads '%s' %d times", tl_op_infos[cases[i].op].text, c.buffer->name,
                         c.loads);
        }
    }
}

/* operators.c beside a table that `edit`, a program for sed, has changed: whether it compiles. */
static bool compiles_with(const char *folder, const char *edit)
{
    const char *compiler = getenv("CC");
    char command[1024];
    snprintf(
        command, sizeof command,
        "sed '%s' frontend/operators.def >%s/frontend/operators.def && "
        "%s -std=c11 -Wall -Wextra -Werror -fsyntax-only -I%s -I. frontend/operators.c 2>/dev/null",
        edit, folder, compiler != NULL ? compiler : "cc", folder);
    return system(command) == 0;
}

static void an_incomplete_row_does_not_compile(void **state)
{
    static const char *const edits[] = {
        "/^ELEMENTWISE( ABS,/d",                            /* no row */
        "/^ELEMENTWISE( ABS,/p",                            /* two */
        "/^ELEMENTWISE( ABS,/{h;d};/^ELEMENTWISE( SQRT,/G", /* another order */
        "/^ELEMENTWISE( ABS,/s/STAYS, *//",                 /* a column is missing */
        "/^ELEMENTWISE( ABS,/s/STAYS/PERHAPS/",             /* a value that the column has not */
        "/^ELEMENTWISE( ABS,/s/( ABS/( ABSOLUTE/",          /* an operator that there is not */
    };
    char folder[] = "/tmp/tilth_operators_XXXXXX", path[128];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/frontend", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(compiles_with(folder, ""));
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        if (compiles_with(folder, edits[i]))
            fail_msg("operators.c compiles after %s", edits[i]);
    snprintf(path, sizeof path, "%s/frontend/operators.def", folder);
    remove(path);
    *strrchr(path, '/') = '\0';
    remove(path);
    remove(folder);
}

/* Of all forms that ONNX gave its operators, those are read that are not refused by name. */
static void every_form_is_read(void **state)
{
    (void)state;
    tl_onnx_version v;
    int count = 0, read = 0;
    for (; tl_onnx_find_version(count, &v); count++) {
        bool is_refused = false;
        tl_onnx_operator op;
        for (int i = 0; tl_onnx_find_operator(i, &op); i++)
            is_refused |= op.reason != NULL && strcmp(op.name, v.name) == 0;
        read += v.reason == NULL;
        if (v.reason != NULL && !is_refused)
            fail_msg("%s of opset %d: %s", v.name, v.since, v.reason);
        if (v.reason == NULL && is_refused)
            fail_msg("%s of opset %d is read, and said to be refused", v.name, v.since);
    }
    assert_in_range(count, 600, 1000);
    assert_in_range(read, 550, count);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(rows_agree_with_themselves),
        cmocka_unit_test_setup_teardown(zeros_are_as_the_rows_say, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(reads_are_as_the_rows_say, arena_setup, arena_teardown),
        cmocka_unit_test(an_incomplete_row_does_not_compile),
    };
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
