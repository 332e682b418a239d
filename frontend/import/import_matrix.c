/* frontend/import/import_matrix.c: triangles and diagonals, determinants, and Einstein's sums. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/import/import_rules.h"

/* Row and column numbers of the last two axes, as [rows, 1] and [1, columns]. */
static void positions(tl_onnx_call *c, int64_t rows, int64_t columns, tl_value **row,
                      tl_value **column)
{
    *row = tl_onnx_emit_along(c, tl_onnx_emit_range(c, rows), 2, 0);
    *column = tl_onnx_emit_along(c, tl_onnx_emit_range(c, columns), 2, 1);
}

tl_status tl_import_trilu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *k = tl_call_input(c, 1), *row, *column;
    bool upper = tl_call_int(c, "upper", 1) != 0;
    int rank;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    rank = x->shape.rank;
    if (rank < 2)
        return tl_call_bad(c, "its input has %d axes, at least 2 are required", rank);
    positions(c, x->shape.dims[rank - 2].extent, x->shape.dims[rank - 1].extent, &row, &column);
    if (k != NULL && tl_shape_elements(&k->shape) != 1)
        return tl_call_bad(c, "its input k is no scalar");
    if (k != NULL)
        row = tl_emit2(c, TL_OP_ADD, row, tl_onnx_emit_reshape(c, k, NULL, 0));
    tl_value *keeps =
        tl_emit2(c, upper ? TL_OP_GREATER_OR_EQUAL : TL_OP_LESS_OR_EQUAL, column, row);
    tl_result(c, 0, tl_onnx_emit_where(c, keeps, x, tl_onnx_emit_scalar(c, x->dtype, 0)));
    return TL_OK;
}

tl_status tl_import_eye_like(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *row, *column;
    tl_dtype dtype;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    dtype = x->dtype;
    if (tl_call_has(c, "dtype") && !tl_dtype_from_onnx((int)tl_call_int(c, "dtype", 1), &dtype))
        return tl_call_unsupported(c, "data type %s",
                                   tl_onnx_dtype_text((int)tl_call_int(c, "dtype", 1)));
    if (x->shape.rank != 2)
        return tl_call_bad(c, "its input has %d axes, not 2", x->shape.rank);
    positions(c, x->shape.dims[0].extent, x->shape.dims[1].extent, &row, &column);
    row = tl_onnx_emit_with(c, TL_OP_ADD, row, (double)tl_call_int(c, "k", 0));
    tl_result(c, 0, tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_EQUAL, row, column), dtype));
    return TL_OK;
}

/* ---- determinants ---- */

enum { LARGEST_DETERMINANT = 12 };

/* Row `row` of the last two axes, as [..., 1, n]; column likewise. */
static tl_value *line(tl_onnx_call *c, tl_value *x, bool is_row, int64_t at)
{
    return tl_onnx_emit_slice(c, x, x->shape.rank - (is_row ? 2 : 1), at, 1);
}

/* Elimination with the row of the largest pivot brought up, written out step by step: the matrix gets a row and a column
 * smaller each time. The exchange is a permutation of rows that is computed, hence a GatherElements. */
static tl_value *eliminate(tl_onnx_call *c, tl_value *x, tl_value **determinant)
{
    int rank = x->shape.rank, rows = rank - 2;
    int64_t n = x->shape.dims[rows].extent, axes[] = { rank - 2, rank - 1 };
    tl_value *first = line(c, x, false, 0), *size = tl_emit1(c, TL_OP_ABS, first);
    tl_node *argmax = tl_onnx_emit_node(c, TL_OP_ARGMAX, 1, &size);
    tl_attr_set_int(c->graph, argmax, "axis", rows);
    tl_attr_set_int(c->graph, argmax, "keepdims", 1);
    tl_value *best = tl_emitted(c, argmax); /* [..., 1, 1] */
    tl_value *number = tl_onnx_emit_along(c, tl_onnx_emit_range(c, n), rank, rows);
    tl_value *zero = tl_onnx_emit_scalar(c, TL_I64, 0);
    tl_value *from = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_EQUAL, number, best), zero, number);
    from = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_EQUAL, number, zero), best, from);
    int64_t extents[TL_MAX_RANK];
    tl_onnx_extents(x, extents);
    from = tl_onnx_emit_expand(c, from, extents, rank);
    x = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, x, from, rows);
    tl_value *pivot_row = line(c, x, true, 0), *pivot = line(c, pivot_row, false, 0);
    tl_value *swaps = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_EQUAL, best, zero),
                                         tl_onnx_emit_scalar(c, x->dtype, 1),
                                         tl_onnx_emit_scalar(c, x->dtype, -1));
    tl_value *factor =
        tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_emit2(c, TL_OP_MUL, pivot, swaps), 2, axes);
    *determinant = *determinant == NULL ? factor : tl_emit2(c, TL_OP_MUL, *determinant, factor);
    if (n == 1)
        return NULL;
    tl_value *is_zero = tl_onnx_emit_with(c, TL_OP_EQUAL, pivot, 0);
    tl_value *divisor = tl_onnx_emit_where(c, is_zero, tl_onnx_emit_scalar(c, x->dtype, 1), pivot);
    tl_value *below = tl_onnx_emit_slice(c, x, rows, 1, n - 1);
    tl_value *scale = tl_emit2(c, TL_OP_DIV, line(c, below, false, 0), divisor);
    below = tl_emit2(c, TL_OP_SUB, below, tl_emit2(c, TL_OP_MUL, scale, pivot_row));
    return tl_onnx_emit_slice(c, below, rank - 1, 1, n - 1);
}

tl_status tl_import_det(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *determinant = NULL;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    int rank = x->shape.rank;
    int64_t n = rank >= 2 ? x->shape.dims[rank - 1].extent : 0;
    if (rank < 2 || n < 1 || x->shape.dims[rank - 2].extent != n)
        return tl_call_bad(c, "its input is no square matrix");
    if (n > LARGEST_DETERMINANT)
        return tl_call_unsupported(c, "matrices of more than %d rows", LARGEST_DETERMINANT);
    while (x != NULL && c->status == TL_OK)
        x = eliminate(c, x, &determinant);
    tl_result(c, 0, determinant);
    return c->status;
}

/* ---- Einsum ----
 *
 * Two operands at a time: letters of both and of the result are a batch, of both alone a sum, of one alone its rows or
 * columns; the product is a MatMul over these, merged into one axis each. An ellipsis stands for capital letters that the
 * equation does not use. */

enum { MOST_LETTERS = 2 * TL_MAX_RANK };

typedef struct {
    char letters[MOST_LETTERS + 1];
    tl_value *value; /* an axis a letter, in their order */
} term;

/* The letters of one operand, without spaces, its ellipsis as digits: '0' for the last of the axes it stands for. */
static tl_status read_term(tl_onnx_call *c, const char *text, size_t size, int rank, int *dots,
                           char out[MOST_LETTERS + 1])
{
    int count = 0, letters = 0;
    bool has_dots = false;
    for (size_t i = 0; i < size; i++)
        letters += isalpha((unsigned char)text[i]) != 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ')
            continue;
        if (isalpha((unsigned char)text[i])) {
            if (count == MOST_LETTERS)
                return tl_call_bad(c, "a term of more than %d axes", MOST_LETTERS);
            out[count++] = text[i];
            continue;
        }
        if (size - i < 3 || memcmp(text + i, "...", 3) != 0 || has_dots)
            return tl_call_bad(c, "equation: '%.*s'", (int)(size < 80 ? size : 80), text);
        int covered = rank >= 0 ? rank - letters : *dots;
        if (covered < 0 || covered > TL_MAX_RANK || count + covered > MOST_LETTERS)
            return tl_call_bad(c, "equation: '%.*s' does not fit %d axes",
                               (int)(size < 80 ? size : 80), text, rank);
        for (int k = covered - 1; k >= 0; k--)
            out[count++] = (char)('0' + k);
        *dots = *dots > covered ? *dots : covered;
        has_dots = true;
        i += 2;
    }
    out[count] = '\0';
    if (rank >= 0 && count != rank)
        return tl_call_bad(c, "equation: '%.*s' does not fit %d axes", (int)(size < 80 ? size : 80),
                           text, rank);
    return TL_OK;
}

static int64_t extent_of(const term *t, char letter)
{
    const char *at = strchr(t->letters, letter);
    return at != NULL ? t->value->shape.dims[at - t->letters].extent : 1;
}

/* A letter twice in one term: its diagonal. */
static void take_diagonals(tl_onnx_call *c, term *t)
{
    for (int i = 0; t->letters[i] != '\0'; i++) {
        const char *again = strchr(t->letters + i + 1, t->letters[i]);
        if (again == NULL)
            continue;
        int k = (int)(again - t->letters), rank = t->value->shape.rank;
        int64_t extents[TL_MAX_RANK], axes = k;
        tl_onnx_extents(t->value, extents);
        tl_value *at = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extents[i]), rank, i);
        extents[k] = 1;
        at = tl_onnx_emit_expand(c, at, extents, rank);
        tl_value *y = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, t->value, at, k);
        t->value = tl_onnx_emit_axes(c, TL_OP_SQUEEZE, y, 1, &axes);
        memmove(t->letters + k, t->letters + k + 1, strlen(t->letters + k));
        i--;
    }
}

/* Adds up over letters that nobody else has. */
static void sum_over(tl_onnx_call *c, term *t, const char *kept)
{
    int64_t axes[TL_MAX_RANK];
    int count = 0, left = 0;
    for (int i = 0; t->letters[i] != '\0'; i++) {
        if (strchr(kept, t->letters[i]) == NULL)
            axes[count++] = i;
        else
            t->letters[left++] = t->letters[i];
    }
    t->letters[left] = '\0';
    if (count > 0)
        t->value = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, t->value, axes, count, false);
}

/* The term's axes in the order of `letters`, those that it has not as axes of one element. */
static tl_value *arrange(tl_onnx_call *c, const term *t, const char *letters)
{
    int64_t perm[TL_MAX_RANK], missing[TL_MAX_RANK];
    int count = 0, gaps = 0;
    for (int i = 0; letters[i] != '\0'; i++) {
        const char *at = strchr(t->letters, letters[i]);
        if (at != NULL)
            perm[count++] = at - t->letters;
        else
            missing[gaps++] = i;
    }
    tl_value *v = count > 1 ? tl_onnx_emit_transpose(c, t->value, perm) : t->value;
    return tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, v, gaps, missing);
}

/* [batch..., a..., b...] of the arranged value, b and a merged into an axis each. */
static tl_value *merge(tl_onnx_call *c, tl_value *v, int batch, int64_t rows, int64_t columns)
{
    int64_t extents[TL_MAX_RANK + 2];
    tl_onnx_extents(v, extents);
    extents[batch] = rows;
    extents[batch + 1] = columns;
    return tl_onnx_emit_reshape(c, v, extents, batch + 2);
}

static void add_letter(char *letters, char letter)
{
    size_t size = strlen(letters);
    letters[size] = letter;
    letters[size + 1] = '\0';
}

/* `letters`, behind what is there. */
static void add_letters(char *out, const char *letters)
{
    for (; *letters != '\0'; letters++)
        add_letter(out, *letters);
}

static tl_status multiply(tl_onnx_call *c, const term *a, const term *b, const char *kept,
                          term *out)
{
    char batch[MOST_LETTERS + 1] = "", rows[MOST_LETTERS + 1] = "", columns[MOST_LETTERS + 1] = "",
                              sums[MOST_LETTERS + 1] = "", order[3 * MOST_LETTERS + 1];
    int64_t row_count = 1, column_count = 1, sum_count = 1, extents[TL_MAX_RANK + 2];
    for (const char *l = a->letters; *l != '\0'; l++) {
        bool shared = strchr(b->letters, *l) != NULL, stays = strchr(kept, *l) != NULL;
        bool broadcasts = extent_of(a, *l) != extent_of(b, *l);
        add_letter(!shared ? rows : stays || broadcasts ? batch : sums, *l);
    }
    for (const char *l = b->letters; *l != '\0'; l++)
        if (strchr(a->letters, *l) == NULL)
            add_letter(columns, *l);
    int batches = (int)strlen(batch), rank = batches + 2;
    size_t axes = strlen(batch) + strlen(rows) + strlen(columns);
    if (rank > TL_MAX_RANK || axes > TL_MAX_RANK || axes + strlen(sums) > TL_MAX_RANK + 1)
        return tl_call_unsupported(c, "a product of more than %d axes", TL_MAX_RANK);
    for (const char *l = rows; *l != '\0'; l++)
        row_count *= extent_of(a, *l);
    for (const char *l = columns; *l != '\0'; l++)
        column_count *= extent_of(b, *l);
    for (const char *l = sums; *l != '\0'; l++)
        sum_count *= extent_of(a, *l);
    order[0] = '\0';
    add_letters(order, batch);
    add_letters(order, rows);
    add_letters(order, sums);
    tl_value *x = merge(c, arrange(c, a, order), batches, row_count, sum_count);
    order[0] = '\0';
    add_letters(order, batch);
    add_letters(order, sums);
    add_letters(order, columns);
    tl_value *y = merge(c, arrange(c, b, order), batches, sum_count, column_count);
    tl_value *z = sums[0] != '\0' ? tl_emit2(c, TL_OP_MATMUL, x, y) : tl_emit2(c, TL_OP_MUL, x, y);
    tl_onnx_extents(z, extents);
    out->letters[0] = '\0';
    add_letters(out->letters, batch);
    add_letters(out->letters, rows);
    add_letters(out->letters, columns);
    for (int i = batches; out->letters[i] != '\0'; i++)
        extents[i] = extent_of(strchr(rows, out->letters[i]) != NULL ? a : b, out->letters[i]);
    out->value = tl_onnx_emit_reshape(c, z, extents, (int)strlen(out->letters));
    return TL_OK;
}

static int compare_letters(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* Without an arrow: the ellipsis, then the letters that stand once, by the alphabet. */
static void implied_result(const term *terms, int count, int dots, char out[MOST_LETTERS + 1])
{
    int used[256] = { 0 }, at = 0;
    for (int i = 0; i < count; i++)
        for (const char *l = terms[i].letters; *l != '\0'; l++)
            used[(unsigned char)*l]++;
    for (int k = dots - 1; k >= 0; k--)
        out[at++] = (char)('0' + k);
    int first = at;
    for (int l = 'A'; l <= 'z'; l++)
        if (isalpha(l) && used[l] == 1 && at < MOST_LETTERS)
            out[at++] = (char)l;
    qsort(out + first, (size_t)(at - first), 1, compare_letters);
    out[at] = '\0';
}

/* Extents of one letter agree in all terms, or are 1. */
static tl_status check_extents(tl_onnx_call *c, const term *terms, int count)
{
    int64_t extents[256];
    memset(extents, -1, sizeof extents);
    for (int i = 0; i < count; i++)
        for (int k = 0; terms[i].letters[k] != '\0'; k++) {
            unsigned char l = (unsigned char)terms[i].letters[k];
            int64_t e = terms[i].value->shape.dims[k].extent;
            if (extents[l] >= 0 && extents[l] != e && extents[l] != 1 && e != 1)
                return tl_call_bad(c, "equation: '%c' is %lld and %lld", l, (long long)extents[l],
                                   (long long)e);
            extents[l] = extents[l] > e ? extents[l] : e;
        }
    return TL_OK;
}

static tl_status check_result(tl_onnx_call *c, const char *result, const term *terms, int count)
{
    for (const char *l = result; *l != '\0'; l++) {
        bool found = false;
        for (int i = 0; i < count; i++)
            found |= strchr(terms[i].letters, *l) != NULL;
        if (!found || strchr(l + 1, *l) != NULL)
            return tl_call_bad(c, "equation: the result's '%c' %s", *l,
                               found ? "stands twice" : "is in no term");
    }
    return strlen(result) <= TL_MAX_RANK
               ? TL_OK
               : tl_call_unsupported(c, "a result of more than %d axes", TL_MAX_RANK);
}

/* Letters that the terms from `first` on, or the result, still ask for. */
static void letters_kept(const char *result, const term *terms, int first, int count, char out[256])
{
    bool in[256] = { false };
    int at = 0;
    for (const char *l = result; *l != '\0'; l++)
        in[(unsigned char)*l] = true;
    for (int i = first; i < count; i++)
        for (const char *l = terms[i].letters; *l != '\0'; l++)
            in[(unsigned char)*l] = true;
    for (int l = 1; l < 256; l++)
        if (in[l])
            out[at++] = (char)l;
    out[at] = '\0';
}

tl_status tl_import_einsum(tl_onnx_call *c)
{
    const char *equation = tl_call_string(c, "equation", ""), *arrow = strstr(equation, "->");
    term *terms = TL_NEW_ARRAY(c->arena, term, c->input_count);
    size_t left = arrow != NULL ? (size_t)(arrow - equation) : strlen(equation);
    const char *at = equation;
    char result[MOST_LETTERS + 1], kept[256];
    int dots = 0;
    for (int i = 0; i < c->input_count; i++) {
        size_t room = left - (size_t)(at - equation), size = 0;
        while (size < room && at[size] != ',')
            size++;
        if ((size == room) != (i == c->input_count - 1))
            return tl_call_bad(c, "equation '%.80s' has not %d terms", equation, c->input_count);
        TL_TRY(tl_need_shape(c, c->inputs[i]));
        terms[i].value = c->inputs[i];
        TL_TRY(read_term(c, at, size, c->inputs[i]->shape.rank, &dots, terms[i].letters));
        at += size + (size < room);
    }
    TL_TRY(check_extents(c, terms, c->input_count));
    if (arrow != NULL)
        TL_TRY(read_term(c, arrow + 2, strlen(arrow + 2), -1, &dots, result));
    else
        implied_result(terms, c->input_count, dots, result);
    TL_TRY(check_result(c, result, terms, c->input_count));

    for (int i = 0; i < c->input_count; i++)
        take_diagonals(c, &terms[i]);
    term all = terms[0];
    for (int i = 1; i < c->input_count; i++) {
        term product;
        letters_kept(result, terms, i, c->input_count, kept);
        sum_over(c, &all, kept);
        letters_kept(result, terms, i + 1, c->input_count, kept);
        for (const char *l = all.letters; *l != '\0'; l++)
            if (strchr(kept, *l) == NULL)
                add_letter(kept, *l);
        sum_over(c, &terms[i], kept);
        letters_kept(result, terms, i + 1, c->input_count, kept);
        TL_TRY(multiply(c, &all, &terms[i], kept, &product));
        all = product;
    }
    sum_over(c, &all, result);
    tl_result(c, 0, arrange(c, &all, result));
    return TL_OK;
}
