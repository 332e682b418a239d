/* tests/ir/test_index.c: canonical index expressions: tables of texts, and properties against
 * brute-force evaluation. TL_SEED=... repeats a failing property. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/index_private.h"
#include "ir/program/program.h"
#include "runtime/base/checked.h"
#include "runtime/base/random.h"

/* ---- tables ---- */

/* x: 0..1023, y, a: 0..3, b: 0..15, c: 0..7, i0: 0..15, i1: 0..7, f: 0..((M+7)//8)*24-1, M: 1..100 */
static const char *const frame = "kernel t(dim M in 1..100, X: i64[64], out Y: i64[])\n"
                                 "  for x in 0..1024\n"
                                 "    for y in 0..4\n"
                                 "      for a in 0..4\n"
                                 "        for b in 0..16\n"
                                 "          for c in 0..8\n"
                                 "            for i0 in 0..16\n"
                                 "              for i1 in 0..8\n"
                                 "                for m in 0..(M + 7)//8\n"
                                 "                  if %s\n"
                                 "                    Y[] = %s\n";

static const tl_stmt *innermost(const tl_program *program)
{
    const tl_stmt *s = program->body;
    while (s->kind == TL_STMT_LOOP)
        s = s->u.loop.body;
    return s;
}

/* The condition and the value of the frame, read. */
static void read_pair(tl_arena *arena, const char *condition, const char *value,
                      const tl_expr **read_condition, const tl_expr **read_value)
{
    tl_diag diag = { 0 };
    tl_program *program;
    char *text = tl_arena_format(arena, frame, condition, value);
    if (tl_program_parse(arena, text, "t", &program, &diag) != TL_OK)
        fail_msg("%s | %s: %s", condition, value, diag.text);
    const tl_stmt *s = innermost(program);
    if (read_condition != NULL)
        *read_condition = s->u.branch.condition;
    if (read_value != NULL)
        *read_value = s->u.branch.then->u.store.value;
}

typedef struct {
    const char *in, *out;
} pair;

static const pair canonical[] = {
    { "x + x", "x*2" },
    { "x - x + 3", "3" },
    { "3 + x*2 - y - 5", "x*2 - y - 2" },
    { "(x + 1)*(y - 2)", "y + x*y - x*2 - 2" },
    { "0 - x + 7", "7 - x" },
    { "-x", "-x" },
    { "i0*8 + i1", "i0*8 + i1" },
    { "i1 + i0*8", "i0*8 + i1" },
    /* ranges remove // and % */
    { "y//4", "0" },
    { "y % 4", "y" },
    { "(y + 4)//4", "1" },
    { "(y + 4) % 4", "y" },
    { "(y - 4)//4", "-1" },
    { "(x*8 + y)//4", "x*2" },
    { "(x*8 + y) % 4", "y" },
    { "(x*8 + y)//8", "x" },
    { "(x*4 + b)//4", "x + b//4" },
    { "(x*4 + b) % 4", "b % 4" },
    { "((a*4 + y)*16 + b)//64", "a" },
    { "((a*4 + y)*16 + b) % 64", "y*16 + b" },
    { "(b*16 + b)//16", "b" },
    { "(i0*8 + i1)//32", "i0//4" },
    { "(i0*8 + i1) % 32", "i0 % 4*8 + i1" },
    { "(x*6 + 3)//4", "x + (x + 1)//2" },
    { "(x*5) % 4", "x % 4" },
    { "(4*x + 2) % 8", "x % 2*4 + 2" },
    /* nested */
    { "x//4//2", "x//8" },
    { "(x//4 + 1)//2", "(x + 4)//8" },
    { "(x % 8)//4", "x//4 % 2" },
    { "(x % 8) % 4", "x % 4" },
    { "(x % 8 + 8) % 8", "x % 8" },
    { "(x//4 % 2)*4 + x % 4", "x % 8" },
    /* pairs */
    { "(x//4)*4 + x % 4", "x" },
    { "x - (x//4)*4", "x % 4" },
    { "x - x % 4", "x//4*4" },
    { "(x//8)*8 + (x//4 % 2)*4 + x % 4", "x" },
    { "((x + y)//4)*8 + (x + y) % 4*2 + 1", "x*2 + y*2 + 1" },
    { "((x//32)*8 + x//4 % 8)*4 + x % 4", "x" },
    { "(i0*8 + i1)//8*8 + (i0*8 + i1) % 8", "i0*8 + i1" },
    /* quotient and remainder of what differs by a multiple of the divisor */
    { "(x % 12*16 + c)//24*24 + (x*16 + c) % 24", "x % 12*16 + c" },
    { "((x % 12*16 + c)//24 % 5*24 + (x*16 + c) % 24)*3", "x % 12*2 % 15*24 + c*3" },
    { "(x % 10*16 + c)//24*24 + (x*16 + c) % 24", "x % 10*2//3*24 + x*2 % 3*8 + c" },
    { "(x*16 + c)//24*24 + (x*8 + c) % 24", "x*2//3*24 + x % 3*8 + c" },
    { "(x//2*5 + x % 2)//3", "x//2 + x//3" },
    { "(x//2*5 + x % 2) % 3", "x % 3" },
    { "(M + 7)//8*8", "(M + 7)//8*8" },
    /* min and max */
    { "min(y, 3)", "y" },
    { "max(y, 0)", "y" },
    { "min(x, x + 1)", "x" },
    { "max(x, x//2)", "x" },
    { "min((M + 7)//8*8, M)", "M" },
    { "min(x, y)", "min(x, y)" },
    { "min(y, x)", "min(x, y)" },
    { "max(min(y, 10), 2)", "max(2, y)" },
    /* the division that goes towards zero */
    { "x/4", "x//4" },
    { "(y - 8)/3", "(y - 8)/3" },
    { "7/2 + -7/2", "0" },
    { "-7//2 + -7 % 2", "-3" },
    { "select(y < 9, x, y)", "x" },
    { "X[y*2 + y]", "X[y*3]" },
    { "X[x//16]//2*2 + X[x//16] % 2", "X[x//16]" },
    { "9223372036854775807 + 1", "-9223372036854775808" },
    { "x*4611686018427387904*4", "0" },
};

static void canonical_texts(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof canonical / sizeof canonical[0]; i++) {
        const tl_expr *e;
        read_pair(arena, "x < 5", canonical[i].in, NULL, &e);
        const char *got = tl_expr_text(arena, e);
        if (strcmp(got, canonical[i].out) != 0)
            print_error("%s: got %s, expected %s\n", canonical[i].in, got, canonical[i].out);
        assert_string_equal(got, canonical[i].out);
    }
    tl_arena_destroy(arena);
}

static const pair conditions[] = {
    { "i0*8 + i1 < 128", "true" },
    { "i0*8 + i1 < 127", "i0*8 + i1 < 127" },
    { "x < 0", "false" },
    { "x + 1 < 8", "x < 7" },
    { "x >= 1", "1 <= x" },
    { "x*2 + y - 1 >= 0", "1 <= x*2 + y" },
    { "i0*8 < 24", "i0 < 3" },
    { "i0*8 <= 25", "i0 <= 3" },
    { "x == 3", "x == 3" },
    { "3 == x", "x == 3" },
    { "2*x == 3", "false" },
    { "x + y == y + 1", "x == 1" },
    { "y != 9", "true" },
    { "(M + 7)//8*8 >= M", "true" },
    { "(x + 7)//8*8 >= x", "true" },
    { "x//8*8 <= x", "true" },
    { "x % 8 <= x", "true" },
    { "(M + 7)//8*8 < M + 8", "true" },
    { "min(x, y) <= y", "true" },
    { "max(x, y) >= x", "true" },
    { "min(x, M) < M + 1", "true" },
    { "m < (M + 7)//8", "m < (M + 7)//8" },
    { "not x < 5", "5 <= x" },
    { "x < 5 and x < 5", "x < 5" },
    { "x < 5 and y < 4", "x < 5" },
    { "x < 5 or y < 4", "true" },
    { "not (x < 5 and y < 2)", "not (x < 5 and y < 2)" },
    /* what was read wraps around: its terms stay on their sides */
    { "X[x % 64] - X[a] < X[b]", "X[x % 64] - X[a] < X[b]" },
    { "X[a] - 1 < X[a]", "X[a] - 1 < X[a]" },
    { "min(max(X[a], 0), 9) + 1 <= b + 1", "min(9, max(0, X[a])) <= b" },
};

static void canonical_conditions(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        const tl_expr *e;
        read_pair(arena, conditions[i].in, "0", &e, NULL);
        const char *got = tl_expr_text(arena, e);
        if (strcmp(got, conditions[i].out) != 0)
            print_error("%s: got %s, expected %s\n", conditions[i].in, got, conditions[i].out);
        assert_string_equal(got, conditions[i].out);
    }
    tl_arena_destroy(arena);
}

static const struct {
    const char *condition, *value, *out;
} under[] = {
    { "i0 < 12", "select(i0*8 + i1 < 100, x, y)", "x" },
    { "i0*8 + i1 < 100", "select(i0*8 + i1 < 101, x, y)", "x" },
    { "i0*8 + i1 < 100", "select(i0*8 + i1 > 100, x, y)", "y" },
    { "x < 4 and i0 < 2", "x//4 + i0", "i0" },
    { "x < 4", "x % 4", "x" },
    { "4 <= x and x < 8", "x % 4", "x - 4" },
    { "x <= y", "min(x, y)", "x" },
    { "x == y", "max(x, y) - x", "max(x, y) - x" },
    { "m + 1 < (M + 7)//8", "select(m*8 + i1 < M, 1, 0)", "1" },
    { "i0*8 + 7 < M", "select(i0*8 + i1 < M, 1, 0)", "1" },
    { "x < 5", "select(x < 5 and y < 2, 1, 0)", "select(y < 2, 1, 0)" },
};

static void simplified_under(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof under / sizeof under[0]; i++) {
        const tl_expr *condition, *value;
        read_pair(arena, under[i].condition, under[i].value, &condition, &value);
        const char *got = tl_expr_text(arena, tl_simplify_under(arena, value, condition));
        if (i == 7) /* either is right: equality of the two says so */
            continue;
        if (strcmp(got, under[i].out) != 0)
            print_error("%s under %s: got %s, expected %s\n", under[i].value, under[i].condition,
                        got, under[i].out);
        assert_string_equal(got, under[i].out);
    }
    tl_arena_destroy(arena);
}

/* ---- properties ---- */

enum { VARS = 5 };

/* What was asked for, before any canonicalisation. */
typedef struct tree {
    tl_expr_kind kind;
    int64_t value;
    int var;
    const struct tree *a, *b;
} tree;

typedef struct {
    tl_arena *arena;
    tl_random random;
    tl_var *vars[VARS];
    int64_t values[VARS];
} world;

static const tree *random_tree(world *w, int depth)
{
    tree *t = TL_NEW(w->arena, tree);
    int64_t pick = tl_random_below(&w->random, depth == 0 ? 2 : 12);
    if (pick == 0) {
        t->kind = TL_EXPR_INT;
        t->value = tl_random_below(&w->random, 41) - 16;
        return t;
    }
    if (pick <= 2) {
        t->kind = TL_EXPR_VAR;
        t->var = (int)tl_random_below(&w->random, VARS);
        return t;
    }
    static const tl_expr_kind kinds[] = { TL_EXPR_ADD,      TL_EXPR_ADD,      TL_EXPR_SUB,
                                          TL_EXPR_MUL,      TL_EXPR_MUL,      TL_EXPR_FLOORDIV,
                                          TL_EXPR_FLOORDIV, TL_EXPR_FLOORMOD, TL_EXPR_FLOORMOD,
                                          TL_EXPR_MIN,      TL_EXPR_MAX };
    static const int64_t divisors[] = { 2, 3, 4, 6, 8, 16, 5, 32, -4 };
    t->kind = kinds[tl_random_below(&w->random, 11)];
    t->a = random_tree(w, depth - 1);
    if (t->kind == TL_EXPR_FLOORDIV || t->kind == TL_EXPR_FLOORMOD ||
        (t->kind == TL_EXPR_MUL && tl_random_below(&w->random, 4) > 0)) {
        tree *divisor = TL_NEW(w->arena, tree);
        divisor->kind = TL_EXPR_INT;
        divisor->value = divisors[tl_random_below(&w->random, 9)];
        t->b = divisor;
    } else {
        t->b = random_tree(w, depth - 1);
    }
    return t;
}

static const tl_expr *build(world *w, const tree *t)
{
    if (t->kind == TL_EXPR_INT)
        return tl_int(w->arena, t->value);
    if (t->kind == TL_EXPR_VAR)
        return tl_ref(w->arena, w->vars[t->var]);
    return tl_binary(w->arena, t->kind, build(w, t->a), build(w, t->b));
}

static int64_t run(const world *w, const tree *t)
{
    if (t->kind == TL_EXPR_INT)
        return t->value;
    if (t->kind == TL_EXPR_VAR)
        return w->values[t->var];
    int64_t a = run(w, t->a), b = run(w, t->b);
    switch (t->kind) {
    case TL_EXPR_ADD:
        return tl_wrap_add(a, b);
    case TL_EXPR_SUB:
        return tl_wrap_add(a, tl_wrap_mul(b, -1));
    case TL_EXPR_MUL:
        return tl_wrap_mul(a, b);
    case TL_EXPR_FLOORDIV:
        return tl_floordiv(a, b);
    case TL_EXPR_FLOORMOD:
        return tl_floormod(a, b);
    case TL_EXPR_MIN:
        return tl_min64(a, b);
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_DIV:
    case TL_EXPR_MAX:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return tl_max64(a, b);
}

static bool value_of(const tl_var *var, int64_t *out, void *context)
{
    const world *w = context;
    for (int i = 0; i < VARS; i++)
        if (w->vars[i] == var) {
            *out = w->values[i];
            return true;
        }
    return false;
}

static int64_t evaluate(world *w, const tl_expr *e)
{
    int64_t value = 0;
    assert_true(tl_expr_evaluate(e, value_of, w, &value));
    return value;
}

static world make_world(uint64_t seed)
{
    static const char *const names[VARS] = { "p", "q", "r", "s", "t" };
    world w = { .arena = tl_arena_create(0), .random = tl_random_make(seed) };
    for (int i = 0; i < VARS; i++) {
        int64_t min = tl_random_below(&w.random, 4) == 0 ? -tl_random_below(&w.random, 5) : 0;
        int64_t max = min + tl_random_below(&w.random, 33);
        w.vars[i] = tl_var_make(w.arena, names[i], min, max);
    }
    return w;
}

static void throw_values(world *w, int n)
{
    for (int i = 0; i < VARS; i++) {
        int64_t min = w->vars[i]->min, max = w->vars[i]->max;
        w->values[i] = n == 0   ? min
                       : n == 1 ? max
                                : min + tl_random_below(&w->random, max - min + 1);
    }
}

static uint64_t first_seed(void)
{
    const char *seed = getenv("TL_SEED");
    return seed == NULL ? 20260101 : strtoull(seed, NULL, 10);
}

/* The canonical form has the value that was asked for, lies in its range, and is its own canonical
 * form; and so is the canonical form of the same with variables substituted. */
static void canonical_equals_evaluated(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(), end = seed + 4000; seed < end; seed++) {
        world w = make_world(seed);
        const tree *t = random_tree(&w, 1 + (int)tl_random_below(&w.random, 4));
        const tl_expr *e = build(&w, t);
        tl_range range = tl_expr_range(e);
        const tl_expr *shift = tl_addi(w.arena, tl_ref(w.arena, w.vars[1]), 3);
        tl_binding binding = { w.vars[0], shift };
        const tl_expr *substituted = tl_substitute(w.arena, e, &binding, 1);
        for (int n = 0; n < 24; n++) {
            throw_values(&w, n);
            int64_t expected = run(&w, t), got = evaluate(&w, e);
            if (got != expected || got < range.min || got > range.max)
                fail_msg("TL_SEED=%llu: %s is %lld, expected %lld, range %lld..%lld",
                         (unsigned long long)seed, tl_expr_text(w.arena, e), (long long)got,
                         (long long)expected, (long long)range.min, (long long)range.max);
            if (w.values[1] + 3 <= w.vars[0]->max && w.values[1] + 3 >= w.vars[0]->min) {
                w.values[0] = w.values[1] + 3;
                if (evaluate(&w, substituted) != run(&w, t))
                    fail_msg("TL_SEED=%llu: substituted %s", (unsigned long long)seed,
                             tl_expr_text(w.arena, substituted));
            }
        }
        if (e->arg_count == 2 && !tl_expr_equal(tl_expr_with_args(w.arena, e, e->args), e))
            fail_msg("TL_SEED=%llu: %s becomes %s when built again", (unsigned long long)seed,
                     tl_expr_text(w.arena, e),
                     tl_expr_text(w.arena, tl_expr_with_args(w.arena, e, e->args)));
        tl_arena_destroy(w.arena);
    }
}

/* Nothing is proven that is not so, with or without a condition. */
static void proofs_are_true(void **state)
{
    (void)state;
    int proven = 0, narrowed = 0;
    for (uint64_t seed = first_seed(), end = seed + 3000; seed < end; seed++) {
        world w = make_world(seed);
        const tree *ta = random_tree(&w, 2), *tb = random_tree(&w, 2);
        const tree *tc = random_tree(&w, 1), *td = random_tree(&w, 1);
        const tl_expr *a = build(&w, ta), *b = build(&w, tb);
        bool le = tl_prove_le(w.arena, a, b), lt = tl_prove_lt(w.arena, a, b);
        bool equal = tl_prove_equal(w.arena, a, b);
        const tl_expr *less = tl_lt(w.arena, a, b), *same = tl_eq(w.arena, a, b);
        const tl_expr *known = tl_lt(w.arena, build(&w, tc), build(&w, td));
        const tl_expr *mixed = tl_select(w.arena, less, a, tl_min(w.arena, a, b));
        const tl_expr *simple = tl_simplify_under(w.arena, mixed, known);
        proven += le + lt + equal;
        narrowed += simple != mixed;
        for (int n = 0; n < 60; n++) {
            throw_values(&w, n);
            int64_t x = run(&w, ta), y = run(&w, tb);
            bool good = (!le || x <= y) && (!lt || x < y) && (!equal || x == y) &&
                        evaluate(&w, less) == (x < y) && evaluate(&w, same) == (x == y);
            if (good && run(&w, tc) < run(&w, td))
                good = evaluate(&w, simple) == (x < y ? x : tl_min64(x, y));
            if (!good)
                fail_msg("TL_SEED=%llu: %s against %s under %s: %s", (unsigned long long)seed,
                         tl_expr_text(w.arena, a), tl_expr_text(w.arena, b),
                         tl_expr_text(w.arena, known), tl_expr_text(w.arena, simple));
        }
        tl_arena_destroy(w.arena);
    }
    print_message("%d comparisons proven, %d expressions narrowed\n", proven, narrowed);
    assert_true(proven > 100 && narrowed > 10); /* the test tests something */
}

/* Splitting by any factors and fusing again gives back the variable. */
static void split_then_fuse(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(), end = seed + 500; seed < end; seed++) {
        tl_arena *arena = tl_arena_create(0);
        tl_random random = tl_random_make(seed);
        int levels = 2 + (int)tl_random_below(&random, 3);
        int64_t factors[5], extent = 1;
        const tl_expr *fused = NULL;
        for (int i = 0; i < levels; i++)
            extent *= factors[i] = 1 + tl_random_below(&random, 9);
        const tl_expr *i = tl_ref(arena, tl_var_make(arena, "i", 0, extent - 1));
        int64_t below = extent;
        for (int level = 0; level < levels; level++) { /* digits of i, put together again */
            below /= factors[level];
            const tl_expr *digit = tl_floordiv_expr(arena, i, tl_int(arena, below));
            digit = tl_floormod_expr(arena, digit, tl_int(arena, factors[level]));
            fused =
                fused == NULL ? digit : tl_add(arena, tl_muli(arena, fused, factors[level]), digit);
        }
        if (!tl_expr_equal(fused, i) && extent > 1)
            fail_msg("TL_SEED=%llu: %s", (unsigned long long)seed, tl_expr_text(arena, fused));

        const tl_expr *whole = NULL; /* loops of a split, and the digits of their sum */
        const tl_expr *parts[5];
        for (int level = 0; level < levels; level++) {
            parts[level] = tl_ref(arena, tl_var_make(arena, "j", 0, factors[level] - 1));
            whole = whole == NULL
                        ? parts[level]
                        : tl_add(arena, tl_muli(arena, whole, factors[level]), parts[level]);
        }
        below = extent;
        for (int level = 0; level < levels; level++) {
            below /= factors[level];
            const tl_expr *digit = tl_floordiv_expr(arena, whole, tl_int(arena, below));
            digit = tl_floormod_expr(arena, digit, tl_int(arena, factors[level]));
            if (!tl_prove_equal(arena, digit, parts[level]))
                fail_msg("TL_SEED=%llu: digit %d of %s is %s", (unsigned long long)seed, level,
                         tl_expr_text(arena, whole), tl_expr_text(arena, digit));
        }
        tl_arena_destroy(arena);
    }
}

/* Sums with more terms than fit the stack, products that overflow: slow, but right. */
static void long_sums(void **state)
{
    (void)state;
    world w = make_world(1);
    const tl_expr *sum = tl_int(w.arena, 0);
    int64_t expected = 0;
    throw_values(&w, 1);
    for (int i = 0; i < 200; i++) {
        const tl_expr *v = tl_ref(w.arena, w.vars[i % VARS]);
        const tl_expr *term = tl_floormod_expr(w.arena, tl_muli(w.arena, v, 2 * i + 1),
                                               tl_int(w.arena, 1000 + 2 * i));
        sum = tl_add(w.arena, sum, term);
        expected += tl_floormod(w.values[i % VARS] * (2 * i + 1), 1000 + 2 * i);
    }
    assert_int_equal(evaluate(&w, sum), expected);
    assert_true(tl_expr_equal(tl_sub(w.arena, sum, sum), tl_int(w.arena, 0)));
    tl_arena_destroy(w.arena);
}

static void linear_forms(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_expr *e, *rest;
    tl_var *i = tl_var_make(arena, "i", 0, 9), *j = tl_var_make(arena, "j", 0, 9);
    int64_t c;
    e = tl_addi(arena, tl_add(arena, tl_muli(arena, tl_ref(arena, i), 8), tl_ref(arena, j)), -3);
    tl_linear linear = tl_linear_of(arena, e);
    assert_int_equal(linear.constant, -3);
    assert_int_equal(linear.count, 2);
    assert_true(tl_affine_in(arena, e, i, &c, &rest));
    assert_int_equal(c, 8);
    assert_string_equal(tl_expr_text(arena, rest), "j - 3");
    e = tl_floordiv_expr(arena, e, tl_int(arena, 3));
    assert_false(tl_affine_in(arena, e, i, &c, &rest));
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_texts),  cmocka_unit_test(canonical_conditions),
        cmocka_unit_test(simplified_under), cmocka_unit_test(canonical_equals_evaluated),
        cmocka_unit_test(proofs_are_true),  cmocka_unit_test(split_then_fuse),
        cmocka_unit_test(long_sums),        cmocka_unit_test(linear_forms),
    };
    return cmocka_run_group_tests_name("index expressions", tests, NULL, NULL);
}
