/* ir/text/parse_block.c: blocks and calls of intrinsics. */
#include <assert.h>
#include <string.h>
#include "ir/program/intrinsics.h"
#include "ir/text/parse_private.h"

enum { MAX_ITERS = 64, MAX_STORES = 256, MAX_OPERANDS = 32 };

/* ---- iters ---- */

/* `i` or `i in 0..EXTENT = BINDING`. */
static tl_status parse_iter(tl_parser *p, tl_iter_kind kind, tl_iter *out)
{
    const tl_token *at = p->token;
    const char *name;
    TL_TRY(tl_parse_name(p, "an iter", &name));
    *out = (tl_iter){ .kind = kind };
    if (tl_parse_accept(p, "in")) {
        TL_TRY(tl_parse_extent(p, &out->extent));
        TL_TRY(tl_parse_expect(p, "="));
        TL_TRY(tl_parse_index(p, &out->binding));
        if (tl_expr_has_load(out->binding))
            return tl_parse_fail_at(p, at, "the binding of iter %s cannot depend on data", name);
    } else {
        const tl_symbol *loop = tl_parse_find(p, name);
        if (loop == NULL || loop->kind != TL_SYMBOL_LOOP)
            return tl_parse_fail_at(p, at,
                                    "there is no loop %s around: write `%s %s in 0..EXTENT = "
                                    "BINDING`",
                                    name, tl_iter_kind_texts[kind], name);
        out->extent = loop->extent;
        out->binding = tl_ref(p->arena, loop->var);
    }
    out->var = tl_var_of_extent(p->arena, name, out->extent);
    return TL_OK;
}

static bool accept_iter_kind(tl_parser *p, tl_iter_kind *kind)
{
    for (int k = 0; k < 3; k++)
        if (tl_parse_accept(p, tl_iter_kind_texts[k])) {
            *kind = (tl_iter_kind)k;
            return true;
        }
    return false;
}

static tl_status check_new_iter(tl_parser *p, const tl_token *at, const tl_iter *iters, int count)
{
    const char *name = iters[count].var->name;
    for (int i = 0; i < count; i++)
        if (strcmp(iters[i].var->name, name) == 0)
            return tl_parse_fail_at(p, at, "iter %s is declared twice", name);
    const tl_symbol *other = tl_parse_find(p, name);
    if (other != NULL && other->kind != TL_SYMBOL_LOOP)
        return tl_parse_fail_at(p, at, "iter %s has the name of a %s", name,
                                other->kind == TL_SYMBOL_DIM ? "dim" : "buffer");
    return TL_OK;
}

static tl_status parse_iters(tl_parser *p, tl_block *block)
{
    tl_iter iters[MAX_ITERS];
    int count = 0;
    tl_iter_kind kind = TL_ITER_SPATIAL;
    while (accept_iter_kind(p, &kind)) {
        do {
            const tl_token *at = p->token;
            if (count == MAX_ITERS)
                return tl_parse_fail(p, "block %s has more than %d iters", block->name, MAX_ITERS);
            p->operators = 0;
            TL_TRY(parse_iter(p, kind, &iters[count]));
            TL_TRY(check_new_iter(p, at, iters, count));
            count++;
        } while (tl_parse_accept(p, ","));
        TL_TRY(tl_parse_newline(p));
    }
    for (int i = 0; i < count; i++) /* visible from here on */
        tl_parse_push(p, iters[i].var->name, TL_SYMBOL_ITER)->var = iters[i].var;
    block->iter_count = count;
    block->iters =
        tl_arena_copy(p->arena, iters, (size_t)count * sizeof iters[0], _Alignof(tl_iter));
    return TL_OK;
}

/* ---- stores ---- */

static bool find_combiner(const tl_token *token, tl_combiner *out)
{
    for (int c = TL_COMBINER_NONE + 1; c < TL_COMBINER_COUNT; c++)
        if (token->kind == TL_TOKEN_NAME && strcmp(tl_combiner_infos[c].text, token->text) == 0) {
            *out = (tl_combiner)c;
            return true;
        }
    return false;
}

static bool is_mark(const tl_token *token, const char *text)
{
    return token->kind == TL_TOKEN_PUNCTUATION && strcmp(token->text, text) == 0;
}

/* Whether `combiner (` begins a reduction: min and max with two operands are functions. */
static bool begins_reduction(const tl_token *token, tl_combiner *combiner)
{
    if (!find_combiner(token, combiner) || !is_mark(token + 1, "("))
        return false;
    if (*combiner != TL_COMBINER_MIN && *combiner != TL_COMBINER_MAX)
        return true;
    int depth = 0;
    for (const tl_token *t = token + 1; t->kind != TL_TOKEN_NEWLINE; t++) {
        if (is_mark(t, "(") || is_mark(t, "["))
            depth++;
        if ((is_mark(t, ")") || is_mark(t, "]")) && --depth == 0)
            return true;
        if (depth == 1 && is_mark(t, ","))
            return false;
    }
    return false;
}

bool tl_parse_at_reduction(const tl_parser *p)
{
    tl_combiner combiner;
    return begins_reduction(p->token, &combiner);
}

/* The dtype that value `index` of a reduction must have. */
static tl_status check_reduction_dtype(tl_parser *p, const tl_token *at, tl_combiner c, int index,
                                       tl_dtype dtype)
{
    bool logical = c == TL_COMBINER_ALL || c == TL_COMBINER_ANY;
    bool pair = c == TL_COMBINER_ARGMIN || c == TL_COMBINER_ARGMAX;
    if (logical != (dtype == TL_BOOL))
        return tl_parse_fail_at(p, at, "%s does not combine %s", tl_combiner_infos[c].text,
                                tl_dtype_infos[dtype].text);
    if (pair && index == 1 && dtype != TL_I64)
        return tl_parse_fail_at(p, at, "the index of %s is i64, not %s", tl_combiner_infos[c].text,
                                tl_dtype_infos[dtype].text);
    return TL_OK;
}

/* One value for each store, of its dtype. */
static tl_status parse_values(tl_parser *p, const tl_store *stores, int count,
                              const tl_expr **values)
{
    for (int i = 0; i < count; i++) {
        if (i > 0)
            TL_TRY(tl_parse_expect(p, ","));
        const tl_token *at = p->token;
        tl_dtype dtype = stores[i].buffer->dtype;
        TL_TRY(tl_parse_expr(p, dtype, &values[i]));
        if (values[i]->dtype != dtype)
            return tl_parse_fail_at(p, at, "%s holds %s, the value is %s: cast it",
                                    stores[i].buffer->name, tl_dtype_infos[dtype].text,
                                    tl_dtype_infos[values[i]->dtype].text);
    }
    return TL_OK;
}

/* What follows `C[i, j]` (or two accesses): `sum= e`, `= sum(e)`, `= sum(e) from e0`. */
static tl_status parse_reduction(tl_parser *p, tl_block *block, tl_store *stores, int count,
                                 tl_combiner combiner, bool update)
{
    assert(combiner > TL_COMBINER_NONE && combiner < TL_COMBINER_COUNT && count > 0);
    const tl_token *at = p->token;
    const tl_expr *values[2];
    const char *name = tl_combiner_infos[combiner].text;
    if (count != tl_combiner_infos[combiner].values)
        return tl_parse_fail_at(p, at, "%s combines into %d buffer%s, not %d", name,
                                tl_combiner_infos[combiner].values,
                                tl_combiner_infos[combiner].values == 1 ? "" : "s", count);
    for (int i = 0; i < count; i++)
        TL_TRY(check_reduction_dtype(p, at, combiner, i, stores[i].buffer->dtype));
    p->token++;
    TL_TRY(tl_parse_expect(p, update ? "=" : "("));
    TL_TRY(parse_values(p, stores, count, values));
    for (int i = 0; i < count; i++)
        stores[i].value = values[i];
    block->combiner = combiner;
    block->has_init = !update;
    if (update)
        return TL_OK;
    TL_TRY(tl_parse_expect(p, ")"));
    if (!tl_parse_accept(p, "from"))
        return TL_OK;
    TL_TRY(parse_values(p, stores, count, values));
    block->init =
        tl_arena_copy(p->arena, values, (size_t)count * sizeof *values, _Alignof(tl_expr *));
    return TL_OK;
}

/* One line of a block's body; reductions fill two stores at most. */
tl_status tl_parse_store_line(tl_parser *p, tl_block *block, tl_store *stores, int *count)
{
    const tl_token *at = p->token;
    tl_combiner combiner;
    int targets = 0;
    p->operators = 0;
    do {
        if (targets == 2)
            return tl_parse_fail(p, "a line stores at most two values");
        tl_store *store = &stores[*count + targets++];
        TL_TRY(tl_parse_access(p, &store->buffer, &store->indices));
    } while (tl_parse_accept(p, ","));

    bool update = find_combiner(p->token, &combiner);
    if (!update)
        TL_TRY(tl_parse_expect(p, "="));
    if (update || begins_reduction(p->token, &combiner)) {
        if (*count > 0)
            return tl_parse_fail_at(p, at, "block %s: a reduction is the only store of its block",
                                    block->name);
        TL_TRY(parse_reduction(p, block, stores, targets, combiner, update));
    } else {
        const tl_expr *value;
        if (targets != 1)
            return tl_parse_fail(p, "only argmin and argmax store two values at once");
        if (block->combiner != TL_COMBINER_NONE)
            return tl_parse_fail_at(p, at, "block %s: a reduction is the only store of its block",
                                    block->name);
        TL_TRY(parse_values(p, &stores[*count], 1, &value));
        stores[*count].value = value;
    }
    *count += targets;
    return tl_parse_newline(p);
}

static tl_status parse_stores(tl_parser *p, tl_block *block)
{
    tl_store *stores = TL_NEW_ARRAY(p->arena, tl_store, MAX_STORES + 2);
    int count = 0;
    while (p->token->kind == TL_TOKEN_NAME) {
        const tl_token *at = p->token;
        if (count >= MAX_STORES)
            return tl_parse_fail(p, "block %s has more than %d stores", block->name, MAX_STORES);
        TL_TRY(tl_parse_store_line(p, block, stores, &count));
        if (block->combiner != TL_COMBINER_NONE &&
            count > tl_combiner_infos[block->combiner].values)
            return tl_parse_fail_at(p, at, "block %s: a reduction is the only store of its block",
                                    block->name);
    }
    if (count == 0)
        return tl_parse_fail(p, "block %s stores nothing", block->name);
    block->store_count = count;
    block->stores =
        tl_arena_copy(p->arena, stores, (size_t)count * sizeof *stores, _Alignof(tl_store));
    return TL_OK;
}

/* ---- calls ---- */

/* B[i, 0..4]: an index or lo..hi per axis. */
static tl_status parse_region(tl_parser *p, tl_region *out)
{
    const tl_token *at = p->token;
    TL_TRY(tl_parse_buffer_name(p, &out->buffer));
    int rank = out->buffer->rank, count = 0;
    const tl_expr **begin = TL_NEW_ARRAY(p->arena, const tl_expr *, rank);
    const tl_expr **extent = TL_NEW_ARRAY(p->arena, const tl_expr *, rank);
    TL_TRY(tl_parse_expect(p, "["));
    while (!tl_parse_at(p, "]")) {
        const tl_expr *lo, *hi;
        if (count > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(tl_parse_index(p, &lo));
        hi = NULL;
        if (tl_parse_accept(p, ".."))
            TL_TRY(tl_parse_index(p, &hi));
        if (count < rank) {
            begin[count] = lo;
            extent[count] = hi == NULL ? tl_int(p->arena, 1) : tl_sub(p->arena, hi, lo);
        }
        count++;
    }
    TL_TRY(tl_parse_expect(p, "]"));
    if (count != rank)
        return tl_parse_fail_at(p, at, "%s has %d ax%s, not %d", out->buffer->name, rank,
                                rank == 1 ? "is" : "es", count);
    out->begin = begin;
    out->extent = extent;
    return TL_OK;
}

tl_status tl_parse_call(tl_parser *p, const tl_intrinsic_call **out)
{
    tl_region reads[MAX_OPERANDS], writes[MAX_OPERANDS];
    const tl_expr *scalars[MAX_OPERANDS];
    tl_intrinsic_call call = { 0 };
    const tl_token *at = p->token;
    p->operators = 0;
    tl_intrinsic intrinsic;
    if (at->kind != TL_TOKEN_NAME || !tl_intrinsic_from_name(at->text, &intrinsic))
        return tl_parse_fail(p, "there is no intrinsic %s", tl_token_text(at));
    call.name = at->text;
    p->token++;
    TL_TRY(tl_parse_expect(p, "("));
    while (!tl_parse_at(p, ")")) {
        if (call.read_count + call.write_count + call.scalar_count > 0)
            TL_TRY(tl_parse_expect(p, ","));
        if (call.read_count + call.write_count + call.scalar_count == MAX_OPERANDS)
            return tl_parse_fail(p, "a call has more than %d operands", MAX_OPERANDS);
        if (tl_parse_accept(p, "read")) {
            tl_parse_mark_read(p, p->token);
            TL_TRY(parse_region(p, &reads[call.read_count++]));
        } else if (tl_parse_accept(p, "write")) {
            TL_TRY(parse_region(p, &writes[call.write_count++]));
        } else {
            TL_TRY(tl_parse_index(p, &scalars[call.scalar_count++]));
        }
    }
    TL_TRY(tl_parse_expect(p, ")"));
    const tl_intrinsic_info *info = &tl_intrinsic_infos[intrinsic];
    if (call.read_count != info->read_count || call.write_count != info->write_count ||
        call.scalar_count != info->scalar_count)
        return tl_parse_fail_at(p, at,
                                "%s takes %d reads, %d writes and %d scalars, not %d, %d, %d",
                                info->name, info->read_count, info->write_count, info->scalar_count,
                                call.read_count, call.write_count, call.scalar_count);
    call.reads = tl_arena_copy(p->arena, reads, (size_t)call.read_count * sizeof *reads,
                               _Alignof(tl_region));
    call.writes = tl_arena_copy(p->arena, writes, (size_t)call.write_count * sizeof *writes,
                                _Alignof(tl_region));
    call.scalars = tl_arena_copy(p->arena, scalars, (size_t)call.scalar_count * sizeof *scalars,
                                 _Alignof(tl_expr *));
    *out = tl_arena_copy(p->arena, &call, sizeof call, _Alignof(tl_intrinsic_call));
    return tl_parse_newline(p);
}

/* ---- blocks ---- */

static tl_status parse_block_lines(tl_parser *p, tl_block *block)
{
    TL_TRY(parse_iters(p, block));
    if (tl_parse_accept(p, "where")) {
        p->operators = 0;
        TL_TRY(tl_parse_condition(p, &block->predicate));
        TL_TRY(tl_parse_newline(p));
        if (block->predicate->kind == TL_EXPR_INT && block->predicate->u.value != 0)
            block->predicate = NULL;
    }
    p->iters_only = block->name;
    if (tl_parse_accept(p, "call"))
        TL_TRY(tl_parse_call(p, &block->call));
    else
        TL_TRY(parse_stores(p, block));
    p->iters_only = NULL;
    return TL_OK;
}

tl_status tl_parse_block_name(tl_parser *p, tl_block *block)
{
    const tl_token *at = p->token;
    if (at->kind != TL_TOKEN_NAME)
        return tl_parse_fail(p, "expected the block's name, found %s", tl_token_text(at));
    block->name = at->text;
    p->token++;
    if (tl_map_has(p->blocks, block->name))
        return tl_parse_fail_at(p, at, "there are two blocks named %s", block->name);
    tl_map_put(p->blocks, block->name, block);
    return TL_OK;
}

tl_status tl_parse_block(tl_parser *p, const tl_stmt **out)
{
    tl_block *block = TL_NEW(p->arena, tl_block);
    const tl_symbol *outer = p->last;
    TL_TRY(tl_parse_block_name(p, block));
    TL_TRY(tl_parse_newline(p));
    if (p->token->kind != TL_TOKEN_INDENT)
        return tl_parse_fail(p, "block %s has no lines", block->name);
    p->token++;
    TL_TRY(parse_block_lines(p, block));
    if (p->token->kind != TL_TOKEN_DEDENT)
        return tl_parse_fail(p, "expected the end of block %s, found %s", block->name,
                             tl_token_text(p->token));
    p->token++;
    tl_parse_pop(p, outer);
    *out = tl_stmt_block(p->arena, block);
    return TL_OK;
}
