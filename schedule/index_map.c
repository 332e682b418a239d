/* schedule/index_map.c: index maps: read with the grammar of the Program's expressions, checked, applied, inverted. */
#include "schedule/index_map.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include "runtime/base/checked.h"

#define MAX_AXES 16
#define LARGE    ((int64_t)1 << 40) /* no digit of a variable is folded away while the map is read */

/* Splits at the commas outside parentheses; -1: more than MAX_AXES. */
static int split_list(tl_arena *arena, const char *text, size_t size, const char **out)
{
    int count = 0, depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= size; i++) {
        char c = i < size ? text[i] : ',';
        depth += (c == '(') - (c == ')');
        if (c != ',' || (depth > 0 && i < size))
            continue;
        if (count == MAX_AXES)
            return -1;
        size_t first = start, last = i;
        while (first < last && text[first] == ' ')
            first++;
        while (last > first && text[last - 1] == ' ')
            last--;
        out[count++] = tl_arena_strndup(arena, text + first, last - first);
        start = i + 1;
    }
    return count;
}

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)text[0]) && text[0] != '_')
        return false;
    for (size_t i = 1; text[i] != '\0'; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static bool has_only(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("_ ,+-*/%()", text[i]) == NULL)
            return false;
    return true;
}

/* "(a, b)" at *at: what is between the parentheses. */
static bool take_group(const char **at, const char **inside, size_t *size)
{
    const char *p = *at;
    while (*p == ' ')
        p++;
    if (*p != '(')
        return false;
    int depth = 0;
    const char *start = p + 1;
    for (; *p != '\0'; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0)
            break;
    }
    if (*p == '\0')
        return false;
    *inside = start;
    *size = (size_t)(p - start);
    *at = p + 1;
    return true;
}

static tl_status parse(tl_arena *arena, const char *text, int rank, tl_index_map *out,
                       tl_diag *diag)
{
    const char *at = text, *from, *to, *vars[MAX_AXES], *results[MAX_AXES];
    size_t from_size, to_size;
    bool well_formed = take_group(&at, &from, &from_size);
    while (well_formed && *at == ' ')
        at++;
    well_formed = well_formed && at[0] == '-' && at[1] == '>';
    if (well_formed)
        at += 2;
    well_formed = well_formed && take_group(&at, &to, &to_size) && at[strspn(at, " ")] == '\0' &&
                  has_only(from, from_size) && has_only(to, to_size);
    if (!well_formed)
        return tl_fail(diag, TL_BAD_TEXT,
                       "the map \"%.200s\" is not of the form \"(a, b) -> (a//8, b, a%%8)\"", text);
    int var_count = split_list(arena, from, from_size, vars);
    int count = split_list(arena, to, to_size, results);
    if (var_count < 0 || count < 0)
        return tl_fail(diag, TL_BAD_TEXT, "the map has more than %d axes", MAX_AXES);
    if (var_count != rank)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "the map names %d axes and the buffer has %d",
                       var_count, rank);
    for (int i = 0; i < var_count; i++) {
        if (!is_name(vars[i]))
            return tl_fail(diag, TL_BAD_TEXT, "\"%.60s\" is no name of a variable", vars[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(vars[i], vars[k]) == 0)
                return tl_fail(diag, TL_BAD_TEXT, "the map names its variable %s twice", vars[i]);
    }

    const tl_var **iters = TL_NEW_ARRAY(arena, const tl_var *, var_count);
    const tl_expr **values = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int i = 0; i < var_count; i++)
        iters[i] = tl_var_make(arena, vars[i], 0, LARGE - 1);
    for (int i = 0; i < count; i++)
        TL_TRY(tl_index_parse(arena, results[i], "map", iters, var_count, &values[i], diag));
    out->var_count = var_count;
    out->axis_count = count;
    out->vars = iters;
    out->results = values;
    return TL_OK;
}

static int find_var(const tl_index_map *map, const tl_var *var)
{
    for (int i = 0; i < map->var_count; i++)
        if (map->vars[i] == var)
            return i;
    return -1;
}

/* The digits of one result, by growing weight; their weights are a mixed radix. */
static tl_status take_axis(tl_arena *arena, const tl_index_map *map, int index, tl_map_axis *out,
                           tl_diag *diag)
{
    assert(index >= 0 && index < map->axis_count);
    const tl_expr *result = map->results[index];
    tl_linear sum = tl_linear_of(arena, result);
    tl_digit_term *places = TL_NEW_ARRAY(arena, tl_digit_term, sum.count);
    for (int i = 0; i < sum.count; i++) {
        tl_digit digit;
        int64_t extent;
        if (!tl_digit_of(sum.terms[i], &digit) || find_var(map, digit.var) < 0 ||
            sum.coefficients[i] < 1)
            return tl_fail(
                diag, TL_ILLEGAL_SCHEDULE,
                "the result %s is not made of v, v//c and v%%c with constants c >= 1, so "
                "it cannot be inverted",
                tl_expr_text(arena, result));
        const tl_expr *shape = map->shape[find_var(map, digit.var)];
        if (digit.modulus != 0)
            extent = digit.modulus;
        else if (tl_const_int(shape, &extent))
            extent = tl_ceildiv(extent, digit.divisor);
        else
            extent = -1;
        places[i] = (tl_digit_term){ digit, sum.coefficients[i], extent };
    }
    tl_places_sort(places, sum.count);

    int64_t weight = 1;
    bool is_radix = sum.constant == 0;
    for (int i = 0; i < sum.count && is_radix; i++) {
        is_radix = places[i].coefficient == weight;
        bool last = i + 1 == sum.count;
        if (is_radix && !last)
            is_radix =
                places[i].extent >= 0 && !tl_mul_overflows(weight, places[i].extent, &weight);
    }
    if (!is_radix)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE,
                       "the result %s does not count 0, 1, 2, ...: fused parts need the weights "
                       "1, then the extent of the part before",
                       tl_expr_text(arena, result));

    const tl_expr *extent = tl_int(arena, 1);
    if (sum.count > 0) {
        tl_digit_term top = places[sum.count - 1];
        extent = tl_int(arena, top.extent);
        if (top.extent < 0)
            extent = tl_floordiv_expr(arena,
                                      tl_addi(arena, map->shape[find_var(map, top.digit.var)],
                                              top.digit.divisor - 1),
                                      tl_int(arena, top.digit.divisor));
        extent = tl_muli(arena, extent, top.coefficient);
    }
    *out = (tl_map_axis){ sum.count, places, extent };
    return TL_OK;
}

/* The digits of a variable follow one another from 1 up to its extent. */
static tl_status check_var(tl_arena *arena, tl_index_map *map, int index, tl_diag *diag)
{
    assert(index >= 0 && index < map->var_count);
    const char *name = map->vars[index]->name;
    int64_t extent = -1, reached = 1;
    (void)tl_const_int(map->shape[index], &extent);
    for (bool open = true; open;) {
        const tl_digit_term *found = NULL;
        int matches = 0;
        for (int a = 0; a < map->axis_count; a++)
            for (int i = 0; i < map->axes[a].count; i++) {
                const tl_digit_term *place = &map->axes[a].places[i];
                if (place->digit.var != map->vars[index])
                    continue;
                if (place->digit.divisor == reached) {
                    found = place;
                    matches++;
                }
            }
        if (matches > 1)
            return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "two results hold the same part of %s", name);
        if (found == NULL) {
            open = false;
        } else if (found->digit.modulus == 0) {
            if (extent < 0 ? reached != 1 : reached * found->extent != extent)
                map->pads = true;
            return TL_OK;
        } else if (tl_mul_overflows(reached, found->digit.modulus, &reached)) {
            return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "the blocks of %s are too large", name);
        }
    }
    if (extent < 0 || reached < extent)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE,
                       "the results tell only %s %% %lld of %s, whose extent is %s: add %s//%lld",
                       name, (long long)reached, name, tl_expr_text(arena, map->shape[index]), name,
                       (long long)reached);
    if (reached > extent)
        map->pads = true;
    return TL_OK;
}

/* Every digit in the map was met by check_var: none starts inside another or past a gap. */
static tl_status check_digits(const tl_index_map *map, tl_diag *diag)
{
    for (int a = 0; a < map->axis_count; a++)
        for (int i = 0; i < map->axes[a].count; i++)
            for (int b = 0; b <= a; b++)
                for (int k = 0; k < map->axes[b].count; k++) {
                    tl_digit x = map->axes[a].places[i].digit, y = map->axes[b].places[k].digit;
                    if ((a != b || i != k) && x.var == y.var && tl_digits_overlap(x, y))
                        return tl_fail(diag, TL_ILLEGAL_SCHEDULE,
                                       "two results hold the same part of %s", x.var->name);
                }
    return TL_OK;
}

tl_status tl_index_map_make(tl_arena *arena, const char *text, int rank,
                            const tl_expr *const *shape, tl_index_map *out, tl_diag *diag)
{
    assert(rank >= 0);
    *out = (tl_index_map){ .shape = shape };
    TL_TRY(parse(arena, text, rank, out, diag));
    tl_map_axis *axes = TL_NEW_ARRAY(arena, tl_map_axis, out->axis_count);
    out->axes = axes;
    for (int i = 0; i < out->axis_count; i++)
        TL_TRY(take_axis(arena, out, i, &axes[i], diag));
    TL_TRY(check_digits(out, diag));
    for (int i = 0; i < out->var_count; i++)
        TL_TRY(check_var(arena, out, i, diag));
    return TL_OK;
}

const tl_expr *const *tl_index_map_apply(tl_arena *arena, const tl_index_map *map,
                                         const tl_expr *const *old_indices)
{
    assert(map->axis_count > 0 && old_indices != NULL);
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, map->axis_count);
    for (int a = 0; a < map->axis_count; a++) {
        out[a] = tl_int(arena, 0);
        for (int i = 0; i < map->axes[a].count; i++) {
            const tl_digit_term *place = &map->axes[a].places[i];
            const tl_expr *digit =
                tl_digit_expr(arena, place->digit, old_indices[find_var(map, place->digit.var)]);
            out[a] = tl_add(arena, out[a], tl_muli(arena, digit, place->coefficient));
        }
    }
    return out;
}

const tl_expr *const *tl_index_map_invert(tl_arena *arena, const tl_index_map *map,
                                          const tl_expr *const *new_indices,
                                          const tl_expr **condition)
{
    assert(map->var_count >= 0 && new_indices != NULL);
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, map->var_count);
    for (int v = 0; v < map->var_count; v++)
        out[v] = tl_int(arena, 0);
    for (int a = 0; a < map->axis_count; a++)
        for (int i = 0; i < map->axes[a].count; i++) {
            const tl_digit_term *place = &map->axes[a].places[i];
            const tl_expr *digit =
                tl_floordiv_expr(arena, new_indices[a], tl_int(arena, place->coefficient));
            if (i + 1 < map->axes[a].count)
                digit = tl_floormod_expr(arena, digit, tl_int(arena, place->extent));
            int v = find_var(map, place->digit.var);
            out[v] = tl_add(arena, out[v], tl_muli(arena, digit, place->digit.divisor));
        }
    *condition = NULL;
    for (int v = 0; v < map->var_count; v++) {
        const tl_expr *inside = tl_lt(arena, out[v], map->shape[v]);
        if (!tl_prove(arena, inside))
            *condition = tl_and(arena, *condition, inside);
    }
    return out;
}
