/* runtime/abi/formula.c: a formula is read word by word; operands lie on a small stack. */
#include "runtime/abi/formula.h"
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "runtime/base/checked.h"

enum { MAX_TEXT = 4096, MAX_DEPTH = 32, MAX_WORD = 24 };

/* false: the result is no number of 64 bits. */
typedef bool apply_fn(int64_t a, int64_t b, int64_t *out);

static bool add(int64_t a, int64_t b, int64_t *out)
{
    return !tl_add_overflows(a, b, out);
}

static bool subtract(int64_t a, int64_t b, int64_t *out)
{
    return !tl_sub_overflows(a, b, out);
}

static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    return !tl_mul_overflows(a, b, out);
}

static bool divide(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = tl_floordiv(a, b);
    return true;
}

static bool modulo(int64_t a, int64_t b, int64_t *out)
{
    int64_t quotient;
    if (!divide(a, b, &quotient))
        return false;
    *out = a - quotient * b;
    return true;
}

static bool smaller(int64_t a, int64_t b, int64_t *out)
{
    *out = tl_min64(a, b);
    return true;
}

static bool larger(int64_t a, int64_t b, int64_t *out)
{
    *out = tl_max64(a, b);
    return true;
}

static const struct {
    const char *text;
    apply_fn *apply;
} operators[] = { { "+", add },    { "-", subtract },  { "*", multiply }, { "/", divide },
                  { "%", modulo }, { "min", smaller }, { "max", larger } };

typedef struct {
    enum { WORD_NUMBER, WORD_DIM, WORD_OPERATOR, WORD_NONE } kind;
    int64_t number; /* or the dim's or the operator's index */
} word;

static bool read_digits(const char *text, int64_t *out)
{
    *out = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (*text < '0' || *text > '9' || tl_mul_overflows(*out, 10, out) ||
            tl_add_overflows(*out, *text - '0', out))
            return false;
    return true;
}

static word classify(const char *text)
{
    word w = { WORD_NUMBER, 0 };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(text, operators[i].text) == 0)
            return (word){ WORD_OPERATOR, (int64_t)i };
    if (text[0] == 'd' && read_digits(text + 1, &w.number))
        w.kind = WORD_DIM;
    else if (text[0] == '-' && read_digits(text + 1, &w.number))
        w.number = -w.number;
    else if (!read_digits(text, &w.number))
        w.kind = WORD_NONE;
    return w;
}

/* The next word into `out`; false: there is none, or it is too long (*text is then not at the end). */
static bool next_word(const char **text, char out[MAX_WORD + 1])
{
    *text += strspn(*text, " ");
    size_t size = strcspn(*text, " ");
    if (size == 0 || size > MAX_WORD)
        return false;
    memcpy(out, *text, size);
    out[size] = '\0';
    *text += size;
    return true;
}

tl_status tl_formula_check(const char *text, int dim_count, tl_diag *diag)
{
    char name[MAX_WORD + 1];
    int depth = 0;

    if (strlen(text) > MAX_TEXT)
        return tl_fail(diag, TL_BAD_TEXT, "formula: longer than %d characters", MAX_TEXT);
    const char *rest = text;
    while (next_word(&rest, name)) {
        word w = classify(name);
        if (w.kind == WORD_NONE || (w.kind == WORD_DIM && w.number >= dim_count))
            return tl_fail(diag, TL_BAD_TEXT, "formula: '%s' is no number, operator or dim of %d",
                           name, dim_count);
        if (w.kind == WORD_OPERATOR && depth < 2)
            return tl_fail(diag, TL_BAD_TEXT, "formula: '%s' has not two operands", name);
        depth += w.kind == WORD_OPERATOR ? -1 : 1;
        if (depth > MAX_DEPTH)
            return tl_fail(diag, TL_BAD_TEXT, "formula: more than %d open operands", MAX_DEPTH);
    }
    if (*rest != '\0' || depth != 1)
        return tl_fail(diag, TL_BAD_TEXT, "formula: '%.60s' does not come to one number", text);
    return TL_OK;
}

tl_status tl_formula_evaluate(const char *text, const int64_t *dims, int64_t *out, tl_diag *diag)
{
    int64_t stack[MAX_DEPTH];
    char name[MAX_WORD + 1];
    int depth = 0;

    for (const char *rest = text; next_word(&rest, name);) {
        word w = classify(name);
        assert(w.kind != WORD_NONE && (w.kind == WORD_OPERATOR ? depth >= 2 : depth < MAX_DEPTH));
        if (w.kind != WORD_OPERATOR) {
            stack[depth++] = w.kind == WORD_DIM ? dims[w.number] : w.number;
            continue;
        }
        depth--;
        if (!operators[w.number].apply(stack[depth - 1], stack[depth], &stack[depth - 1]))
            return tl_fail(diag, TL_BAD_ARGUMENT, "formula '%.60s' has no value at '%s'", text,
                           name);
    }
    assert(depth == 1);
    *out = stack[0];
    return TL_OK;
}
