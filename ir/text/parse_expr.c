/* ir/text/parse_expr.c: expressions. Precedence from low to high: or, and, not, comparisons, + -,
 * * / // %, unary minus, atoms. A literal next to an operand of another dtype takes that dtype. */
#include <assert.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/text/parse_private.h"

enum { MAX_DEPTH = 100, MAX_OPERATORS = 1000 };

/* An operand: an expression, or a literal that has not got its dtype yet. */
typedef struct {
    const tl_expr *e; /* NULL: a literal */
    bool is_float, negative;
    uint64_t magnitude;
    double number;
    const tl_token *token;
} operand;

static tl_status parse_or(tl_parser *p, operand *out);

/* ---- literals ---- */

static tl_status settle_int(tl_parser *p, operand *a, tl_dtype dtype)
{
    assert(!tl_dtype_is_float(dtype) && a->e == NULL);
    const tl_dtype_info *info = &tl_dtype_infos[dtype];
    uint64_t limit = a->negative ? 0 - (uint64_t)info->least : info->largest;
    if (a->magnitude > limit)
        return tl_parse_fail_at(p, a->token, "%s%llu does not fit %s", a->negative ? "-" : "",
                                (unsigned long long)a->magnitude, tl_dtype_infos[dtype].text);
    a->e = tl_int_of(p->arena, dtype, (int64_t)(a->negative ? 0 - a->magnitude : a->magnitude));
    return TL_OK;
}

/* Gives a literal the dtype `dtype`. */
static tl_status settle_as(tl_parser *p, operand *a, tl_dtype dtype)
{
    if (a->e != NULL)
        return TL_OK;
    if (tl_dtype_is_float(dtype)) {
        double number = a->is_float ? a->number : (double)a->magnitude;
        a->e = tl_float(p->arena, dtype, a->negative ? -number : number);
        return TL_OK;
    }
    if (a->is_float || !tl_dtype_is_int(dtype))
        return tl_parse_fail_at(p, a->token, "the literal %s cannot be %s", tl_token_text(a->token),
                                tl_dtype_infos[dtype].text);
    return settle_int(p, a, dtype);
}

static tl_status settle(tl_parser *p, operand *a)
{
    return settle_as(p, a, a->is_float ? TL_F32 : TL_I64);
}

/* Two operands of one dtype, or a refusal. */
static tl_status unify(tl_parser *p, const tl_token *at, operand *a, operand *b)
{
    if (a->e == NULL && b->e != NULL)
        TL_TRY(settle_as(p, a, b->e->dtype));
    else if (b->e == NULL && a->e != NULL)
        TL_TRY(settle_as(p, b, a->e->dtype));
    else if (a->e == NULL && a->is_float != b->is_float)
        a->is_float ? (void)settle_as(p, b, TL_F32) : (void)settle_as(p, a, TL_F32);
    TL_TRY(settle(p, a));
    TL_TRY(settle(p, b));
    if (a->e->dtype != b->e->dtype)
        return tl_parse_fail_at(p, at, "%s takes operands of one dtype, not %s and %s: cast one",
                                tl_token_text(at), tl_dtype_infos[a->e->dtype].text,
                                tl_dtype_infos[b->e->dtype].text);
    return TL_OK;
}

static tl_status need_bool(tl_parser *p, const tl_token *at, operand *a)
{
    TL_TRY(settle(p, a));
    if (a->e->dtype != TL_BOOL)
        return tl_parse_fail_at(p, at, "%s takes conditions, not %s", tl_token_text(at),
                                tl_dtype_infos[a->e->dtype].text);
    return TL_OK;
}

static operand of_expr(const tl_expr *e, const tl_token *token)
{
    return (operand){ .e = e, .token = token };
}

/* ---- atoms ---- */

/* The arguments of a call, `count` of them, all of one dtype. The '(' is next. */
static tl_status parse_args(tl_parser *p, const tl_token *at, int count, operand *args)
{
    TL_TRY(tl_parse_expect(p, "("));
    for (int i = 0; i < count; i++) {
        if (i > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(parse_or(p, &args[i]));
    }
    if (!tl_parse_at(p, ")"))
        return tl_parse_fail(p, "%s takes %d operand%s; expected ')', found %s", tl_token_text(at),
                             count, count == 1 ? "" : "s", tl_token_text(p->token));
    return tl_parse_expect(p, ")");
}

static tl_status parse_cast(tl_parser *p, const tl_token *at, tl_dtype dtype, operand *out)
{
    operand a;
    TL_TRY(parse_args(p, at, 1, &a));
    if (a.e == NULL && dtype == TL_BOOL)
        TL_TRY(settle(p, &a));
    else if (a.e == NULL && (tl_dtype_is_float(dtype) || !a.is_float))
        TL_TRY(settle_as(p, &a, dtype));
    TL_TRY(settle(p, &a));
    /* f64(inf) is the infinity of f64 and not a cast that folds to it; both give the same node */
    *out = of_expr(tl_cast(p->arena, dtype, a.e), at);
    return TL_OK;
}

static tl_status parse_bits(tl_parser *p, const tl_token *at, tl_dtype dtype, operand *out)
{
    operand a;
    TL_TRY(parse_args(p, at, 1, &a));
    TL_TRY(settle(p, &a));
    if (!tl_dtype_has_bits_of(dtype, a.e->dtype))
        return tl_parse_fail_at(p, at,
                                "%s takes a dtype of as many bits, one of the two a float: not %s",
                                tl_token_text(at), tl_dtype_infos[a.e->dtype].text);
    *out = of_expr(tl_bits(p->arena, dtype, a.e), at);
    return TL_OK;
}

/* An integer literal where only floats can stand. */
static void make_float(operand *a)
{
    if (a->e != NULL || a->is_float)
        return;
    a->is_float = true;
    a->number = (double)a->magnitude;
}

static tl_status parse_function(tl_parser *p, const tl_token *at, tl_function f, operand *out)
{
    const tl_function_info *info = &tl_function_infos[f];
    operand args[2];
    TL_TRY(parse_args(p, at, info->arity, args));
    for (int i = 0; i < info->arity && info->operands == TL_OPERANDS_FLOAT; i++)
        make_float(&args[i]);
    if (info->arity == 2)
        TL_TRY(unify(p, at, &args[0], &args[1]));
    TL_TRY(settle(p, &args[0]));
    tl_dtype dtype = args[0].e->dtype;
    bool good = info->operands == TL_OPERANDS_FLOAT ? tl_dtype_is_float(dtype)
                : info->operands == TL_OPERANDS_INT ? tl_dtype_is_int(dtype)
                                                    : dtype != TL_BOOL;
    if (!good)
        return tl_parse_fail_at(p, at, "%s does not take %s", info->text,
                                tl_dtype_infos[dtype].text);
    const tl_expr *exprs[2] = { args[0].e, info->arity == 2 ? args[1].e : NULL };
    *out = of_expr(tl_call(p->arena, f, exprs), at);
    return TL_OK;
}

static tl_status parse_extremum(tl_parser *p, const tl_token *at, tl_expr_kind kind, operand *out)
{
    operand args[2];
    TL_TRY(parse_args(p, at, 2, args));
    TL_TRY(unify(p, at, &args[0], &args[1]));
    if (args[0].e->dtype == TL_BOOL)
        return tl_parse_fail_at(p, at, "%s does not take bool", tl_token_text(at));
    *out = of_expr(tl_binary(p->arena, kind, args[0].e, args[1].e), at);
    return TL_OK;
}

static tl_status parse_select(tl_parser *p, const tl_token *at, operand *out)
{
    operand args[3];
    TL_TRY(parse_args(p, at, 3, args));
    TL_TRY(need_bool(p, at, &args[0]));
    TL_TRY(unify(p, at, &args[1], &args[2]));
    *out = of_expr(tl_select(p->arena, args[0].e, args[1].e, args[2].e), at);
    return TL_OK;
}

/* A name that is none of the language's: a variable or a load. */
static tl_status parse_reference(tl_parser *p, const tl_token *at, operand *out)
{
    const tl_symbol *symbol = tl_parse_find(p, at->text);
    if (symbol == NULL)
        return tl_parse_fail_at(p, at, "%s is not defined here", at->text);
    if (symbol->kind == TL_SYMBOL_BUFFER) {
        const tl_expr *const *indices;
        tl_parse_mark_read(p, at);
        if (!tl_parse_at(p, "["))
            return tl_parse_fail_at(p, at, "%s is a buffer: write %s[...]", at->text, at->text);
        TL_TRY(tl_parse_indices(p, symbol->buffer, at, &indices));
        *out = of_expr(tl_load(p->arena, symbol->buffer, indices), at);
        return TL_OK;
    }
    if (tl_parse_at(p, "["))
        return tl_parse_fail_at(p, at, "%s is a variable, not a buffer", at->text);
    if (p->iters_only != NULL && symbol->kind == TL_SYMBOL_LOOP)
        return tl_parse_fail_at(p, at,
                                "the stores of block %s speak of its iters only; %s is a loop's "
                                "variable",
                                p->iters_only, at->text);
    *out = of_expr(tl_ref(p->arena, symbol->var), at);
    return TL_OK;
}

static tl_status parse_named(tl_parser *p, operand *out)
{
    const tl_token *at = p->token++;
    tl_function function;
    tl_dtype dtype;
    bool calls = tl_parse_at(p, "(");
    if (strcmp(at->text, "true") == 0 || strcmp(at->text, "false") == 0) {
        *out = of_expr(tl_bool(p->arena, at->text[0] == 't'), at);
        return TL_OK;
    }
    if (strcmp(at->text, "inf") == 0 || strcmp(at->text, "nan") == 0) {
        double number = at->text[0] == 'i' ? __builtin_inf() : __builtin_nan("");
        *out = (operand){ .is_float = true, .number = number, .token = at };
        return TL_OK;
    }
    if (calls && strcmp(at->text, "min") == 0)
        return parse_extremum(p, at, TL_EXPR_MIN, out);
    if (calls && strcmp(at->text, "max") == 0)
        return parse_extremum(p, at, TL_EXPR_MAX, out);
    if (calls && strcmp(at->text, "select") == 0)
        return parse_select(p, at, out);
    if (calls && tl_dtype_from_text(at->text, &dtype))
        return parse_cast(p, at, dtype, out);
    if (calls && tl_bits_from_text(at->text, &dtype))
        return parse_bits(p, at, dtype, out);
    if (calls && tl_function_from_text(at->text, &function))
        return parse_function(p, at, function, out);
    if (tl_is_reserved(at->text))
        return tl_parse_fail_at(p, at, "%s cannot stand inside an expression%s", at->text,
                                calls ? ": a reduction is the whole right side of a block's store"
                                      : "");
    return parse_reference(p, at, out);
}

static tl_status parse_atom(tl_parser *p, operand *out)
{
    const tl_token *at = p->token;
    switch (at->kind) {
    case TL_TOKEN_INT:
        p->token++;
        *out = (operand){ .magnitude = at->value, .token = at };
        return TL_OK;
    case TL_TOKEN_FLOAT:
        p->token++;
        *out = (operand){ .is_float = true, .number = at->number, .token = at };
        return TL_OK;
    case TL_TOKEN_NAME:
        return parse_named(p, out);
    case TL_TOKEN_PUNCTUATION:
        if (tl_parse_accept(p, "(")) {
            TL_TRY(parse_or(p, out));
            return tl_parse_expect(p, ")");
        }
        break;
    case TL_TOKEN_END:
    case TL_TOKEN_NEWLINE:
    case TL_TOKEN_INDENT:
    case TL_TOKEN_DEDENT:
        break;
    }
    return tl_parse_fail(p, "expected an expression, found %s", tl_token_text(at));
}

/* ---- operators ---- */

static tl_status count_operator(tl_parser *p)
{
    if (++p->operators > MAX_OPERATORS)
        return tl_parse_fail(p, "an expression has more than %d operators", MAX_OPERATORS);
    return TL_OK;
}

static tl_status parse_unary(tl_parser *p, operand *out)
{
    const tl_token *at = p->token;
    bool minus = false;
    for (; tl_parse_accept(p, "-"); minus = !minus)
        TL_TRY(count_operator(p));
    TL_TRY(parse_atom(p, out));
    if (!minus)
        return TL_OK;
    if (out->e == NULL) {
        out->negative = !out->negative;
        return TL_OK;
    }
    if (out->e->dtype == TL_BOOL)
        return tl_parse_fail_at(p, at, "- does not take bool");
    tl_dtype dtype = out->e->dtype;
    const tl_expr *one =
        tl_dtype_is_float(dtype) ? tl_float(p->arena, dtype, -1) : tl_int_of(p->arena, dtype, -1);
    *out = of_expr(tl_mul(p->arena, out->e, one), at);
    return TL_OK;
}

static tl_status apply(tl_parser *p, const tl_token *at, tl_expr_kind kind, operand *a, operand *b)
{
    TL_TRY(count_operator(p));
    TL_TRY(unify(p, at, a, b));
    tl_dtype dtype = a->e->dtype;
    bool integers = kind == TL_EXPR_FLOORDIV || kind == TL_EXPR_FLOORMOD;
    bool any = kind == TL_EXPR_EQ || kind == TL_EXPR_NE;
    if ((!any && dtype == TL_BOOL) || (integers && !tl_dtype_is_int(dtype)))
        return tl_parse_fail_at(p, at, "%s does not take %s", tl_token_text(at),
                                tl_dtype_infos[dtype].text);
    *a = of_expr(tl_binary(p->arena, kind, a->e, b->e), at);
    return TL_OK;
}

typedef struct {
    const char *text;
    tl_expr_kind kind;
    bool swap;
} mark;

static const mark sums[] = { { "+", TL_EXPR_ADD, false }, { "-", TL_EXPR_SUB, false }, { 0 } };
static const mark products[] = { { "*", TL_EXPR_MUL, false },
                                 { "/", TL_EXPR_DIV, false },
                                 { "//", TL_EXPR_FLOORDIV, false },
                                 { "%", TL_EXPR_FLOORMOD, false },
                                 { 0 } };
static const mark comparisons[] = { { "<", TL_EXPR_LT, false },
                                    { "<=", TL_EXPR_LE, false },
                                    { ">", TL_EXPR_LT, true },
                                    { ">=", TL_EXPR_LE, true },
                                    { "==", TL_EXPR_EQ, false },
                                    { "!=", TL_EXPR_NE, false },
                                    { 0 } };

static const mark *accept_mark(tl_parser *p, const mark *marks)
{
    for (; marks->text != NULL; marks++)
        if (p->token->kind == TL_TOKEN_PUNCTUATION && tl_parse_accept(p, marks->text))
            return marks;
    return NULL;
}

static tl_status parse_chain(tl_parser *p, const mark *marks,
                             tl_status (*next)(tl_parser *, operand *), operand *out)
{
    TL_TRY(next(p, out));
    for (;;) {
        const tl_token *at = p->token;
        const mark *m = accept_mark(p, marks);
        operand b;
        if (m == NULL)
            return TL_OK;
        TL_TRY(next(p, &b));
        TL_TRY(apply(p, at, m->kind, out, &b));
    }
}

static tl_status parse_product(tl_parser *p, operand *out)
{
    return parse_chain(p, products, parse_unary, out);
}

static tl_status parse_sum(tl_parser *p, operand *out)
{
    return parse_chain(p, sums, parse_product, out);
}

static tl_status parse_comparison(tl_parser *p, operand *out)
{
    TL_TRY(parse_sum(p, out));
    const tl_token *at = p->token;
    const mark *m = accept_mark(p, comparisons);
    operand b;
    if (m == NULL)
        return TL_OK;
    TL_TRY(parse_sum(p, &b));
    operand *first = m->swap ? &b : out, *second = m->swap ? out : &b;
    TL_TRY(apply(p, at, m->kind, first, second));
    *out = *first;
    if (accept_mark(p, comparisons) != NULL)
        return tl_parse_fail(p, "comparisons do not chain: join them with `and`");
    return TL_OK;
}

static tl_status parse_not(tl_parser *p, operand *out)
{
    const tl_token *at = p->token;
    bool negate = false;
    for (; tl_parse_accept(p, "not"); negate = !negate)
        TL_TRY(count_operator(p));
    TL_TRY(parse_comparison(p, out));
    if (at == p->token || strcmp(tl_token_text(at), "not") != 0)
        return TL_OK;
    TL_TRY(need_bool(p, at, out));
    if (negate)
        *out = of_expr(tl_not(p->arena, out->e), at);
    return TL_OK;
}

static tl_status parse_logic(tl_parser *p, const char *word, tl_expr_kind kind,
                             tl_status (*next)(tl_parser *, operand *), operand *out)
{
    TL_TRY(next(p, out));
    for (;;) {
        const tl_token *at = p->token;
        operand b;
        if (!tl_parse_accept(p, word))
            return TL_OK;
        TL_TRY(count_operator(p));
        TL_TRY(next(p, &b));
        TL_TRY(need_bool(p, at, out));
        TL_TRY(need_bool(p, at, &b));
        *out = of_expr(tl_binary(p->arena, kind, out->e, b.e), at);
    }
}

static tl_status parse_and(tl_parser *p, operand *out)
{
    return parse_logic(p, "and", TL_EXPR_AND, parse_not, out);
}

static tl_status parse_or(tl_parser *p, operand *out)
{
    if (++p->depth > MAX_DEPTH)
        return tl_parse_fail(p, "expressions are nested more than %d deep", MAX_DEPTH);
    TL_TRY(parse_logic(p, "or", TL_EXPR_OR, parse_and, out));
    p->depth--;
    return TL_OK;
}

/* ---- whole expressions ---- */

tl_status tl_parse_expr(tl_parser *p, tl_dtype want, const tl_expr **out)
{
    operand a;
    const tl_token *at = p->token;
    TL_TRY(parse_or(p, &a));
    if (a.e != NULL && tl_expr_is_too_large(a.e))
        return tl_parse_fail_at(
            p, at, "the expression has %u nodes on %u levels, at most %d on %d are allowed",
            a.e->size, a.e->depth, TL_EXPR_LARGEST, TL_EXPR_DEEPEST);
    TL_TRY(want == TL_DTYPE_COUNT ? settle(p, &a) : settle_as(p, &a, want));
    *out = a.e;
    return TL_OK;
}

tl_status tl_parse_condition(tl_parser *p, const tl_expr **out)
{
    const tl_token *at = p->token;
    TL_TRY(tl_parse_expr(p, TL_DTYPE_COUNT, out));
    if ((*out)->dtype != TL_BOOL)
        return tl_parse_fail_at(p, at, "expected a condition, found a value of %s",
                                tl_dtype_infos[(*out)->dtype].text);
    return TL_OK;
}

tl_status tl_parse_index(tl_parser *p, const tl_expr **out)
{
    const tl_token *at = p->token;
    TL_TRY(tl_parse_expr(p, TL_DTYPE_COUNT, out));
    if ((*out)->dtype != TL_I64)
        return tl_parse_fail_at(p, at, "an index is i64, not %s",
                                tl_dtype_infos[(*out)->dtype].text);
    return TL_OK;
}

tl_status tl_parse_indices(tl_parser *p, const tl_buffer *buffer, const tl_token *first,
                           const tl_expr *const **out)
{
    const tl_expr **indices = TL_NEW_ARRAY(p->arena, const tl_expr *, buffer->rank);
    int count = 0;
    TL_TRY(tl_parse_expect(p, "["));
    while (!tl_parse_at(p, "]")) {
        const tl_expr *index;
        if (count > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(tl_parse_index(p, &index));
        if (count < buffer->rank)
            indices[count] = index;
        count++;
    }
    TL_TRY(tl_parse_expect(p, "]"));
    if (count != buffer->rank)
        return tl_parse_fail_at(p, first, "%s has %d ax%s, not %d", buffer->name, buffer->rank,
                                buffer->rank == 1 ? "is" : "es", count);
    *out = indices;
    return TL_OK;
}

tl_status tl_parse_buffer_name(tl_parser *p, const tl_buffer **out)
{
    const tl_token *at = p->token;
    const char *name;
    TL_TRY(tl_parse_name(p, "a buffer", &name));
    const tl_symbol *symbol = tl_parse_find(p, name);
    if (symbol == NULL)
        return tl_parse_fail_at(p, at, "%s is not defined here", name);
    if (symbol->kind != TL_SYMBOL_BUFFER)
        return tl_parse_fail_at(p, at, "%s is a variable, not a buffer", name);
    *out = symbol->buffer;
    return TL_OK;
}

tl_status tl_parse_access(tl_parser *p, const tl_buffer **buffer, const tl_expr *const **indices)
{
    const tl_token *at = p->token;
    TL_TRY(tl_parse_buffer_name(p, buffer));
    return tl_parse_indices(p, *buffer, at, indices);
}

tl_status tl_parse_extent(tl_parser *p, const tl_expr **out)
{
    if (p->token->kind != TL_TOKEN_INT || p->token->value != 0)
        return tl_parse_fail(p, "a range starts at 0, not at %s", tl_token_text(p->token));
    p->token++;
    TL_TRY(tl_parse_expect(p, ".."));
    const tl_token *at = p->token;
    TL_TRY(tl_parse_index(p, out));
    if (!tl_prove_le(p->arena, tl_int(p->arena, 0), *out))
        return tl_parse_fail_at(p, at, "the extent %s can be negative",
                                tl_expr_text(p->arena, *out));
    if (tl_expr_has_load(*out))
        return tl_parse_fail_at(p, at, "an extent cannot depend on data");
    return TL_OK;
}
