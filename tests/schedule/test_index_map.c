/* tests/schedule/test_index_map.c: changes of layout: read, refused, and inverse to themselves element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "schedule/index_map.h"

#define RANK_MAX 4

typedef struct {
    const char *text;
    int rank;
    int64_t shape[RANK_MAX];
    const char *wanted; /* the new shape, or the beginning of the refusal */
} map_case;

static const map_case good[] = {
    { "(a) -> (a)", 1, { 7 }, "7" },
    { "(a, b) -> (b, a)", 2, { 3, 5 }, "5 3" },
    { "(a) -> (a//4, a%4)", 1, { 12 }, "3 4" },
    { "(a) -> (a//4, a%4)", 1, { 10 }, "3 4" },
    { "(a) -> (a//32, a%32)", 1, { 20 }, "1 32" },
    { "(a) -> (a//16, a//4%4, a%4)", 1, { 35 }, "3 4 4" },
    { "(a) -> ((a//4)%4, a%4, a//16)", 1, { 35 }, "4 4 3" },
    { "(o, i, h, w) -> (o//8, i//2, h, w, i%2, o%8)", 4, { 9, 5, 2, 3 }, "2 3 2 3 2 8" },
    { "(a, b) -> (a*5 + b)", 2, { 3, 5 }, "15" },
    { "(a, b) -> (a//2, b*2 + a%2)", 2, { 5, 3 }, "3 6" },
    { "(a, b) -> (a//2*3 + b, a%2)", 2, { 5, 3 }, "9 2" },
    { "(a, b) -> (b)", 2, { 1, 3 }, "3" },
    { "(a) -> (0, a)", 1, { 4 }, "1 4" },
    { "(a)->(a//1,a%1)", 1, { 4 }, "4 1" },
    { "(a) -> (a//4*4 + a%4)", 1, { 10 }, "10" },
};

static const map_case bad[] = {
    { "", 1, { 4 }, "the map \"\" is not of the form" },
    { "(a)", 1, { 4 }, "the map \"(a)\" is not of the form" },
    { "(a) -> (a", 1, { 4 }, "the map \"(a) -> (a\" is not of the form" },
    { "(a) -> (a) b", 1, { 4 }, "the map \"(a) -> (a) b\" is not of the form" },
    { "(a) -> (X[a])", 1, { 4 }, "the map \"(a) -> (X[a])\" is not of the form" },
    { "(a) -> (a\nblock b)", 1, { 4 }, "the map" },
    { "(a, b) -> (a)", 1, { 4 }, "the map names 2 axes and the buffer has 1" },
    { "(a, a) -> (a, a)", 2, { 4, 4 }, "the map names its variable a twice" },
    { "(1a) -> (0)", 1, { 4 }, "\"1a\" is no name of a variable" },
    { "() -> ()", 1, { 4 }, "\"\" is no name of a variable" },
    { "(a) -> (b)", 1, { 4 }, "map:" },
    { "(a) -> (a*)", 1, { 4 }, "map:" },
    { "(a) -> (a%4)", 1, { 9 }, "the results tell only a % 4 of a, whose extent is 9: add a//4" },
    { "(a) -> (a//4)", 1, { 9 }, "the results tell only a % 1 of a" },
    { "(a) -> (a, a)", 1, { 4 }, "two results hold the same part of a" },
    { "(a) -> (a//8, a%4)", 1, { 16 }, "the results tell only a % 4 of a" },
    { "(a) -> (a//4, a%8)", 1, { 16 }, "two results hold the same part of a" },
    { "(a) -> (a + 1)", 1, { 4 }, "the result a + 1 does not count 0, 1, 2" },
    { "(a) -> (a*2)", 1, { 4 }, "the result a*2 does not count 0, 1, 2" },
    { "(a) -> (-a)", 1, { 4 }, "the result" },
    { "(a) -> (a*a)", 1, { 4 }, "the result" },
    { "(a, b) -> (a + b, b)", 2, { 4, 4 }, "the result" },
    { "(a) -> (a//0, a)", 1, { 4 }, "" },
    { "(a) -> (a%(0-3), a)", 1, { 4 }, "" },
    { "(a) -> (a//9223372036854775807, a%9223372036854775807)", 1, { 4 }, "" },
};

static const tl_expr *const *constants(tl_arena *arena, const int64_t *values, int count)
{
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int i = 0; i < count; i++)
        out[i] = tl_int(arena, values[i]);
    return out;
}

/* Every old index comes back, no two meet, and the condition is true of just those. */
static void check_inverse(tl_arena *arena, const tl_index_map *map, const map_case *c)
{
    int64_t old_count = 1, new_count = 1, extents[16];
    for (int i = 0; i < c->rank; i++)
        old_count *= c->shape[i];
    for (int a = 0; a < map->axis_count; a++) {
        assert_true(tl_const_int(map->axes[a].extent, &extents[a]));
        new_count *= extents[a];
    }
    assert_true(map->pads == (new_count != old_count));
    int64_t valid = 0;
    for (int64_t flat = 0; flat < new_count; flat++) {
        int64_t index[16], rest = flat;
        for (int a = map->axis_count - 1; a >= 0; a--) {
            index[a] = rest % extents[a];
            rest /= extents[a];
        }
        const tl_expr *condition;
        const tl_expr *const *old =
            tl_index_map_invert(arena, map, constants(arena, index, map->axis_count), &condition);
        bool inside = true;
        for (int i = 0; i < c->rank; i++) {
            int64_t value;
            assert_true(tl_const_int(old[i], &value));
            inside = inside && value >= 0 && value < c->shape[i];
        }
        assert_true(inside == (condition == NULL));
        if (!inside)
            continue;
        valid++;
        const tl_expr *const *again = tl_index_map_apply(arena, map, old);
        for (int a = 0; a < map->axis_count; a++)
            assert_true(tl_is_int(again[a], index[a]));
    }
    assert_int_equal(valid, old_count);
}

static void good_maps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const map_case *c = &good[i];
        tl_arena *arena = tl_arena_create(0);
        tl_index_map map;
        tl_diag diag = { { 0 } };
        if (tl_index_map_make(arena, c->text, c->rank, constants(arena, c->shape, c->rank), &map,
                              &diag) != TL_OK)
            fail_msg("%s: %s", c->text, diag.text);
        const char *shape = "";
        for (int a = 0; a < map.axis_count; a++)
            shape = tl_arena_format(arena, "%s%s%s", shape, a == 0 ? "" : " ",
                                    tl_expr_text(arena, map.axes[a].extent));
        assert_string_equal(shape, c->wanted);
        check_inverse(arena, &map, c);
        tl_arena_destroy(arena);
    }
}

static void bad_maps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const map_case *c = &bad[i];
        tl_arena *arena = tl_arena_create(0);
        tl_index_map map;
        tl_diag diag = { { 0 } };
        tl_status status = tl_index_map_make(arena, c->text, c->rank,
                                             constants(arena, c->shape, c->rank), &map, &diag);
        if (c->wanted[0] != '\0' &&
            (status == TL_OK || strncmp(diag.text, c->wanted, strlen(c->wanted)) != 0))
            fail_msg("%s: \"%s\", wanted \"%s\"", c->text, diag.text, c->wanted);
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(good_maps), cmocka_unit_test(bad_maps) };
    return cmocka_run_group_tests_name("schedule index map", tests, NULL, NULL);
}
