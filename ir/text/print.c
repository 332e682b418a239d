/* ir/text/print.c: the text of Programs, in the grammar of ir/README.md.
 *
 * Names are made unique as the parser needs them: buffers and dims in the whole program, a loop's
 * among everything visible in it, an iter's in its block; an iter keeps the name of the loop that it
 * is bound to. */
#include <stdio.h>
#include <string.h>
#include "ir/text/text_private.h"
#include "runtime/base/array.h"

typedef struct {
    const void *key; /* the tl_var or tl_buffer */
    const char *name;
    const tl_expr *extent; /* of a loop */
} entry;

typedef struct {
    tl_namer namer; /* first: the callbacks find the rest behind it */
    tl_arena *arena;
    tl_text *out;
    int count, capacity;
    entry *entries; /* buffers and dims, then the loops and iters around the current statement */
} printer;

/* ---- names ---- */

static const entry *find_key(const printer *p, const void *key)
{
    for (int i = p->count - 1; i >= 0; i--)
        if (p->entries[i].key == key)
            return &p->entries[i];
    return NULL;
}

static const char *name_var(const tl_namer *namer, const tl_var *var)
{
    const entry *e = find_key((const printer *)(const void *)namer, var);
    return e == NULL ? var->name : e->name;
}

static const char *name_buffer(const tl_namer *namer, const tl_buffer *buffer)
{
    const entry *e = find_key((const printer *)(const void *)namer, buffer);
    return e == NULL ? buffer->name : e->name;
}

/* `name` with what the lexer would not take for one name replaced by `_`. */
static char *clean(printer *p, const char *name)
{
    size_t size = strlen(name);
    bool digit_first = size == 0 || !tl_is_name_start(name[0]);
    char *text = tl_arena_format(p->arena, "%s%s", digit_first ? "_" : "", name);
    for (char *c = text; *c != '\0'; c++)
        if (!tl_is_name_char(*c) && (*c != '.' || !tl_is_name_char(c[1])))
            *c = '_';
    return text;
}

static bool is_taken(const printer *p, const char *name, const void *except)
{
    for (int i = 0; i < p->count; i++)
        if (p->entries[i].key != except && strcmp(p->entries[i].name, name) == 0)
            return true;
    return tl_is_reserved(name);
}

/* Gives `key` a name that nothing visible has but `except`. */
static const char *push(printer *p, const void *key, const char *wanted, const void *except)
{
    const char *base = clean(p, wanted), *name = base;
    for (int i = 1; is_taken(p, name, except); i++)
        name = tl_arena_format(p->arena, "%s_%d", base, i);
    TL_ROOM(p->arena, p->entries, p->count, p->capacity);
    p->entries[p->count++] = (entry){ key, name, NULL };
    return name;
}

static bool push_alloc(const tl_stmt *s, void *context)
{
    printer *p = context;
    if (s->kind == TL_STMT_ALLOC && find_key(p, s->u.alloc.buffer) == NULL)
        push(p, s->u.alloc.buffer, s->u.alloc.buffer->name, NULL);
    return true;
}

/* ---- pieces ---- */

static void print_expr(printer *p, const tl_expr *e)
{
    tl_expr_print_named(e, &p->namer, p->out);
}

static void print_list(printer *p, const tl_expr *const *exprs, int count)
{
    for (int i = 0; i < count; i++) {
        if (i > 0)
            tl_text_add(p->out, ", ");
        print_expr(p, exprs[i]);
    }
}

static void print_access(printer *p, const tl_buffer *buffer, const tl_expr *const *indices)
{
    tl_text_format(p->out, "%s[", name_buffer(&p->namer, buffer));
    print_list(p, indices, buffer->rank);
    tl_text_add(p->out, "]");
}

/* NAME: DTYPE[shape] swizzle BYTES strides [...] */
static void print_buffer(printer *p, const tl_buffer *b)
{
    tl_text_format(p->out, "%s: %s[", name_buffer(&p->namer, b), tl_dtype_infos[b->dtype].text);
    print_list(p, b->shape, b->rank);
    tl_text_add(p->out, "]");
    if (b->swizzle != 0)
        tl_text_format(p->out, " swizzle %d", b->swizzle);
    if (b->strides == NULL)
        return;
    tl_text_add(p->out, " strides [");
    for (int i = 0; i < b->rank; i++)
        tl_text_format(p->out, "%s%lld", i > 0 ? ", " : "", (long long)b->strides[i]);
    tl_text_add(p->out, "]");
}

static void print_region(printer *p, const tl_region *r)
{
    tl_text_format(p->out, "%s[", name_buffer(&p->namer, r->buffer));
    for (int i = 0; i < r->buffer->rank; i++) {
        if (i > 0)
            tl_text_add(p->out, ", ");
        print_expr(p, r->begin[i]);
        if (tl_is_int(r->extent[i], 1))
            continue;
        tl_text_add(p->out, "..");
        tl_expr_print_total(r->begin[i], r->extent[i], &p->namer, p->out);
    }
    tl_text_add(p->out, "]");
}

static void print_call(printer *p, const tl_intrinsic_call *call)
{
    bool first = true;
    tl_text_format(p->out, "call %s(", call->name);
    for (int i = 0; i < call->read_count; i++, first = false) {
        tl_text_add(p->out, first ? "read " : ", read ");
        print_region(p, &call->reads[i]);
    }
    for (int i = 0; i < call->write_count; i++, first = false) {
        tl_text_add(p->out, first ? "write " : ", write ");
        print_region(p, &call->writes[i]);
    }
    for (int i = 0; i < call->scalar_count; i++, first = false) {
        tl_text_add(p->out, first ? "" : ", ");
        print_expr(p, call->scalars[i]);
    }
    tl_text_add(p->out, ")\n");
}

/* ---- blocks ---- */

/* `spatial i` says it all: bound to the loop of the same name, over its whole extent. */
static bool is_short(const printer *p, const tl_iter *iter, const char *name)
{
    if (iter->binding->kind != TL_EXPR_VAR)
        return false;
    const entry *loop = find_key(p, iter->binding->u.var);
    return loop != NULL && loop->extent != NULL && strcmp(loop->name, name) == 0 &&
           tl_expr_equal(loop->extent, iter->extent);
}

static void print_iters(printer *p, const tl_block *block, int outer, int indent)
{
    bool open = false; /* a line of short items, which others may join */
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        const char *name = p->entries[outer + i].name;
        bool is_loop = is_short(p, iter, name);
        if (open && is_loop && block->iters[i - 1].kind == iter->kind) {
            tl_text_format(p->out, ", %s", name);
            continue;
        }
        if (i > 0)
            tl_text_add(p->out, "\n");
        tl_text_indent(p->out, indent);
        tl_text_format(p->out, "%s %s", tl_iter_kind_texts[iter->kind], name);
        open = is_loop;
        if (is_loop)
            continue;
        tl_text_add(p->out, " in 0..");
        tl_expr_print_tight(iter->extent, &p->namer, p->out);
        tl_text_add(p->out, " = ");
        print_expr(p, iter->binding);
    }
    if (block->iter_count > 0)
        tl_text_add(p->out, "\n");
}

static void print_reduction(printer *p, const tl_block *block, int indent)
{
    const char *combiner = tl_combiner_infos[block->combiner].text;
    tl_text_indent(p->out, indent);
    for (int i = 0; i < block->store_count; i++) {
        tl_text_add(p->out, i > 0 ? ", " : "");
        print_access(p, block->stores[i].buffer, block->stores[i].indices);
    }
    tl_text_format(p->out, block->has_init ? " = %s(" : " %s= ", combiner);
    for (int i = 0; i < block->store_count; i++) {
        tl_text_add(p->out, i > 0 ? ", " : "");
        print_expr(p, block->stores[i].value);
    }
    tl_text_add(p->out, block->has_init ? ")" : "");
    if (block->has_init && block->init != NULL) {
        tl_text_add(p->out, " from ");
        print_list(p, block->init, block->store_count);
    }
    tl_text_add(p->out, "\n");
}

static void print_store(printer *p, const tl_store *store, int indent)
{
    tl_text_indent(p->out, indent);
    print_access(p, store->buffer, store->indices);
    tl_text_add(p->out, " = ");
    print_expr(p, store->value);
    tl_text_add(p->out, "\n");
}

/* The loop whose name an iter may have too: it is bound to that alone. Not when the predicate speaks of the loop, which
 * is longer than the iter: there the two are told apart. */
static const tl_var *namesake(const printer *p, const tl_block *block, const tl_iter *iter)
{
    if (iter->binding->kind != TL_EXPR_VAR)
        return NULL;
    const tl_var *var = iter->binding->u.var;
    const entry *loop = find_key(p, var);
    bool same = loop != NULL && loop->extent != NULL && tl_expr_equal(loop->extent, iter->extent);
    if (!same && block->predicate != NULL && tl_expr_uses_var(block->predicate, var))
        return NULL;
    return var;
}

static void print_block(printer *p, const tl_block *block, int indent)
{
    int outer = p->count;
    tl_text_indent(p->out, indent);
    tl_text_format(p->out, "block %s\n", clean(p, block->name));
    indent += 2;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        push(p, iter->var, iter->var->name, namesake(p, block, iter));
    }
    print_iters(p, block, outer, indent);
    if (block->predicate != NULL) {
        tl_text_indent(p->out, indent);
        tl_text_add(p->out, "where ");
        print_expr(p, block->predicate);
        tl_text_add(p->out, "\n");
    }
    if (block->call != NULL) {
        tl_text_indent(p->out, indent);
        print_call(p, block->call);
    } else if (block->combiner != TL_COMBINER_NONE) {
        print_reduction(p, block, indent);
    } else {
        for (int i = 0; i < block->store_count; i++)
            print_store(p, &block->stores[i], indent);
    }
    p->count = outer;
}

/* ---- statements ---- */

static void print_stmt(printer *p, const tl_stmt *s, int indent);

static void print_loop(printer *p, const tl_stmt *s, int indent)
{
    int outer = p->count;
    const char *name = push(p, s->u.loop.var, s->u.loop.var->name, NULL);
    p->count = outer; /* the extent does not see it */
    tl_text_indent(p->out, indent);
    tl_text_format(p->out, "for %s in 0..", name);
    tl_expr_print_tight(s->u.loop.extent, &p->namer, p->out);
    if (s->u.loop.kind != TL_LOOP_SERIAL)
        tl_text_format(p->out, " %s", tl_loop_kind_infos[s->u.loop.kind].text);
    for (int i = 0; i < s->u.loop.annotation_count; i++)
        tl_text_format(p->out, "%s%s = %lld", i == 0 ? " {" : ", ", s->u.loop.annotations[i].key,
                       (long long)s->u.loop.annotations[i].value);
    tl_text_add(p->out, s->u.loop.annotation_count > 0 ? "}\n" : "\n");
    p->count = outer + 1;
    p->entries[outer].extent = s->u.loop.extent;
    print_stmt(p, s->u.loop.body, indent + 2);
    p->count = outer;
}

static void print_line(printer *p, const char *text, int indent)
{
    tl_text_indent(p->out, indent);
    tl_text_add(p->out, text);
}

static void print_if(printer *p, const tl_stmt *s, int indent)
{
    print_line(p, "if ", indent);
    print_expr(p, s->u.branch.condition);
    tl_text_add(p->out, "\n");
    print_stmt(p, s->u.branch.then, indent + 2);
    if (s->u.branch.otherwise != NULL) {
        print_line(p, "else\n", indent);
        print_stmt(p, s->u.branch.otherwise, indent + 2);
    }
}

static void print_stmt(printer *p, const tl_stmt *s, int indent)
{
    switch (s->kind) {
    case TL_STMT_LOOP:
        print_loop(p, s, indent);
        return;
    case TL_STMT_SEQ:
        for (int i = 0; i < s->u.seq.count; i++)
            print_stmt(p, s->u.seq.items[i], indent);
        return;
    case TL_STMT_BLOCK:
        print_block(p, s->u.block, indent);
        return;
    case TL_STMT_ALLOC:
        print_line(p, "alloc ", indent);
        print_buffer(p, s->u.alloc.buffer);
        if (s->u.alloc.buffer->scope != TL_SCOPE_GLOBAL)
            tl_text_format(p->out, " %s", tl_scope_texts[s->u.alloc.buffer->scope]);
        tl_text_add(p->out, "\n");
        print_stmt(p, s->u.alloc.body, indent);
        return;
    case TL_STMT_BARRIER:
        print_line(p, "barrier\n", indent);
        return;
    case TL_STMT_PREFETCH:
        print_line(p, "prefetch ", indent);
        print_access(p, s->u.prefetch.buffer, s->u.prefetch.indices);
        tl_text_format(p->out, " to L%d\n", s->u.prefetch.level);
        return;
    case TL_STMT_IF:
        print_if(p, s, indent);
        return;
    case TL_STMT_STORE:
        print_store(p, &s->u.store, indent);
        return;
    case TL_STMT_CALL:
        print_line(p, "", indent);
        print_call(p, s->u.call);
        return;
    case TL_STMT_KIND_COUNT:
        return;
    }
}

/* ---- programs ---- */

static const char *role_word(tl_role role)
{
    switch (role) {
    case TL_ROLE_CONST:
        return "const ";
    case TL_ROLE_OUTPUT:
        return "out ";
    case TL_ROLE_INOUT:
        return "inout ";
    case TL_ROLE_INPUT:
    case TL_ROLE_PREPARED:
    case TL_ROLE_LOCAL:
        break;
    }
    return "";
}

static void print_header(printer *p, const tl_program *program)
{
    bool first = true;
    tl_text_format(p->out, "%skernel %s(",
                   program->strict ? "strict "
                   : program->tf32 ? "tf32 "
                                   : "",
                   clean(p, program->name));
    for (int i = 0; i < program->dim_count; i++, first = false) {
        const tl_var *dim = program->dims[i];
        tl_text_format(p->out, "%sdim %s in %lld..%lld", first ? "" : ", ",
                       name_var(&p->namer, dim), (long long)dim->min, (long long)dim->max);
    }
    for (int i = 0; i < program->param_count; i++, first = false) {
        tl_text_format(p->out, "%s%s", first ? "" : ", ", role_word(program->params[i]->role));
        print_buffer(p, program->params[i]);
    }
    tl_text_add(p->out, ")\n");
    for (int i = 0; i < program->prepared_count; i++) {
        tl_text_add(p->out, "prepared ");
        print_buffer(p, program->prepared[i]);
        tl_text_add(p->out, "\n");
    }
}

static void print_program(printer *p, const tl_program *program)
{
    for (int i = 0; i < program->dim_count; i++)
        push(p, program->dims[i], program->dims[i]->name, NULL);
    for (int i = 0; i < program->param_count; i++)
        push(p, program->params[i], program->params[i]->name, NULL);
    for (int i = 0; i < program->prepared_count; i++)
        push(p, program->prepared[i], program->prepared[i]->name, NULL);
    if (program->prepare != NULL)
        tl_stmt_visit(program->prepare, push_alloc, p);
    if (program->body != NULL)
        tl_stmt_visit(program->body, push_alloc, p);

    print_header(p, program);
    if (program->prepare != NULL) {
        tl_text_add(p->out, "prepare\n");
        print_stmt(p, program->prepare, 2);
        tl_text_add(p->out, "body\n");
    }
    if (program->body != NULL)
        print_stmt(p, program->body, 2);
}

/* Runs the printer with an arena of its own for the names. */
void tl_program_print(const tl_program *program, tl_text *out)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        out->failed = true;
        return;
    }
    printer p = { .namer = { name_var, name_buffer }, .arena = arena, .out = out };
    print_program(&p, program);
    tl_arena_destroy(arena);
}

const char *tl_program_text(tl_arena *arena, const tl_program *program)
{
    tl_text text = { 0 };
    tl_program_print(program, &text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

void tl_program_dump(const tl_program *program)
{
    tl_text text = { 0 };
    tl_program_print(program, &text);
    fputs(tl_text_get(&text), stderr);
    tl_text_free(&text);
}
