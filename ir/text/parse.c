/* ir/text/parse.c: Programs from text: the header and the statements. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/text/parse_private.h"
#include "runtime/base/array.h"

enum { MAX_ANNOTATIONS = 32, MAX_LOOPS = 200 };

/* ---- tokens ---- */

const char *tl_token_text(const tl_token *token)
{
    return token->text;
}

tl_status tl_parse_fail_at(tl_parser *p, const tl_token *token, const char *format, ...)
{
    char what[1500];
    va_list args;
    if (p->diag == NULL)
        return TL_BAD_TEXT;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tl_fail(p->diag, TL_BAD_TEXT, "%s:%d:%d: %s", p->file, token->line, token->column, what);
}

tl_status tl_parse_fail(tl_parser *p, const char *format, ...)
{
    char what[1500];
    va_list args;
    if (p->diag == NULL)
        return TL_BAD_TEXT;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tl_parse_fail_at(p, p->token, "%s", what);
}

bool tl_parse_at(const tl_parser *p, const char *text)
{
    return (p->token->kind == TL_TOKEN_NAME || p->token->kind == TL_TOKEN_PUNCTUATION) &&
           strcmp(p->token->text, text) == 0;
}

bool tl_parse_accept(tl_parser *p, const char *text)
{
    bool there = tl_parse_at(p, text);
    p->token += there;
    return there;
}

tl_status tl_parse_expect(tl_parser *p, const char *text)
{
    if (!tl_parse_accept(p, text))
        return tl_parse_fail(p, "expected '%s', found %s", text, tl_token_text(p->token));
    return TL_OK;
}

tl_status tl_parse_newline(tl_parser *p)
{
    if (p->token->kind != TL_TOKEN_NEWLINE)
        return tl_parse_fail(p, "expected the end of the line, found %s", tl_token_text(p->token));
    p->token++;
    return TL_OK;
}

tl_status tl_parse_name(tl_parser *p, const char *what, const char **out)
{
    if (p->token->kind != TL_TOKEN_NAME)
        return tl_parse_fail(p, "expected the name of %s, found %s", what, tl_token_text(p->token));
    if (tl_is_reserved(p->token->text))
        return tl_parse_fail(p, "%s is a word of the language, not the name of %s", p->token->text,
                             what);
    *out = (p->token++)->text;
    return TL_OK;
}

tl_status tl_parse_integer(tl_parser *p, int64_t *out)
{
    bool minus = tl_parse_accept(p, "-");
    if (p->token->kind != TL_TOKEN_INT || p->token->value > INT64_MAX)
        return tl_parse_fail(p, "expected an integer of 64 bits, found %s",
                             tl_token_text(p->token));
    *out = (int64_t)p->token->value;
    if (minus)
        *out = -*out;
    p->token++;
    return TL_OK;
}

/* ---- names ---- */

tl_symbol *tl_parse_find(const tl_parser *p, const char *name)
{
    return tl_map_find(p->symbols, name);
}

void tl_parse_mark_read(tl_parser *p, const tl_token *name)
{
    tl_symbol *symbol = name->kind == TL_TOKEN_NAME ? tl_parse_find(p, name->text) : NULL;
    if (symbol != NULL)
        symbol->unread = NULL;
}

tl_symbol *tl_parse_push(tl_parser *p, const char *name, tl_symbol_kind kind)
{
    tl_symbol *symbol = TL_NEW(p->arena, tl_symbol);
    symbol->name = name;
    symbol->kind = kind;
    symbol->hidden = tl_parse_find(p, name);
    symbol->previous = p->last;
    p->last = symbol;
    tl_map_put(p->symbols, name, symbol);
    return symbol;
}

void tl_parse_pop(tl_parser *p, const tl_symbol *until)
{
    for (; p->last != until; p->last = p->last->previous)
        tl_map_put(p->symbols, p->last->name, p->last->hidden);
}

static tl_status check_new_name(tl_parser *p, const tl_token *at)
{
    if (tl_parse_find(p, at->text) != NULL || tl_map_has(p->buffers, at->text))
        return tl_parse_fail_at(p, at, "the name %s is taken", at->text);
    return TL_OK;
}

/* ---- buffers ---- */

static tl_status parse_strides(tl_parser *p, tl_buffer *buffer)
{
    int64_t *strides = TL_NEW_ARRAY(p->arena, int64_t, buffer->rank);
    TL_TRY(tl_parse_expect(p, "["));
    for (int i = 0; i < buffer->rank; i++) {
        const tl_token *at = p->token;
        if (i > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(tl_parse_integer(p, &strides[i]));
        if (strides[i] < 1)
            return tl_parse_fail_at(p, at, "a stride is at least 1");
    }
    buffer->strides = strides;
    return tl_parse_expect(p, "]");
}

static tl_status parse_swizzle(tl_parser *p, tl_buffer *buffer)
{
    int64_t bytes;
    TL_TRY(tl_parse_integer(p, &bytes));
    if (bytes != 32 && bytes != 64 && bytes != 128)
        return tl_parse_fail(p, "a swizzle of %s has 32, 64 or 128 bytes", buffer->name);
    buffer->swizzle = (int)bytes;
    return TL_OK;
}

/* NAME: DTYPE[shape] [swizzle BYTES] [strides [...]]; the name becomes visible. */
static tl_status parse_buffer(tl_parser *p, tl_role role, tl_buffer **out)
{
    const tl_token *at = p->token;
    const tl_expr *shape[TL_PARSE_MAX_RANK];
    const char *name;
    tl_dtype dtype;
    int rank = 0;
    TL_TRY(tl_parse_name(p, "a buffer", &name));
    TL_TRY(check_new_name(p, at));
    TL_TRY(tl_parse_expect(p, ":"));
    if (p->token->kind != TL_TOKEN_NAME || !tl_dtype_from_text(p->token->text, &dtype))
        return tl_parse_fail(p, "expected a dtype, found %s", tl_token_text(p->token));
    p->token++;
    p->operators = 0;
    TL_TRY(tl_parse_expect(p, "["));
    while (!tl_parse_at(p, "]")) {
        if (rank == TL_PARSE_MAX_RANK)
            return tl_parse_fail(p, "%s has more than %d axes", name, TL_PARSE_MAX_RANK);
        if (rank > 0)
            TL_TRY(tl_parse_expect(p, ","));
        const tl_token *extent_at = p->token;
        TL_TRY(tl_parse_index(p, &shape[rank]));
        if (tl_expr_range(shape[rank]).min < 0 || tl_expr_has_load(shape[rank]))
            return tl_parse_fail_at(p, extent_at, "the extent %s of %s can be negative",
                                    tl_expr_text(p->arena, shape[rank]), name);
        rank++;
    }
    TL_TRY(tl_parse_expect(p, "]"));
    tl_buffer *buffer = tl_buffer_make(p->arena, name, dtype, role, TL_SCOPE_GLOBAL, rank, shape);
    if (tl_parse_accept(p, "swizzle"))
        TL_TRY(parse_swizzle(p, buffer));
    if (tl_parse_accept(p, "strides"))
        TL_TRY(parse_strides(p, buffer));
    if (tl_buffer_max_elements(buffer) < 0)
        return tl_parse_fail_at(p, at, "the size of %s overflows", name);
    tl_parse_push(p, buffer->name, TL_SYMBOL_BUFFER)->buffer = buffer;
    tl_map_put(p->buffers, buffer->name, buffer);
    *out = buffer;
    return TL_OK;
}

/* ---- statements ---- */

static tl_status parse_body(tl_parser *p, const char *of, const tl_stmt **out);

static tl_status parse_annotations(tl_parser *p, tl_stmt *loop)
{
    tl_annotation annotations[MAX_ANNOTATIONS];
    int count = 0;
    while (!tl_parse_at(p, "}")) {
        if (count == MAX_ANNOTATIONS)
            return tl_parse_fail(p, "a loop has more than %d annotations", MAX_ANNOTATIONS);
        if (count > 0)
            TL_TRY(tl_parse_expect(p, ","));
        if (p->token->kind != TL_TOKEN_NAME)
            return tl_parse_fail(p, "expected a key, found %s", tl_token_text(p->token));
        annotations[count].key = (p->token++)->text;
        TL_TRY(tl_parse_expect(p, "="));
        TL_TRY(tl_parse_integer(p, &annotations[count].value));
        count++;
    }
    loop->u.loop.annotation_count = count;
    loop->u.loop.annotations =
        tl_arena_copy(p->arena, annotations, (size_t)count * sizeof *annotations,
                      _Alignof(tl_annotation));
    return tl_parse_expect(p, "}");
}

static bool accept_loop_kind(tl_parser *p, tl_loop_kind *out)
{
    for (int k = 0; k < TL_LOOP_KIND_COUNT; k++)
        if (tl_parse_accept(p, tl_loop_kind_infos[k].text)) {
            *out = (tl_loop_kind)k;
            return true;
        }
    return false;
}

static tl_status parse_loop(tl_parser *p, const tl_stmt **out)
{
    tl_stmt *loop = TL_NEW(p->arena, tl_stmt);
    const tl_symbol *outer = p->last;
    const tl_token *at = p->token;
    const char *name;
    loop->kind = TL_STMT_LOOP;
    if (++p->loops > MAX_LOOPS)
        return tl_parse_fail(p, "loops are nested more than %d deep", MAX_LOOPS);
    TL_TRY(tl_parse_name(p, "a loop's variable", &name));
    TL_TRY(check_new_name(p, at));
    TL_TRY(tl_parse_expect(p, "in"));
    TL_TRY(tl_parse_extent(p, &loop->u.loop.extent));
    accept_loop_kind(p, &loop->u.loop.kind);
    if (tl_parse_accept(p, "{"))
        TL_TRY(parse_annotations(p, loop));
    loop->u.loop.var = tl_var_of_extent(p->arena, name, loop->u.loop.extent);
    tl_symbol *symbol = tl_parse_push(p, name, TL_SYMBOL_LOOP);
    symbol->var = loop->u.loop.var;
    symbol->extent = loop->u.loop.extent;
    if (tl_parse_accept(p, ",")) { /* the next loop inside of it on the same line */
        p->operators = 0;
        TL_TRY(parse_loop(p, &loop->u.loop.body));
    } else {
        TL_TRY(tl_parse_newline(p));
        TL_TRY(parse_body(p, name, &loop->u.loop.body));
    }
    p->loops--;
    tl_parse_pop(p, outer);
    *out = loop;
    return TL_OK;
}

static tl_status parse_if(tl_parser *p, const tl_stmt **out)
{
    const tl_expr *condition;
    const tl_stmt *then, *otherwise = NULL;
    TL_TRY(tl_parse_condition(p, &condition));
    TL_TRY(tl_parse_newline(p));
    TL_TRY(parse_body(p, "if", &then));
    if (tl_parse_accept(p, "else")) {
        TL_TRY(tl_parse_newline(p));
        TL_TRY(parse_body(p, "else", &otherwise));
    }
    *out = tl_stmt_if(p->arena, condition, then, otherwise);
    return TL_OK;
}

static tl_status parse_prefetch(tl_parser *p, const tl_stmt **out)
{
    const tl_buffer *buffer;
    const tl_expr *const *indices;
    TL_TRY(tl_parse_access(p, &buffer, &indices));
    TL_TRY(tl_parse_expect(p, "to"));
    bool l1 = tl_parse_accept(p, "L1");
    if (!l1 && !tl_parse_accept(p, "L2"))
        return tl_parse_fail(p, "a prefetch goes to L1 or L2, not to %s", tl_token_text(p->token));
    *out = tl_stmt_prefetch(p->arena, buffer, indices, l1 ? 1 : 2);
    return tl_parse_newline(p);
}

/* A bare store, as after lowering. */
static tl_status parse_bare_store(tl_parser *p, const tl_stmt **out)
{
    const tl_token *at = p->token;
    const tl_buffer *buffer;
    const tl_expr *const *indices;
    const tl_expr *value;
    TL_TRY(tl_parse_access(p, &buffer, &indices));
    if (!tl_parse_at(p, "="))
        return tl_parse_fail(p, "expected '=', found %s (a reduction needs a block)",
                             tl_token_text(p->token));
    p->token++;
    TL_TRY(tl_parse_expr(p, buffer->dtype, &value));
    if (value->dtype != buffer->dtype)
        return tl_parse_fail_at(p, at, "%s holds %s, the value is %s: cast it", buffer->name,
                                tl_dtype_infos[buffer->dtype].text,
                                tl_dtype_infos[value->dtype].text);
    *out = tl_stmt_store(p->arena, buffer, indices, value);
    return tl_parse_newline(p);
}

static tl_status parse_alloc(tl_parser *p, tl_buffer **out)
{
    TL_TRY(parse_buffer(p, TL_ROLE_LOCAL, out));
    for (int s = 0; s < TL_SCOPE_COUNT; s++)
        if (tl_parse_accept(p, tl_scope_texts[s]))
            (*out)->scope = (tl_scope)s;
    return tl_parse_newline(p);
}

static tl_status parse_simple(tl_parser *p, const tl_stmt **out)
{
    p->operators = 0;
    if (tl_parse_accept(p, "for"))
        return parse_loop(p, out);
    if (tl_parse_accept(p, "block"))
        return tl_parse_block(p, out);
    if (tl_parse_accept(p, "if"))
        return parse_if(p, out);
    if (tl_parse_accept(p, "prefetch"))
        return parse_prefetch(p, out);
    if (tl_parse_accept(p, "barrier")) {
        *out = tl_stmt_barrier(p->arena);
        return tl_parse_newline(p);
    }
    if (tl_parse_accept(p, "call")) {
        const tl_intrinsic_call *call;
        TL_TRY(tl_parse_call(p, &call));
        *out = tl_stmt_call(p->arena, call);
        return TL_OK;
    }
    if (p->token->kind != TL_TOKEN_NAME)
        return tl_parse_fail(p, "expected a statement, found %s", tl_token_text(p->token));
    return parse_bare_store(p, out);
}

/* A statement of the list being read, innermost last: `alloc` opens a level that ends with the
 * list. */
typedef struct list {
    const tl_stmt *item;
    tl_buffer *alloc;
    struct list *before;
} list;

/* The list turned around into a SEQ; each alloc takes what follows it as its body. */
static const tl_stmt *close_list(tl_parser *p, const list *last, int count, bool *empty_alloc)
{
    assert(count >= 0 && (last == NULL) == (count == 0));
    const tl_stmt **items = TL_NEW_ARRAY(p->arena, const tl_stmt *, count + 1);
    int first = count; /* items[first..count-1] follow what is looked at */
    for (; last != NULL; last = last->before) {
        if (last->alloc == NULL) {
            items[--first] = last->item;
            continue;
        }
        *empty_alloc |= first == count;
        if (*empty_alloc)
            return NULL;
        const tl_stmt *body = tl_stmt_seq(p->arena, &items[first], count - first);
        first = count;
        items[--first] = tl_stmt_alloc(p->arena, last->alloc, body);
    }
    return tl_stmt_seq(p->arena, &items[first], count - first);
}

/* A misspelt output would become a buffer that a stage makes: such a one must be read. */
static tl_status check_read(tl_parser *p, const tl_symbol *until)
{
    for (const tl_symbol *s = p->last; s != until; s = s->previous)
        if (s->unread != NULL)
            return tl_parse_fail_at(p, s->unread,
                                    "%s is not declared, and nothing reads what is stored to it",
                                    s->name);
    return TL_OK;
}

/* NAME: store, and in front of it what it allocates. */
static tl_status append_stage(tl_parser *p, list **last, int *count)
{
    tl_buffer *allocs[2];
    int alloc_count = 0;
    const tl_stmt *stage;
    TL_TRY(tl_parse_stage(p, &stage, allocs, &alloc_count));
    for (int i = 0; i <= alloc_count; i++) {
        list *entry = TL_NEW(p->arena, list);
        entry->before = *last;
        if (i < alloc_count)
            entry->alloc = allocs[i];
        else
            entry->item = stage;
        *last = entry;
    }
    *count += alloc_count + 1;
    return TL_OK;
}

/* Statements up to the end of their indentation. */
static tl_status parse_list(tl_parser *p, const char *of, const tl_stmt **out)
{
    const tl_symbol *outer = p->last;
    list *last = NULL;
    int count = 0;
    bool empty_alloc = false;
    while (p->token->kind != TL_TOKEN_DEDENT && p->token->kind != TL_TOKEN_END &&
           !tl_parse_at(p, "body")) {
        if (p->token->kind == TL_TOKEN_NAME && strcmp(p->token[1].text, ":") == 0) {
            TL_TRY(append_stage(p, &last, &count));
            continue;
        }
        list *entry = TL_NEW(p->arena, list);
        entry->before = last;
        last = entry;
        count++;
        if (tl_parse_accept(p, "alloc"))
            TL_TRY(parse_alloc(p, &entry->alloc));
        else
            TL_TRY(parse_simple(p, &entry->item));
    }
    *out = close_list(p, last, count, &empty_alloc);
    if (empty_alloc)
        return tl_parse_fail(p, "nothing in %s follows the last alloc", of);
    TL_TRY(check_read(p, outer));
    tl_parse_pop(p, outer);
    return TL_OK;
}

static tl_status parse_body(tl_parser *p, const char *of, const tl_stmt **out)
{
    if (p->token->kind != TL_TOKEN_INDENT)
        return tl_parse_fail(p, "expected the indented lines of %s, found %s", of,
                             tl_token_text(p->token));
    p->token++;
    TL_TRY(parse_list(p, of, out));
    if (p->token->kind != TL_TOKEN_DEDENT)
        return tl_parse_fail(p, "unexpected %s", tl_token_text(p->token));
    p->token++;
    return TL_OK;
}

/* ---- the header ---- */

typedef struct {
    int count, capacity;
    const void **items;
} pointers;

static void append(tl_parser *p, pointers *to, const void *item)
{
    TL_ROOM(p->arena, to->items, to->count, to->capacity);
    to->items[to->count++] = item;
}

/* NAME in LO..HI, both included. */
static tl_status parse_dim(tl_parser *p, pointers *dims)
{
    const tl_token *at = p->token;
    const char *name;
    int64_t min, max;
    TL_TRY(tl_parse_name(p, "a dim", &name));
    TL_TRY(check_new_name(p, at));
    TL_TRY(tl_parse_expect(p, "in"));
    TL_TRY(tl_parse_integer(p, &min));
    TL_TRY(tl_parse_expect(p, ".."));
    TL_TRY(tl_parse_integer(p, &max));
    if (min < 0 || max < min || max > INT64_C(1) << 48)
        return tl_parse_fail_at(p, at, "dim %s: %lld..%lld is not a range of sizes", name,
                                (long long)min, (long long)max);
    tl_var *dim = tl_var_make(p->arena, name, min, max);
    dim->is_dim = true;
    tl_parse_push(p, name, TL_SYMBOL_DIM)->var = dim;
    tl_map_put(p->buffers, name, dim);
    append(p, dims, dim);
    return TL_OK;
}

static tl_status parse_param(tl_parser *p, pointers *dims, pointers *params)
{
    tl_buffer *buffer;
    tl_role role = TL_ROLE_INPUT;
    if (tl_parse_accept(p, "dim"))
        return parse_dim(p, dims);
    if (tl_parse_accept(p, "const"))
        role = TL_ROLE_CONST;
    else if (tl_parse_accept(p, "out"))
        role = TL_ROLE_OUTPUT;
    else if (tl_parse_accept(p, "inout"))
        role = TL_ROLE_INOUT;
    TL_TRY(parse_buffer(p, role, &buffer));
    append(p, params, buffer);
    return TL_OK;
}

static tl_status parse_header(tl_parser *p, tl_program *program)
{
    pointers dims = { 0 }, params = { 0 };
    program->strict = tl_parse_accept(p, "strict");
    program->tf32 = !program->strict && tl_parse_accept(p, "tf32");
    TL_TRY(tl_parse_expect(p, "kernel"));
    if (p->token->kind != TL_TOKEN_NAME)
        return tl_parse_fail(p, "expected the kernel's name, found %s", tl_token_text(p->token));
    program->name = (p->token++)->text;
    TL_TRY(tl_parse_expect(p, "("));
    while (!tl_parse_at(p, ")")) {
        if (dims.count + params.count > 0)
            TL_TRY(tl_parse_expect(p, ","));
        TL_TRY(parse_param(p, &dims, &params));
    }
    TL_TRY(tl_parse_expect(p, ")"));
    TL_TRY(tl_parse_newline(p));
    program->dim_count = dims.count;
    program->dims = (const tl_var *const *)dims.items;
    program->param_count = params.count;
    program->params = (const tl_buffer *const *)params.items;
    return TL_OK;
}

static tl_status parse_prepared(tl_parser *p, tl_program *program)
{
    pointers prepared = { 0 };
    while (tl_parse_accept(p, "prepared")) {
        tl_buffer *buffer;
        TL_TRY(parse_buffer(p, TL_ROLE_PREPARED, &buffer));
        TL_TRY(tl_parse_newline(p));
        append(p, &prepared, buffer);
    }
    program->prepared_count = prepared.count;
    program->prepared = (const tl_buffer *const *)prepared.items;
    return TL_OK;
}

/* After the header line everything may be indented; `prepared`, `prepare` and `body` may stand at
 * the header's own indentation or at the body's. */
static tl_status parse_parts(tl_parser *p, tl_program *program)
{
    bool indented = p->token->kind == TL_TOKEN_INDENT;
    p->token += indented;
    TL_TRY(parse_prepared(p, program));
    if (!indented && p->token->kind == TL_TOKEN_INDENT) {
        indented = true;
        p->token++;
    }
    if (tl_parse_accept(p, "prepare")) {
        TL_TRY(tl_parse_newline(p));
        TL_TRY(parse_body(p, "prepare", &program->prepare));
        if (!tl_parse_at(p, "body"))
            return tl_parse_fail(p, "after the prepare part comes `body`, not %s",
                                 tl_token_text(p->token));
    }
    if (tl_parse_accept(p, "body")) {
        TL_TRY(tl_parse_newline(p));
        TL_TRY(parse_body(p, "body", &program->body));
    } else {
        TL_TRY(parse_list(p, "the kernel", &program->body));
        if (program->body->kind == TL_STMT_SEQ && program->body->u.seq.count == 0)
            return tl_parse_fail(p, "kernel %s does nothing", program->name);
    }
    if (indented && p->token->kind == TL_TOKEN_DEDENT)
        p->token++;
    if (p->token->kind != TL_TOKEN_END)
        return tl_parse_fail(p, "expected the end of the program, found %s",
                             tl_token_text(p->token));
    return TL_OK;
}

tl_status tl_program_parse(tl_arena *arena, const char *text, const char *file, tl_program **out,
                           tl_diag *diag)
{
    tl_parser p = { .arena = arena, .file = file, .diag = diag };
    tl_program *program = TL_NEW(arena, tl_program);
    p.symbols = tl_map_create(arena);
    p.buffers = tl_map_create(arena);
    p.blocks = tl_map_create(arena);
    TL_TRY(tl_lex(arena, text, file, &p.token, diag));
    TL_TRY(parse_header(&p, program));
    TL_TRY(parse_parts(&p, program));
    *out = program;
    return TL_OK;
}

tl_status tl_index_parse(tl_arena *arena, const char *text, const char *file,
                         const tl_var *const *vars, int var_count, const tl_expr **out,
                         tl_diag *diag)
{
    tl_parser p = { .arena = arena, .file = file, .diag = diag };
    p.symbols = tl_map_create(arena);
    TL_TRY(tl_lex(arena, text, file, &p.token, diag));
    for (int i = 0; i < var_count; i++) {
        if (tl_is_reserved(vars[i]->name))
            return tl_parse_fail(&p, "%s is a word of the language, not the name of a variable",
                                 vars[i]->name);
        tl_parse_push(&p, vars[i]->name, TL_SYMBOL_ITER)->var = vars[i];
    }
    TL_TRY(tl_parse_index(&p, out));
    TL_TRY(tl_parse_newline(&p));
    if (p.token->kind != TL_TOKEN_END)
        return tl_parse_fail(&p, "expected the end, found %s", tl_token_text(p.token));
    return TL_OK;
}
