/* tests/ir/test_shared_expr.c: expressions whose nodes are read several times. As trees they are too large to be walked: what
 * compares, searches and rewrites them sees a node once, and Programs have none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "ir/expr/buffer.h"
#include "ir/program/program.h"

enum { DOUBLINGS = 200 };

/* ((x + x) + (x + x)) + ..., of a load at `index`. */
static const tl_expr *doubled(tl_arena *arena, const tl_buffer *buffer, const tl_expr *index,
                              int times)
{
    const tl_expr *e = tl_load(arena, buffer, &index);
    for (int i = 0; i < times; i++)
        e = tl_add(arena, e, e);
    return e;
}

static const tl_buffer *buffer_named(tl_arena *arena, const char *name, tl_role role)
{
    return tl_buffer_make_static(arena, name, TL_F32, role, TL_SCOPE_GLOBAL, 1, (int64_t[]){ 4 });
}

static void trees_are_counted(void **state)
{
    tl_arena *arena = *state;
    const tl_buffer *x = buffer_named(arena, "x", TL_ROLE_INPUT);
    const tl_expr *zero = tl_int(arena, 0);
    const tl_expr *e = doubled(arena, x, zero, 3);
    assert_int_equal(e->size, 23); /* 8 loads of 2 nodes, 7 sums */
    assert_int_equal(e->depth, 5);
    assert_false(tl_expr_is_too_large(e));
    e = doubled(arena, x, zero, DOUBLINGS);
    assert_int_equal(e->size, TL_EXPR_COUNTLESS);
    assert_int_equal(e->depth, DOUBLINGS + 2);
    assert_true(tl_expr_is_too_large(e));
}

static void questions_end(void **state)
{
    tl_arena *arena = *state;
    const tl_buffer *x = buffer_named(arena, "x", TL_ROLE_INPUT);
    const tl_var *i = tl_var_make(arena, "i", 0, 3), *j = tl_var_make(arena, "j", 0, 3);
    const tl_expr *a = doubled(arena, x, tl_ref(arena, i), DOUBLINGS);
    const tl_expr *b = doubled(arena, x, tl_ref(arena, i), DOUBLINGS);
    const tl_expr *c = doubled(arena, x, tl_ref(arena, j), DOUBLINGS);
    assert_ptr_not_equal(a, b);
    assert_true(tl_expr_equal(a, b));
    assert_false(tl_expr_equal(a, c));
    assert_int_equal(tl_expr_compare(a, b), 0);
    assert_true(tl_expr_compare(a, c) < 0);
    assert_true(tl_expr_uses_var(a, i));
    assert_false(tl_expr_uses_var(a, j));
    assert_true(tl_expr_has_load(a));
    const tl_expr *sum = tl_cast(arena, TL_F32, tl_ref(arena, i));
    for (int k = 0; k < DOUBLINGS; k++)
        sum = tl_mul(arena, sum, sum);
    assert_false(tl_expr_has_load(sum));
}

static const tl_expr *count_leaf(tl_arena *arena, const tl_expr *e, void *context)
{
    (void)arena;
    (void)e;
    ++*(int *)context;
    return NULL;
}

static void rewriting_keeps_what_is_shared(void **state)
{
    enum { LARGEST = 2 << 20 };
    (void)state;
    tl_arena *arena = tl_arena_create(LARGEST);
    if (TL_ARENA_GUARD(arena))
        fail_msg("it takes more than %d bytes", LARGEST);
    const tl_buffer *x = buffer_named(arena, "x", TL_ROLE_INPUT);
    const tl_var *i = tl_var_make(arena, "i", 0, 3), *j = tl_var_make(arena, "j", 0, 3);
    const tl_expr *e = doubled(arena, x, tl_ref(arena, i), DOUBLINGS);
    int leaves = 0;
    assert_ptr_equal(tl_expr_rewrite(arena, e, count_leaf, &leaves), e);
    assert_int_equal(leaves, 2); /* the load and its variable */
    const tl_expr *moved = tl_substitute(arena, e, &(tl_binding){ i, tl_ref(arena, j) }, 1);
    assert_true(tl_expr_equal(moved, doubled(arena, x, tl_ref(arena, j), DOUBLINGS)));
    for (const tl_expr *at = moved; at->kind == TL_EXPR_ADD; at = at->args[0])
        assert_ptr_equal(at->args[0], at->args[1]);
    tl_arena_destroy(arena);
}

static void programs_have_no_large_ones(void **state)
{
    tl_arena *arena = *state;
    const struct {
        int doublings;
        tl_status status;
    } cases[] = { { 8, TL_OK }, { 11, TL_OK }, { 12, TL_BAD_IR }, { DOUBLINGS, TL_BAD_IR } };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const tl_buffer *params[2] = { buffer_named(arena, "x", TL_ROLE_INPUT),
                                       buffer_named(arena, "y", TL_ROLE_OUTPUT) };
        const tl_expr *zero = tl_int(arena, 0);
        tl_store *store = TL_NEW(arena, tl_store);
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, 1);
        indices[0] = zero;
        *store = (tl_store){ .buffer = params[1],
                             .indices = indices,
                             .value = doubled(arena, params[0], zero, cases[k].doublings) };
        tl_block *block = TL_NEW(arena, tl_block);
        block->name = "map";
        block->store_count = 1;
        block->stores = store;
        tl_program program = {
            .name = "p", .param_count = 2, .params = params, .body = tl_stmt_block(arena, block)
        };
        tl_diag diag = { 0 };
        assert_int_equal(tl_program_verify(&program, &diag), cases[k].status);
        if (cases[k].status != TL_OK)
            assert_non_null(strstr(diag.text, "map: an expression has "));
    }
}

/* So many operands that each bracket has few operators. */
static void texts_have_no_large_ones(void **state)
{
    tl_arena *arena = *state;
    const struct {
        int operands;
        tl_status status;
    } cases[] = { { 100, TL_OK }, { 900, TL_BAD_TEXT } };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tl_text text = { 0 };
        tl_text_add(&text, "kernel k(x: f32[4, 4, 4, 4, 4], out y: f32[4])\n"
                           "  for i in 0..4\n    block map\n      spatial i\n      y[i] = 0.0");
        for (int i = 0; i < cases[k].operands; i++)
            tl_text_add(&text, " + max(x[0, 1, 2, 3, i], x[i, 3, 2, 1, 0])");
        tl_text_add(&text, "\n");
        tl_program *program;
        tl_diag diag = { 0 };
        tl_status status = tl_program_parse(arena, tl_text_get(&text), "t", &program, &diag);
        tl_text_free(&text);
        if (status != cases[k].status)
            fail_msg("%d operands: status %d, %s", cases[k].operands, status, diag.text);
        if (status != TL_OK)
            assert_non_null(strstr(diag.text, "the expression has "));
    }
}

static int set_up(void **state)
{
    *state = tl_arena_create(0);
    return *state == NULL;
}

static int tear_down(void **state)
{
    tl_arena_destroy(*state);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(trees_are_counted),
        TEST(questions_end),
        TEST(rewriting_keeps_what_is_shared),
        TEST(programs_have_no_large_ones),
        TEST(texts_have_no_large_ones),
    };
    return cmocka_run_group_tests_name("shared expressions", tests, NULL, NULL);
}
