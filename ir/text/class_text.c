/* ir/text/class_text.c: the class of a Program (ARCHITECTURE.md, "Classes"): its text with names replaced
 * by numbers, integer and float constants by `_`, dtypes by T0, T1, ... in order of appearance, and
 * coefficients of indices left out: kernels of one class differ in extents, strides, dtypes and
 * block sizes only, and a schedule of one can be tried on another. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/program.h"
#include "ir/text/text_private.h"
#include "runtime/base/array.h"

typedef struct {
    tl_arena *arena;
    tl_text *out;
    int count, capacity;
    const void **keys; /* variables and buffers in order of declaration */
    int dtype_count;
    tl_dtype dtypes[TL_DTYPE_COUNT];
} printer;

static void declare(printer *p, const void *key)
{
    TL_ROOM(p->arena, p->keys, p->count, p->capacity);
    p->keys[p->count++] = key;
}

static const char *name(printer *p, char letter, const void *key)
{
    int at = p->count - 1;
    while (at >= 0 && p->keys[at] != key)
        at--;
    assert(at >= 0);
    return tl_arena_format(p->arena, "%c%d", letter, at);
}

static int dtype_number(printer *p, tl_dtype d)
{
    for (int i = 0; i < p->dtype_count; i++)
        if (p->dtypes[i] == d)
            return i;
    p->dtypes[p->dtype_count] = d;
    return p->dtype_count++;
}

/* ---- expressions ---- */

static const char *text_of(printer *p, const tl_expr *e);

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Operands of an i64 chain, sorted, without constants. */
static const char *text_of_chain(printer *p, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_MUL);
    const tl_expr *rest = e;
    int count = 1, kept = 0;
    for (; rest->kind == e->kind; rest = rest->args[0])
        count++;
    const char **parts = TL_NEW_ARRAY(p->arena, const char *, count);
    rest = e;
    for (int i = 1; i < count; i++, rest = rest->args[0])
        if (rest->args[1]->kind != TL_EXPR_INT)
            parts[kept++] = text_of(p, rest->args[1]);
    if (rest->kind != TL_EXPR_INT)
        parts[kept++] = text_of(p, rest);
    if (kept == 1)
        return parts[0];
    qsort(parts, (size_t)kept, sizeof *parts, compare_texts);
    tl_text text = { 0 };
    for (int i = 0; i < kept; i++)
        tl_text_format(&text, "%s%s",
                       i == 0                   ? "("
                       : e->kind == TL_EXPR_ADD ? " + "
                                                : "*",
                       parts[i]);
    tl_text_add(&text, ")");
    const char *copy = tl_arena_strdup(p->arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

static const char *text_of_args(printer *p, const char *head, const tl_expr *const *args, int count)
{
    const char *text = tl_arena_format(p->arena, "%s(", head);
    for (int i = 0; i < count; i++)
        text = tl_arena_format(p->arena, "%s%s%s", text, i > 0 ? ", " : "", text_of(p, args[i]));
    return tl_arena_format(p->arena, "%s)", text);
}

static const char *text_of(printer *p, const tl_expr *e)
{
    if (e->dtype == TL_I64 && (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_MUL))
        return text_of_chain(p, e);
    if (e->kind == TL_EXPR_CAST)
        return text_of_args(p, tl_arena_format(p->arena, "T%d", dtype_number(p, e->dtype)), e->args,
                            1);
    if (e->kind == TL_EXPR_BITS)
        return text_of_args(p,
                            tl_arena_format(p->arena, TL_BITS_PREFIX "T%d",
                                            dtype_number(p, e->dtype)),
                            e->args, 1);
    switch (tl_expr_infos[e->kind].payload) {
    case TL_PAYLOAD_VALUE:
        return e->dtype == TL_BOOL ? (e->u.value ? "true" : "false") : "_";
    case TL_PAYLOAD_NUMBER:
        return "_";
    case TL_PAYLOAD_VAR:
        return name(p, 'v', e->u.var);
    case TL_PAYLOAD_BUFFER:
        return text_of_args(p, name(p, 'b', e->u.buffer), e->args, e->arg_count);
    case TL_PAYLOAD_FUNCTION:
        return text_of_args(p, tl_function_infos[e->u.function].text, e->args, e->arg_count);
    case TL_PAYLOAD_NONE:
        break;
    }
    return text_of_args(p, tl_expr_infos[e->kind].text, e->args, e->arg_count);
}

/* ---- statements ---- */

static void print_exprs(printer *p, const tl_expr *const *exprs, int count)
{
    for (int i = 0; i < count; i++)
        tl_text_format(p->out, "%s%s", i > 0 ? ", " : "", text_of(p, exprs[i]));
}

static void print_buffer(printer *p, const char *word, const tl_buffer *b)
{
    declare(p, b);
    tl_text_format(p->out, "%s %s: T%d", word, name(p, 'b', b), dtype_number(p, b->dtype));
    for (int i = 0; i < b->rank; i++)
        tl_text_add(p->out, b->shape[i]->kind == TL_EXPR_INT ? " _" : " n");
    tl_text_add(p->out, "\n");
}

static void print_regions(printer *p, const char *word, const tl_region *regions, int count)
{
    for (int i = 0; i < count; i++) {
        tl_text_format(p->out, " %s %s[", word, name(p, 'b', regions[i].buffer));
        print_exprs(p, regions[i].begin, regions[i].buffer->rank);
        tl_text_add(p->out, "]");
    }
}

static void print_call(printer *p, const tl_intrinsic_call *call)
{
    tl_text_format(p->out, "call %s", call->name);
    print_regions(p, "read", call->reads, call->read_count);
    print_regions(p, "write", call->writes, call->write_count);
    tl_text_add(p->out, "\n");
}

static void print_store(printer *p, const tl_store *store, const char *combiner)
{
    tl_text_format(p->out, "%s[", name(p, 'b', store->buffer));
    print_exprs(p, store->indices, store->buffer->rank);
    tl_text_format(p->out, "] %s= %s\n", combiner, text_of(p, store->value));
}

static void print_block(printer *p, const tl_block *block, int indent)
{
    tl_text_add(p->out, "block");
    for (int i = 0; i < block->iter_count; i++) {
        const char *binding = text_of(p, block->iters[i].binding);
        declare(p, block->iters[i].var);
        tl_text_format(p->out, " %s %s=%s", tl_iter_kind_texts[block->iters[i].kind],
                       name(p, 'v', block->iters[i].var), binding);
    }
    if (block->predicate != NULL)
        tl_text_format(p->out, " where %s", text_of(p, block->predicate));
    tl_text_add(p->out, "\n");
    bool reduces = block->combiner != TL_COMBINER_NONE;
    for (int i = 0; i < block->store_count; i++) {
        tl_text_indent(p->out, indent + 1);
        print_store(p, &block->stores[i], reduces ? tl_combiner_infos[block->combiner].text : "");
    }
    if (block->call != NULL) {
        tl_text_indent(p->out, indent + 1);
        print_call(p, block->call);
    }
}

static void print_stmt(printer *p, const tl_stmt *s, int indent)
{
    if (s->kind != TL_STMT_SEQ)
        tl_text_indent(p->out, indent);
    switch (s->kind) {
    case TL_STMT_LOOP:
        declare(p, s->u.loop.var);
        tl_text_format(p->out, "for %s in %s", name(p, 'v', s->u.loop.var),
                       text_of(p, s->u.loop.extent));
        if (s->u.loop.kind != TL_LOOP_SERIAL)
            tl_text_format(p->out, " %s", tl_loop_kind_infos[s->u.loop.kind].text);
        tl_text_add(p->out, "\n");
        print_stmt(p, s->u.loop.body, indent + 1);
        return;
    case TL_STMT_SEQ:
        for (int i = 0; i < s->u.seq.count; i++)
            print_stmt(p, s->u.seq.items[i], indent);
        return;
    case TL_STMT_BLOCK:
        print_block(p, s->u.block, indent);
        return;
    case TL_STMT_ALLOC:
        print_buffer(p, tl_scope_texts[s->u.alloc.buffer->scope], s->u.alloc.buffer);
        print_stmt(p, s->u.alloc.body, indent);
        return;
    case TL_STMT_BARRIER:
        tl_text_add(p->out, "barrier\n");
        return;
    case TL_STMT_PREFETCH:
        tl_text_format(p->out, "prefetch %s\n", name(p, 'b', s->u.prefetch.buffer));
        return;
    case TL_STMT_IF:
        tl_text_format(p->out, "if %s\n", text_of(p, s->u.branch.condition));
        print_stmt(p, s->u.branch.then, indent + 1);
        if (s->u.branch.otherwise != NULL)
            print_stmt(p, s->u.branch.otherwise, indent + 1);
        return;
    case TL_STMT_STORE:
        print_store(p, &s->u.store, "");
        return;
    case TL_STMT_CALL:
        print_call(p, s->u.call);
        return;
    case TL_STMT_KIND_COUNT:
        return;
    }
}

static const char *role_word(tl_role role)
{
    switch (role) {
    case TL_ROLE_INPUT:
        return "in";
    case TL_ROLE_CONST:
        return "const";
    case TL_ROLE_OUTPUT:
        return "out";
    case TL_ROLE_INOUT:
        return "inout";
    case TL_ROLE_PREPARED:
        return "prepared";
    case TL_ROLE_LOCAL:
        break;
    }
    return "local";
}

const char *tl_program_class_text(tl_arena *arena, const tl_program *program)
{
    tl_text text = { 0 };
    printer p = { .arena = arena, .out = &text };
    for (int i = 0; i < program->dim_count; i++)
        declare(&p, program->dims[i]);
    for (int i = 0; i < program->param_count; i++)
        print_buffer(&p, role_word(program->params[i]->role), program->params[i]);
    for (int i = 0; i < program->prepared_count; i++)
        print_buffer(&p, role_word(TL_ROLE_PREPARED), program->prepared[i]);
    if (program->prepare != NULL) {
        tl_text_add(&text, "prepare\n");
        print_stmt(&p, program->prepare, 1);
        tl_text_add(&text, "body\n");
    }
    print_stmt(&p, program->body, 0);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}
