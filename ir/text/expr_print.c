/* ir/text/expr_print.c: the text of expressions (grammar in ir/README.md).
 *
 * Canonical sums print positive addends first, the larger coefficient first (i0*8 + i1), which the
 * parser brings back to the same tree. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/buffer.h"
#include "ir/expr/index_private.h"
#include "ir/text/text_private.h"

/* How tightly an operator binds; an operand that binds less gets parentheses. */
enum { OR = 1, AND, NOT, COMPARE, SUM, PRODUCT, NEGATED, ATOM };

typedef struct {
    const tl_namer *namer;
    tl_text *out;
} printer;

static void print(printer *p, const tl_expr *e, int around);

/* ---- constants ---- */

static double rounded(double number, tl_dtype dtype)
{
    uint64_t element = 0;
    tl_number_store(dtype, &element, 0, (tl_number){ .f = number });
    return tl_number_load(dtype, &element, 0).f;
}

/* With the fewest digits that read back exactly. */
static void print_float(double number, tl_dtype dtype, tl_text *out)
{
    char text[40];
    if (isnan(number) || isinf(number)) {
        tl_text_add(out, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (rounded(strtod(text, NULL), dtype) == number)
            break;
    }
    tl_text_add(out, text);
    if (strpbrk(text, ".e") == NULL)
        tl_text_add(out, ".0");
}

/* `e` as a literal of `dtype` would print: "1.5", "i8(3)", "f64(inf)". */
static void print_constant(const tl_expr *e, tl_text *out)
{
    assert(tl_is_constant(e));
    bool plain = e->dtype == TL_I64 || e->dtype == TL_F32 || e->dtype == TL_BOOL;
    if (!plain)
        tl_text_format(out, "%s(", tl_dtype_infos[e->dtype].text);
    if (e->kind == TL_EXPR_FLOAT)
        print_float(e->u.number, e->dtype, out);
    else if (e->dtype == TL_BOOL)
        tl_text_add(out, e->u.value ? "true" : "false");
    else if (e->dtype == TL_U64)
        tl_text_format(out, "%llu", (unsigned long long)e->u.value);
    else
        tl_text_format(out, "%lld", (long long)e->u.value);
    if (!plain)
        tl_text_add(out, ")");
}

/* ---- sums ---- */

/* Larger coefficients first, positive before negative. */
static bool prints_before(const tl_addend *a, const tl_addend *b)
{
    if ((a->coefficient > 0) != (b->coefficient > 0))
        return a->coefficient > 0;
    return a->coefficient > 0 ? a->coefficient > b->coefficient : a->coefficient < b->coefficient;
}

/* A product with a division in it: -(x//4) is not (-x)//4, which is how -x//4 reads. */
static bool divides(const tl_expr *term)
{
    if (term->kind == TL_EXPR_MUL)
        return divides(term->args[0]) || divides(term->args[1]);
    return term->kind == TL_EXPR_FLOORDIV || term->kind == TL_EXPR_FLOORMOD;
}

static void print_addend(printer *p, const tl_addend *a, bool first)
{
    assert(a->term != NULL && a->coefficient != 0);
    int64_t c = a->coefficient;
    bool minus = c < 0 && c != INT64_MIN;
    if (minus)
        c = -c;
    if (!first)
        tl_text_add(p->out, minus ? " - " : " + ");
    else if (minus)
        tl_text_add(p->out, "-");
    bool closed = first && minus && divides(a->term);
    print(p, a->term, closed ? NEGATED : c == 1 ? SUM + 1 : PRODUCT);
    if (c != 1)
        tl_text_format(p->out, "*%lld", (long long)c);
}

static void print_constant_addend(printer *p, int64_t c, bool first)
{
    if (first || c == INT64_MIN)
        tl_text_format(p->out, "%s%lld", first ? "" : " + ", (long long)c);
    else
        tl_text_format(p->out, " %c %lld", c < 0 ? '-' : '+', (long long)(c < 0 ? -c : c));
}

static void print_sum(printer *p, const tl_sum *sum)
{
    assert(sum->count >= 0 && sum->count <= TL_MAX_ADDENDS);
    tl_addend sorted[TL_MAX_ADDENDS];
    for (int i = 0; i < sum->count; i++) { /* insertion sort: stable and short */
        int at = i;
        for (; at > 0 && prints_before(&sum->addends[i], &sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = sum->addends[i];
    }
    bool constant_first = sum->constant > 0 && sum->count > 0 && sorted[0].coefficient < 0;
    if (constant_first)
        print_constant_addend(p, sum->constant, true);
    for (int i = 0; i < sum->count; i++)
        print_addend(p, &sorted[i], i == 0 && !constant_first);
    if (sum->constant != 0 && !constant_first)
        print_constant_addend(p, sum->constant, sum->count == 0);
}

/* ---- operators ---- */

static int binding_of(const tl_expr *e)
{
    switch (e->kind) {
    case TL_EXPR_OR:
        return OR;
    case TL_EXPR_AND:
        return AND;
    case TL_EXPR_NOT:
        return NOT;
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
        return COMPARE;
    case TL_EXPR_ADD:
    case TL_EXPR_SUB:
        return SUM;
    case TL_EXPR_MUL:
        return e->dtype == TL_I64 && e->args[1]->kind == TL_EXPR_INT && e->args[1]->u.value < 0
                   ? SUM /* prints with a minus in front */
                   : PRODUCT;
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
        return PRODUCT;
    case TL_EXPR_INT:
        return (e->dtype == TL_I64 && e->u.value < 0) ? NEGATED : ATOM;
    case TL_EXPR_FLOAT:
        return e->dtype == TL_F32 && signbit(e->u.number) ? NEGATED : ATOM;
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return ATOM;
}

static const char *var_name(const printer *p, const tl_var *var)
{
    return p->namer == NULL ? var->name : p->namer->var(p->namer, var);
}

static void print_list(printer *p, const char *before, const tl_expr *e, const char *after)
{
    tl_text_add(p->out, before);
    for (int i = 0; i < e->arg_count; i++) {
        if (i > 0)
            tl_text_add(p->out, ", ");
        print(p, e->args[i], 0);
    }
    tl_text_add(p->out, after);
}

static void print_binary(printer *p, const tl_expr *e, int binding)
{
    bool tight = e->kind == TL_EXPR_MUL || e->kind == TL_EXPR_DIV || e->kind == TL_EXPR_FLOORDIV;
    /* comparisons do not chain: both operands bind tighter */
    print(p, e->args[0], binding == COMPARE ? COMPARE + 1 : binding);
    tl_text_format(p->out, tight ? "%s" : " %s ", tl_expr_infos[e->kind].text);
    print(p, e->args[1], binding + 1);
}

static void print_bare(printer *p, const tl_expr *e, int binding)
{
    switch (e->kind) {
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
        print_constant(e, p->out);
        return;
    case TL_EXPR_VAR:
        tl_text_add(p->out, var_name(p, e->u.var));
        return;
    case TL_EXPR_LOAD:
        tl_text_add(p->out,
                    p->namer == NULL ? e->u.buffer->name : p->namer->buffer(p->namer, e->u.buffer));
        print_list(p, "[", e, "]");
        return;
    case TL_EXPR_ADD:
    case TL_EXPR_MUL:
        if (e->dtype == TL_I64 && (e->kind == TL_EXPR_ADD || binding == SUM)) {
            tl_sum sum;
            tl_sum_clear(&sum);
            tl_sum_add(&sum, e, 1);
            if (sum.count != 1 || sum.addends[0].term != e) {
                print_sum(p, &sum);
                return;
            }
        }
        print_binary(p, e, binding);
        return;
    case TL_EXPR_SUB:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
        print_binary(p, e, binding);
        return;
    case TL_EXPR_NOT:
        tl_text_add(p->out, "not ");
        print(p, e->args[0], NOT);
        return;
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_SELECT:
        tl_text_add(p->out, tl_expr_infos[e->kind].text);
        print_list(p, "(", e, ")");
        return;
    case TL_EXPR_CAST:
        tl_text_add(p->out, tl_dtype_infos[e->dtype].text);
        print_list(p, "(", e, ")");
        return;
    case TL_EXPR_BITS:
        tl_text_format(p->out, TL_BITS_PREFIX "%s", tl_dtype_infos[e->dtype].text);
        print_list(p, "(", e, ")");
        return;
    case TL_EXPR_CALL:
        tl_text_add(p->out, tl_function_infos[e->u.function].text);
        print_list(p, "(", e, ")");
        return;
    case TL_EXPR_KIND_COUNT:
        return;
    }
}

static void print(printer *p, const tl_expr *e, int around)
{
    int binding = binding_of(e);
    if (binding < around)
        tl_text_add(p->out, "(");
    print_bare(p, e, binding);
    if (binding < around)
        tl_text_add(p->out, ")");
}

void tl_expr_print_named(const tl_expr *e, const tl_namer *namer, tl_text *out)
{
    printer p = { namer, out };
    print(&p, e, 0);
}

void tl_expr_print_tight(const tl_expr *e, const tl_namer *namer, tl_text *out)
{
    printer p = { namer, out };
    print(&p, e, PRODUCT);
}

void tl_expr_print_total(const tl_expr *a, const tl_expr *b, const tl_namer *namer, tl_text *out)
{
    printer p = { namer, out };
    tl_sum sum;
    tl_sum_clear(&sum);
    if (tl_sum_add(&sum, a, 1) && tl_sum_add(&sum, b, 1)) {
        print_sum(&p, &sum);
        return;
    }
    print(&p, a, SUM);
    tl_text_add(out, " + ");
    print(&p, b, SUM + 1);
}

void tl_expr_print(const tl_expr *e, tl_text *out)
{
    tl_expr_print_named(e, NULL, out);
}

const char *tl_expr_text(tl_arena *arena, const tl_expr *e)
{
    tl_text text = { 0 };
    tl_expr_print(e, &text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

void tl_expr_dump(const tl_expr *e)
{
    tl_text text = { 0 };
    tl_expr_print(e, &text);
    fprintf(stderr, "%s\n", tl_text_get(&text));
    tl_text_free(&text);
}
