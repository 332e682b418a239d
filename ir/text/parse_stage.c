/* ir/text/parse_stage.c: a stage: loops, iters, and where need be the buffer, of a block that is told by its store alone.
 *
 *     gemm: C[i, j] = sum(A[i, k]*B[k, j])       for i in 0..M
 *                                                  for j in 0..N
 *                                          ->        for k in 0..K
 *                                                      block gemm
 *                                                        spatial i, j
 *                                                        reduce k
 *                                                        C[i, j] = sum(A[i, k]*B[k, j])
 *
 * Names on the left side are spatial iters in their order, further names on the right side reduce iters in theirs. A name
 * that is an index by itself runs over that axis; others get their extent behind the store: `for kh in 0..3`. A name that
 * is a loop around is bound to it. A buffer that nobody declared is allocated in front, an axis an iter. */
#include <string.h>
#include "ir/text/parse_private.h"

enum { MAX_NAMES = 64, MAX_TARGETS = 2 };

typedef struct {
    const tl_token *at; /* where the name is first met */
    tl_iter_kind kind;
    const tl_expr *extent;
    /* The buffer whose axis told the extent; NULL: no buffer, or what it says is settled. */
    const tl_buffer *of;
    const tl_symbol *loop; /* a loop around; NULL: it gets one of its own */
    const tl_var *loop_var;
} named;

typedef struct {
    tl_parser *p;
    tl_block *block;
    /* The store, which ends where its `for` begins; what is behind its `=`. */
    const tl_token *line, *right;
    int count;
    named names[MAX_NAMES];
} stage;

static bool is_mark(const tl_token *token, const char *text)
{
    return token->kind == TL_TOKEN_PUNCTUATION && strcmp(token->text, text) == 0;
}

static bool opens(const tl_token *token)
{
    return is_mark(token, "(") || is_mark(token, "[");
}

static bool closes(const tl_token *token)
{
    return is_mark(token, ")") || is_mark(token, "]");
}

static named *find_name(stage *s, const char *text)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->names[i].at->text, text) == 0)
            return &s->names[i];
    return NULL;
}

/* Cuts the line in two: the store, which gets an end of its own, and what follows a `for`. */
static const tl_token *cut_line(stage *s)
{
    const tl_token *start = s->p->token, *end = start, *right = NULL;
    int depth = 0;
    for (; end->kind != TL_TOKEN_NEWLINE; end++) {
        depth += opens(end) - closes(end);
        if (depth == 0 && right == NULL && is_mark(end, "="))
            right = end + 1;
        if (depth == 0 && end->kind == TL_TOKEN_NAME && strcmp(end->text, "for") == 0)
            break;
    }
    tl_token *line = TL_NEW_ARRAY(s->p->arena, tl_token, end - start + 1);
    memcpy(line, start, (size_t)(end - start) * sizeof *line);
    line[end - start] = *end;
    line[end - start].kind = TL_TOKEN_NEWLINE;
    s->line = line;
    s->right = line + ((right == NULL ? end : right) - start);
    return end;
}

/* ---- names ---- */

/* Whether a name of the line is that of an iter: none of the language's, of a buffer or dim. */
static bool is_iter(const tl_parser *p, const tl_token *token)
{
    if (token->kind != TL_TOKEN_NAME || is_mark(token + 1, "[") || is_mark(token + 1, "(") ||
        tl_is_reserved(token->text))
        return false;
    const tl_symbol *symbol = tl_parse_find(p, token->text);
    return symbol == NULL || symbol->kind == TL_SYMBOL_LOOP;
}

static tl_status find_names(stage *s)
{
    for (const tl_token *t = s->line; t->kind != TL_TOKEN_NEWLINE; t++) {
        if (!is_iter(s->p, t) || find_name(s, t->text) != NULL)
            continue;
        if (s->count == MAX_NAMES)
            return tl_parse_fail_at(s->p, t, "stage %s has more than %d iters", s->block->name,
                                    MAX_NAMES);
        named *n = &s->names[s->count++];
        *n = (named){ .at = t, .kind = t < s->right ? TL_ITER_SPATIAL : TL_ITER_REDUCE };
        n->loop = tl_parse_find(s->p, t->text);
        if (n->loop != NULL) {
            n->extent = n->loop->extent;
            n->loop_var = n->loop->var;
        } else if (tl_map_has(s->p->buffers, t->text)) {
            return tl_parse_fail_at(s->p, t, "the name %s is taken", t->text);
        }
    }
    return TL_OK;
}

/* ---- extents ---- */

/* The `for` behind the store: NAME in 0..EXTENT, ... */
static tl_status parse_extents(stage *s, const tl_token *from)
{
    tl_parser *p = s->p;
    p->token = from;
    if (tl_parse_accept(p, "for"))
        do {
            const tl_token *at = p->token;
            const char *name;
            TL_TRY(tl_parse_name(p, "an iter", &name));
            named *n = find_name(s, name);
            if (n == NULL)
                return tl_parse_fail_at(p, at, "stage %s has no iter %s", s->block->name, name);
            if (n->extent != NULL)
                return tl_parse_fail_at(p, at,
                                        n->loop ? "%s is a loop around, which has its extent"
                                                : "the extent of %s is given twice",
                                        name);
            TL_TRY(tl_parse_expect(p, "in"));
            p->operators = 0;
            TL_TRY(tl_parse_extent(p, &n->extent));
        } while (tl_parse_accept(p, ","));
    return tl_parse_newline(p);
}

/* `n` is by itself the index of an axis of `buffer`. */
static tl_status take_extent(stage *s, named *n, const tl_token *at, const tl_buffer *buffer,
                             int axis)
{
    if (axis >= buffer->rank)
        return tl_parse_fail_at(s->p, at, "%s has %d ax%s, and %s is index %d", buffer->name,
                                buffer->rank, buffer->rank == 1 ? "is" : "es", at->text, axis + 1);
    if (n->extent != NULL && n->of == NULL)
        return TL_OK;
    const tl_expr *extent = buffer->shape[axis];
    if (n->of == NULL) {
        n->of = buffer;
        n->extent = extent;
    } else if (!tl_expr_equal(n->extent, extent)) {
        return tl_parse_fail_at(
            s->p, at, "%s runs over %s in %s and over %s in %s: add `for %s in 0..EXTENT`",
            n->at->text, tl_expr_text(s->p->arena, n->extent), n->of->name,
            tl_expr_text(s->p->arena, extent), buffer->name, n->at->text);
    }
    return TL_OK;
}

/* The indices of one access that are names by themselves. */
static tl_status read_access(stage *s, const tl_token *open, const tl_buffer *buffer)
{
    int depth = 0, axis = 0;
    for (const tl_token *t = open; t->kind != TL_TOKEN_NEWLINE; t++) {
        depth += opens(t) - closes(t);
        if (depth == 0)
            break;
        axis += depth == 1 && is_mark(t, ",");
        bool alone = depth == 1 && t->kind == TL_TOKEN_NAME &&
                     (t == open + 1 || is_mark(t - 1, ",")) &&
                     (is_mark(t + 1, ",") || is_mark(t + 1, "]"));
        named *n = alone ? find_name(s, t->text) : NULL;
        if (n != NULL)
            TL_TRY(take_extent(s, n, t, buffer, axis));
    }
    return TL_OK;
}

static tl_status read_accesses(stage *s, const tl_token *from, const tl_token *until)
{
    for (const tl_token *t = from; t < until && t->kind != TL_TOKEN_NEWLINE; t++) {
        const tl_symbol *symbol = t->kind == TL_TOKEN_NAME ? tl_parse_find(s->p, t->text) : NULL;
        if (symbol != NULL && symbol->kind == TL_SYMBOL_BUFFER && is_mark(t + 1, "["))
            TL_TRY(read_access(s, t + 1, symbol->buffer));
    }
    for (int i = 0; i < s->count; i++)
        s->names[i].of = NULL; /* what one side said, the other does not question */
    return TL_OK;
}

static tl_status find_extents(stage *s)
{
    TL_TRY(read_accesses(s, s->line, s->right));
    TL_TRY(read_accesses(s, s->right, s->right + INT16_MAX));
    for (int i = 0; i < s->count; i++)
        if (s->names[i].extent == NULL)
            return tl_parse_fail_at(
                s->p, s->names[i].at,
                "%s is no index by itself of a buffer that is defined here: add `for %s in "
                "0..EXTENT` behind the store, if it is an iter of %s",
                s->names[i].at->text, s->names[i].at->text, s->block->name);
    return TL_OK;
}

/* ---- buffers that nobody declared ---- */

/* NAME[i, j] at `target`: a buffer with an axis an iter. */
static tl_status make_buffer(stage *s, const tl_token *target, tl_dtype dtype, tl_buffer **out)
{
    tl_parser *p = s->p;
    const tl_expr *shape[MAX_NAMES];
    const tl_token *t = target + 1;
    int rank = 0;
    if (tl_is_reserved(target->text))
        return tl_parse_fail_at(p, target, "%s is a word of the language, not the name of a buffer",
                                target->text);
    if (!is_mark(t, "["))
        return tl_parse_fail_at(p, t, "expected '[', found %s", tl_token_text(t));
    for (t++; !is_mark(t, "]"); t += is_mark(t, ",")) {
        named *n = t->kind == TL_TOKEN_NAME ? find_name(s, t->text) : NULL;
        if (n == NULL || !(is_mark(t + 1, ",") || is_mark(t + 1, "]")) || rank == TL_PARSE_MAX_RANK)
            return tl_parse_fail_at(
                p, t,
                "%s is not declared, and stage %s does not tell its shape: an axis an "
                "iter, or an `alloc` in front",
                target->text, s->block->name);
        shape[rank++] = n->extent;
        t++;
    }
    *out =
        tl_buffer_make(p->arena, target->text, dtype, TL_ROLE_LOCAL, TL_SCOPE_GLOBAL, rank, shape);
    if (tl_buffer_max_elements(*out) < 0)
        return tl_parse_fail_at(p, target, "the size of %s overflows", target->text);
    return TL_OK;
}

/* The stored buffers, and which of them are new. */
static int find_targets(const stage *s, const tl_token *targets[MAX_TARGETS], bool *any_new)
{
    int count = 0, depth = 0;
    *any_new = false;
    for (const tl_token *t = s->line; t < s->right; t++) {
        depth += opens(t) - closes(t);
        if (depth > 0 || t->kind != TL_TOKEN_NAME || !is_mark(t + 1, "[") || count == MAX_TARGETS)
            continue;
        targets[count++] = t;
        *any_new |= tl_parse_find(s->p, t->text) == NULL;
    }
    return count;
}

static void push_iters(stage *s)
{
    for (int i = 0; i < s->count; i++)
        tl_parse_push(s->p, s->names[i].at->text, TL_SYMBOL_ITER)->var = s->block->iters[i].var;
}

/* Allocates what is stored to and not declared; its dtype is that of the value. */
static tl_status make_buffers(stage *s, tl_buffer **allocs, int *alloc_count)
{
    tl_parser *p = s->p;
    const tl_token *targets[MAX_TARGETS];
    const tl_symbol *outer = p->last;
    const tl_expr *values[MAX_TARGETS];
    bool any_new;
    int count = find_targets(s, targets, &any_new);
    if (!any_new)
        return TL_OK;
    push_iters(s);
    p->token = s->right;
    p->operators = 0;
    if (tl_parse_at_reduction(p))
        p->token += 2;
    for (int i = 0; i < count; i++) { /* read once for the dtypes, again as a store */
        if (i > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(tl_parse_expr(p, TL_DTYPE_COUNT, &values[i]));
    }
    tl_parse_pop(p, outer);
    for (int i = 0; i < count; i++) {
        if (tl_parse_find(p, targets[i]->text) != NULL)
            continue;
        tl_buffer *buffer;
        TL_TRY(make_buffer(s, targets[i], values[i]->dtype, &buffer));
        tl_symbol *symbol = tl_parse_push(p, buffer->name, TL_SYMBOL_BUFFER);
        symbol->buffer = buffer;
        symbol->unread = targets[i];
        tl_map_put(p->buffers, buffer->name, buffer);
        allocs[(*alloc_count)++] = buffer;
    }
    return TL_OK;
}

/* ---- the block ---- */

static void make_iters(stage *s)
{
    tl_arena *arena = s->p->arena;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, s->count);
    for (int i = 0; i < s->count; i++)
        if (s->names[i].loop == NULL)
            s->names[i].loop_var =
                tl_var_of_extent(arena, s->names[i].at->text, s->names[i].extent);
    for (int i = 0; i < s->count; i++) {
        const named *n = &s->names[i];
        iters[i] = (tl_iter){ .kind = n->kind, .extent = n->extent };
        iters[i].var = tl_var_of_extent(arena, n->at->text, n->extent);
        iters[i].binding = tl_ref(arena, n->loop_var);
    }
    s->block->iters = iters;
    s->block->iter_count = s->count;
}

static tl_status parse_store(stage *s)
{
    tl_parser *p = s->p;
    const tl_symbol *outer = p->last;
    tl_store *stores = TL_NEW_ARRAY(p->arena, tl_store, MAX_TARGETS);
    push_iters(s);
    p->token = s->line;
    p->iters_only = s->block->name;
    TL_TRY(tl_parse_store_line(p, s->block, stores, &s->block->store_count));
    p->iters_only = NULL;
    tl_parse_pop(p, outer);
    s->block->stores = stores;
    for (int i = 0; i < s->count && s->block->combiner == TL_COMBINER_NONE; i++)
        if (s->names[i].kind == TL_ITER_REDUCE)
            return tl_parse_fail_at(
                p, s->names[i].at,
                "%s is on the right side only, and nothing reduces over it: write sum(...) or "
                "another combiner",
                s->names[i].at->text);
    return TL_OK;
}

tl_status tl_parse_stage(tl_parser *p, const tl_stmt **out, tl_buffer **allocs, int *alloc_count)
{
    stage *s = TL_NEW(p->arena, stage);
    s->p = p;
    s->block = TL_NEW(p->arena, tl_block);
    TL_TRY(tl_parse_block_name(p, s->block));
    TL_TRY(tl_parse_expect(p, ":"));
    const tl_token *rest = cut_line(s);
    TL_TRY(find_names(s));
    TL_TRY(parse_extents(s, rest));
    const tl_token *after = p->token;
    TL_TRY(find_extents(s));
    make_iters(s);
    TL_TRY(make_buffers(s, allocs, alloc_count));
    TL_TRY(parse_store(s));
    p->token = after;

    *out = tl_stmt_block(p->arena, s->block);
    for (int i = s->count - 1; i >= 0; i--)
        if (s->names[i].loop == NULL)
            *out = tl_stmt_loop(p->arena, s->names[i].loop_var, s->names[i].extent, TL_LOOP_SERIAL,
                                *out);
    return TL_OK;
}
