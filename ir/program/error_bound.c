/* ir/program/error_bound.c: how far the results of a program may lie from those of real numbers, told from the roundings
 * that a result goes through.
 *
 * A chain of t roundings, each by 1 + d with |d| <= u (u = 2^-24 for f32), is off by at most gamma_t = t*u / (1 - t*u)
 * (Higham, Accuracy and Stability of Numerical Algorithms, 2002, lemma 3.1), whatever the order of a sum (section 4.2). With
 * roundings that behave like independent ones of mean zero it is off by less than L*sqrt(t)*u, but with a probability of
 * 2t*exp(-L*L/2) (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019, theorem 2.4): for L = 8
 * one sum in 10^13 / t. So the bound is
 *
 *     64*u + 8*sqrt(t)*u,    t the longest chain; 0 where nothing rounds
 *
 * where the 64 are for what a function makes of its rounded argument: exp(x) is off by x times what x is, and x is
 * below 89. What is kept in f16 or bf16 is rounded there only now and then, while sums are kept in f32: each of those
 * roundings counts in full, and once more for the value it is compared with. So do the two operands of a product where
 * they may be rounded to tf32, once for each sum of them. */
#include <math.h>
#include "ir/program/program.h"
#include "ir/expr/index.h"

enum { TF32_DIGITS = 11 };

/* Roundings by the dtype they round to. */
typedef struct {
    double count[TL_DTYPE_COUNT];
    double steps;    /* of loops around that hand values on */
    double products; /* sums of products of f32, one after the other */
} roundings;

static bool is_number(const tl_expr *e, double number)
{
    return e->kind == TL_EXPR_FLOAT && e->u.number == number;
}

static bool rounds(const tl_expr *e)
{
    if (!tl_dtype_is_float(e->dtype))
        return false;
    switch (e->kind) {
    case TL_EXPR_ADD:
    case TL_EXPR_SUB: /* 0 - x is -x */
        return !is_number(e->args[0], 0) && !is_number(e->args[1], 0);
    case TL_EXPR_MUL: /* by 1 or -1 */
        return !is_number(e->args[0], 1) && !is_number(e->args[0], -1) &&
               !is_number(e->args[1], 1) && !is_number(e->args[1], -1);
    case TL_EXPR_DIV:
        return true;
    case TL_EXPR_CALL:
        return tl_function_infos[e->u.function].result == TL_RESULT_ROUNDED;
    case TL_EXPR_CAST:
        return tl_dtype_infos[e->args[0]->dtype].digits > tl_dtype_infos[e->dtype].digits;
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_BITS: /* of what is in memory (frontend/graph/partition.c) */
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return false;
}

static bool count_rounding(const tl_expr *e, void *context)
{
    roundings *r = context;
    r->count[e->dtype] += rounds(e);
    return e->kind != TL_EXPR_LOAD; /* index arithmetic is exact */
}

/* The chain through a block: its value's roundings, and as many as its reduce and ordered iters have steps. */
static void count_block(const tl_block *block, roundings *total)
{
    roundings own = { .steps = 1 };
    double steps = total->steps;
    for (int i = 0; i < block->store_count; i++) {
        const tl_expr *value = block->stores[i].value;
        tl_expr_visit(value, count_rounding, &own);
        if ((block->combiner == TL_COMBINER_SUM || block->combiner == TL_COMBINER_PROD) &&
            tl_dtype_is_float(value->dtype))
            own.count[value->dtype]++;
    }
    const tl_expr *value = block->store_count > 0 ? block->stores[0].value : NULL;
    if (block->combiner == TL_COMBINER_SUM && value->kind == TL_EXPR_MUL && value->dtype == TL_F32)
        total->products += total->steps;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_SPATIAL)
            steps *= (double)tl_expr_range(block->iters[i].extent).max;
    for (int d = 0; d < TL_DTYPE_COUNT; d++)
        total->count[d] += steps * own.count[d];
}

/* Whether a loop over a buffer's reader and, behind it, its writer hands values from one iteration to the next (the state
 * of a cell over time). An iter that counts such iterations itself is no spatial one. */
enum { MAX_READ = 64 };
typedef struct {
    const tl_var *var;
    int count;
    const tl_buffer *read[MAX_READ];
    bool hands_on, is_counted;
} handing;

static bool note_read(const tl_expr *e, void *context)
{
    handing *h = context;
    if (e->kind == TL_EXPR_LOAD && h->count < MAX_READ)
        h->read[h->count++] = e->u.buffer;
    return true;
}

static bool note_block(const tl_stmt *stmt, void *context)
{
    handing *h = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    for (int i = 0; i < block->iter_count; i++)
        h->is_counted |= block->iters[i].kind != TL_ITER_SPATIAL &&
                         tl_expr_uses_var(block->iters[i].binding, h->var);
    for (int i = 0; i < block->store_count; i++)
        tl_expr_visit(block->stores[i].value, note_read, h);
    for (int i = 0; i < block->store_count; i++)
        for (int k = 0; k < h->count; k++)
            h->hands_on |= h->read[k] == block->stores[i].buffer;
    return true;
}

static bool count_stmt(const tl_stmt *stmt, void *context)
{
    roundings *total = context;
    if (stmt->kind == TL_STMT_BLOCK)
        count_block(stmt->u.block, total);
    if (stmt->kind != TL_STMT_LOOP)
        return true;
    handing h = { .var = stmt->u.loop.var };
    tl_stmt_visit(stmt->u.loop.body, note_block, &h);
    if (!h.hands_on || h.is_counted)
        return true;
    double around = total->steps;
    total->steps *= (double)tl_expr_range(stmt->u.loop.extent).max;
    tl_stmt_visit(stmt->u.loop.body, count_stmt, total);
    total->steps = around;
    return false;
}

double tl_program_error_bound(const tl_program *naive)
{
    roundings r = { .steps = 1 };
    double bound = 0;
    tl_stmt_visit(naive->body, count_stmt, &r);
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        double u = exp2(-tl_dtype_infos[d].digits), t = r.count[d];
        if (d == TL_F16 || d == TL_BF16)
            bound += 2 * t * u;
        else if (t > 0)
            bound += (64 + 8 * sqrt(t)) * u;
    }
    if (naive->tf32)
        bound += 2 * 2 * r.products * exp2(-TF32_DIGITS);
    return bound;
}
