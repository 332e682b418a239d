/* ir/program/join_programs.c: one program from those of a kernel at several extents.
 *
 *     for i in 0..17                 for i in 0..29                       for i in 0..n
 *       block b             and        block b                    ->        block b
 *         Y[i] = X[i*4 + 3]              Y[i] = X[i*4 + 3]                    Y[i] = X[i*4 + 3]
 *
 * All are walked together. They are the same but for numbers, and each number is a function of the dims
 * (runtime/base/varying.h) that has its values in all of them; an integral float is that function, too, and so is what a float
 * is the reciprocal of.
 *
 * Why what comes out is right between the corners of the samples: expressions of programs are simplified by comparing sums of
 * extents with constants. Those are functions of the dims in which each dim stands once, which have their extremes at the
 * corners, so that what is decided the same way at all corners is decided so everywhere between them. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/program/join_programs.h"

enum { MOST_NAMES = 4096 };

/* What stands for the same thing in all programs: vars or buffers; `joined` in the new one. */
typedef struct {
    const void *const *of; /* one a program */
    const void *joined;
} name;

typedef struct {
    tl_arena *arena;
    const tl_program *const *programs;
    const tl_samples *samples;
    const tl_var *const *dims;
    int name_count;
    name names[MOST_NAMES];
    bool varies; /* some number does */
    tl_diag *diag;
} join;

/* One of each program, as tl_expr or tl_stmt. */
typedef const tl_expr *const *expr_tuple;
typedef const tl_stmt *const *stmt_tuple;

static tl_status differ(const join *j, const char *what)
{
    return tl_fail(j->diag, TL_UNSUPPORTED, "its loops depend on the extents in another way: %s",
                   what);
}

static bool add_name(join *j, const void *const *of, const void *joined)
{
    if (j->name_count == MOST_NAMES)
        return false;
    j->names[j->name_count].of = of;
    j->names[j->name_count++].joined = joined;
    return true;
}

/* What stands for these; NULL: they are not the same thing. The latest first, as scopes nest. */
static const void *find_name(const join *j, const void *const *of)
{
    for (int i = j->name_count - 1; i >= 0; i--)
        if (j->names[i].of[0] == of[0]) {
            size_t size = sizeof *of * (size_t)j->samples->count;
            return memcmp(j->names[i].of, of, size) == 0 ? j->names[i].joined : NULL;
        }
    return NULL;
}

#define TUPLE(j, type) TL_NEW_ARRAY((j)->arena, const type *, (j)->samples->count)

/* ---- numbers ---- */

static const tl_expr *varying_expr(const join *j, const tl_varying *v)
{
    const tl_expr *sum = tl_int(j->arena, v->of[0]);
    for (int s = 1; s < 1 << j->samples->dim_count; s++) {
        const tl_expr *product = tl_int(j->arena, v->of[s]);
        for (int d = 0; d < j->samples->dim_count; d++)
            if ((s >> d & 1) != 0)
                product = tl_mul(j->arena, product, tl_ref(j->arena, j->dims[d]));
        sum = tl_add(j->arena, sum, product);
    }
    return sum;
}

/* A number of i64; NULL: it is no function of the dims. */
static const tl_expr *join_numbers(join *j, const int64_t *numbers)
{
    tl_varying v;
    if (!tl_varying_fit(j->samples, numbers, &v))
        return NULL;
    j->varies |= !tl_varying_is_constant(&v);
    return varying_expr(j, &v);
}

static tl_status join_ints(join *j, expr_tuple e, const tl_expr **out)
{
    int64_t *numbers = TL_NEW_ARRAY(j->arena, int64_t, j->samples->count);
    bool same = true;
    for (int i = 0; i < j->samples->count; i++) {
        numbers[i] = e[i]->u.value;
        same &= numbers[i] == numbers[0];
    }
    *out = same ? e[0] : e[0]->dtype == TL_BOOL ? NULL : join_numbers(j, numbers);
    if (*out == NULL)
        return differ(j, "a number does not grow with them");
    *out = tl_cast(j->arena, e[0]->dtype, *out);
    return TL_OK;
}

/* The whole number that x is, or, when `inverse`, of which x is the reciprocal as its dtype holds it; 0: none. */
static int64_t whole_number(tl_arena *arena, const tl_expr *x, bool inverse)
{
    double number = inverse ? round(1 / x->u.number) : x->u.number;
    if (!(fabs(number) >= 1 && fabs(number) < 9007199254740992.0) || number != floor(number))
        return 0;
    double again = tl_float(arena, x->dtype, inverse ? 1 / number : number)->u.number;
    return again == x->u.number ? (int64_t)number : 0;
}

static tl_status join_floats(join *j, expr_tuple e, const tl_expr **out)
{
    int64_t *numbers = TL_NEW_ARRAY(j->arena, int64_t, j->samples->count);
    bool same = true;
    for (int i = 1; i < j->samples->count; i++)
        same &= memcmp(&e[i]->u.number, &e[0]->u.number, sizeof e[0]->u.number) == 0;
    *out = e[0];
    if (same)
        return TL_OK;
    for (int inverse = 0; inverse <= 1; inverse++) {
        bool whole = true;
        for (int i = 0; i < j->samples->count && whole; i++) {
            numbers[i] = whole_number(j->arena, e[i], inverse == 1);
            whole = numbers[i] != 0;
        }
        const tl_expr *n = whole ? join_numbers(j, numbers) : NULL;
        if (n == NULL)
            continue;
        tl_dtype dtype = e[0]->dtype;
        *out = tl_cast(j->arena, dtype, n);
        if (inverse)
            *out = tl_div(j->arena, tl_float(j->arena, dtype, 1), *out);
        return TL_OK;
    }
    return differ(j, "it computes with a number made of them");
}

/* ---- expressions ---- */

static tl_status join_expr(join *j, expr_tuple e, const tl_expr **out);

/* A list of `count` expressions of each program; list[i] is NULL in all of them or in none. */
static tl_status join_exprs(join *j, const tl_expr *const *const *lists, int count,
                            const tl_expr *const **out)
{
    const tl_expr **joined = TL_NEW_ARRAY(j->arena, const tl_expr *, count);
    for (int i = 0; i < count; i++) {
        const tl_expr **e = TUPLE(j, tl_expr);
        for (int k = 0; k < j->samples->count; k++)
            e[k] = lists[k][i];
        TL_TRY(join_expr(j, e, &joined[i]));
    }
    *out = joined;
    return TL_OK;
}

static tl_status join_buffer(const join *j, const tl_buffer *const *of, const tl_buffer **out)
{
    *out = find_name(j, (const void *const *)of);
    return *out != NULL ? TL_OK : differ(j, "it reads or writes something else");
}

static tl_status join_children(join *j, expr_tuple e, const tl_expr **out)
{
    const tl_expr *const **lists =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    const tl_buffer *buffer = NULL;
    const tl_expr *const *args;
    for (int k = 0; k < j->samples->count; k++)
        lists[k] = e[k]->args;
    if (e[0]->kind == TL_EXPR_LOAD) {
        const tl_buffer **buffers = TUPLE(j, tl_buffer);
        for (int k = 0; k < j->samples->count; k++)
            buffers[k] = e[k]->u.buffer;
        TL_TRY(join_buffer(j, buffers, &buffer));
    }
    TL_TRY(join_exprs(j, lists, e[0]->arg_count, &args));
    bool divides = e[0]->kind == TL_EXPR_FLOORDIV || e[0]->kind == TL_EXPR_FLOORMOD;
    if (divides && e[0]->args[1]->kind == TL_EXPR_INT && args[1]->kind != TL_EXPR_INT)
        return differ(j, "an index is divided by one");
    *out =
        buffer != NULL ? tl_load(j->arena, buffer, args) : tl_expr_with_args(j->arena, e[0], args);
    return TL_OK;
}

static tl_status join_expr(join *j, expr_tuple e, const tl_expr **out)
{
    *out = NULL;
    bool same = true, none = true;
    for (int k = 0; k < j->samples->count; k++) {
        none &= e[k] == NULL;
        same &= (e[k] == NULL) == (e[0] == NULL);
    }
    if (none)
        return TL_OK;
    for (int k = 1; k < j->samples->count && same; k++)
        same = e[k]->kind == e[0]->kind && e[k]->dtype == e[0]->dtype &&
               e[k]->arg_count == e[0]->arg_count &&
               (e[0]->kind != TL_EXPR_CALL || e[k]->u.function == e[0]->u.function);
    if (!same)
        return differ(j, "an expression has another form");
    if (e[0]->kind == TL_EXPR_INT)
        return join_ints(j, e, out);
    if (e[0]->kind == TL_EXPR_FLOAT)
        return join_floats(j, e, out);
    if (e[0]->kind != TL_EXPR_VAR)
        return join_children(j, e, out);
    const tl_var **vars = TUPLE(j, tl_var);
    for (int k = 0; k < j->samples->count; k++)
        vars[k] = e[k]->u.var;
    const tl_var *var = find_name(j, (const void *const *)vars);
    if (var == NULL)
        return differ(j, "an index runs along something else");
    *out = tl_ref(j->arena, var);
    return TL_OK;
}

/* ---- buffers and statements ---- */

/* A buffer of the same name, role and dtype in all; what it is called from here on. */
static tl_status declare_buffer(join *j, const tl_buffer *const *of, const tl_buffer **out)
{
    const tl_expr *const **shapes =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    const tl_expr *const *shape;
    const tl_buffer *first = of[0];
    for (int k = 0; k < j->samples->count; k++) {
        const tl_buffer *b = of[k];
        shapes[k] = b->shape;
        if (b->rank != first->rank || b->dtype != first->dtype || b->role != first->role ||
            b->scope != first->scope || b->strides != NULL)
            return differ(j, "a buffer has another form");
    }
    TL_TRY(join_exprs(j, shapes, first->rank, &shape));
    *out = tl_buffer_make(j->arena, first->name, first->dtype, first->role, first->scope,
                          first->rank, shape);
    return add_name(j, (const void *const *)of, *out) ? TL_OK : differ(j, "it has too many names");
}

static tl_status declare_buffers(join *j, const tl_buffer *const *const *lists, int count,
                                 const tl_buffer *const **out)
{
    const tl_buffer **joined = TL_NEW_ARRAY(j->arena, const tl_buffer *, count);
    for (int i = 0; i < count; i++) {
        const tl_buffer **of = TUPLE(j, tl_buffer);
        for (int k = 0; k < j->samples->count; k++)
            of[k] = lists[k][i];
        TL_TRY(declare_buffer(j, of, &joined[i]));
    }
    *out = joined;
    return TL_OK;
}

/* The variable of a loop or iter over an extent. */
static tl_status declare_var(join *j, const tl_var *const *of, const tl_expr *extent,
                             const tl_var **out)
{
    *out = tl_var_of_extent(j->arena, of[0]->name, extent);
    return add_name(j, (const void *const *)of, *out) ? TL_OK : differ(j, "it has too many names");
}

static tl_status join_region(join *j, const tl_region *const *of, tl_region *out)
{
    const tl_expr *const **begins =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    const tl_expr *const **extents =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    const tl_buffer **buffers = TUPLE(j, tl_buffer);
    for (int k = 0; k < j->samples->count; k++) {
        begins[k] = of[k]->begin;
        extents[k] = of[k]->extent;
        buffers[k] = of[k]->buffer;
    }
    TL_TRY(join_buffer(j, buffers, &out->buffer));
    TL_TRY(join_exprs(j, begins, out->buffer->rank, &out->begin));
    return join_exprs(j, extents, out->buffer->rank, &out->extent);
}

static tl_status join_regions(join *j, const tl_region *const *lists, int count,
                              const tl_region **out)
{
    tl_region *joined = TL_NEW_ARRAY(j->arena, tl_region, count);
    for (int i = 0; i < count; i++) {
        const tl_region **of = TUPLE(j, tl_region);
        for (int k = 0; k < j->samples->count; k++)
            of[k] = &lists[k][i];
        TL_TRY(join_region(j, of, &joined[i]));
    }
    *out = joined;
    return TL_OK;
}

static tl_status join_calls(join *j, const tl_block *const *of, tl_block *out)
{
    const tl_intrinsic_call *first = of[0]->call;
    tl_intrinsic_call *call = TL_NEW(j->arena, tl_intrinsic_call);
    const tl_region **reads = TUPLE(j, tl_region), **writes = TUPLE(j, tl_region);
    const tl_expr *const **scalars =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    *call = *first;
    for (int k = 0; k < j->samples->count; k++) {
        const tl_intrinsic_call *c = of[k]->call;
        if (strcmp(c->name, first->name) != 0 || c->read_count != first->read_count ||
            c->write_count != first->write_count || c->scalar_count != first->scalar_count)
            return differ(j, "it calls something else");
        reads[k] = c->reads;
        writes[k] = c->writes;
        scalars[k] = c->scalars;
    }
    TL_TRY(join_regions(j, reads, first->read_count, &call->reads));
    TL_TRY(join_regions(j, writes, first->write_count, &call->writes));
    TL_TRY(join_exprs(j, scalars, first->scalar_count, &call->scalars));
    out->call = call;
    return TL_OK;
}

static tl_status join_iters(join *j, const tl_block *const *of, tl_block *out)
{
    tl_iter *iters = TL_NEW_ARRAY(j->arena, tl_iter, out->iter_count);
    for (int i = 0; i < out->iter_count; i++) {
        const tl_expr **extents = TUPLE(j, tl_expr), **bindings = TUPLE(j, tl_expr);
        const tl_var **vars = TUPLE(j, tl_var);
        for (int k = 0; k < j->samples->count; k++) {
            const tl_iter *iter = &of[k]->iters[i];
            if (iter->kind != of[0]->iters[i].kind)
                return differ(j, "a block runs in another way");
            extents[k] = iter->extent;
            bindings[k] = iter->binding;
            vars[k] = iter->var;
        }
        iters[i].kind = of[0]->iters[i].kind;
        TL_TRY(join_expr(j, extents, &iters[i].extent));
        TL_TRY(join_expr(j, bindings, &iters[i].binding));
        TL_TRY(declare_var(j, vars, iters[i].extent, &iters[i].var));
    }
    out->iters = iters;
    return TL_OK;
}

static tl_status join_stores(join *j, const tl_block *const *of, tl_block *out)
{
    tl_store *stores = TL_NEW_ARRAY(j->arena, tl_store, out->store_count);
    for (int i = 0; i < out->store_count; i++) {
        const tl_expr *const **indices =
            TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
        const tl_expr **values = TUPLE(j, tl_expr);
        const tl_buffer **buffers = TUPLE(j, tl_buffer);
        for (int k = 0; k < j->samples->count; k++) {
            indices[k] = of[k]->stores[i].indices;
            values[k] = of[k]->stores[i].value;
            buffers[k] = of[k]->stores[i].buffer;
        }
        TL_TRY(join_buffer(j, buffers, &stores[i].buffer));
        TL_TRY(join_exprs(j, indices, stores[i].buffer->rank, &stores[i].indices));
        TL_TRY(join_expr(j, values, &stores[i].value));
    }
    out->stores = stores;
    return TL_OK;
}

static tl_status join_blocks(join *j, const tl_block *const *of, const tl_block **out)
{
    const tl_block *first = of[0];
    tl_block *block = tl_block_copy(j->arena, first);
    const tl_expr **predicates = TUPLE(j, tl_expr);
    const tl_expr *const **inits =
        TL_NEW_ARRAY(j->arena, const tl_expr *const *, j->samples->count);
    for (int k = 0; k < j->samples->count; k++) {
        const tl_block *b = of[k];
        if (strcmp(b->name, first->name) != 0 || b->iter_count != first->iter_count ||
            b->combiner != first->combiner || b->has_init != first->has_init ||
            (b->init == NULL) != (first->init == NULL) || b->store_count != first->store_count ||
            (b->call == NULL) != (first->call == NULL))
            return differ(j, "a block has another form");
        predicates[k] = b->predicate;
        inits[k] = b->init;
    }
    int outside = j->name_count;
    TL_TRY(join_iters(j, of, block));
    TL_TRY(join_expr(j, predicates, &block->predicate));
    if (first->init != NULL)
        TL_TRY(join_exprs(j, inits, first->store_count, &block->init));
    TL_TRY(join_stores(j, of, block));
    if (first->call != NULL)
        TL_TRY(join_calls(j, of, block));
    j->name_count = outside;
    *out = block;
    return TL_OK;
}

static tl_status join_stmt(join *j, stmt_tuple s, const tl_stmt **out);

static tl_status join_loops(join *j, stmt_tuple s, const tl_stmt **out)
{
    const tl_expr **extents = TUPLE(j, tl_expr), *extent;
    const tl_var **vars = TUPLE(j, tl_var), *var;
    const tl_stmt **bodies = TUPLE(j, tl_stmt), *body;
    for (int k = 0; k < j->samples->count; k++) {
        extents[k] = s[k]->u.loop.extent;
        vars[k] = s[k]->u.loop.var;
        bodies[k] = s[k]->u.loop.body;
        if (s[k]->u.loop.kind != s[0]->u.loop.kind || s[k]->u.loop.annotation_count > 0)
            return differ(j, "a loop is of another kind");
    }
    TL_TRY(join_expr(j, extents, &extent));
    int outside = j->name_count;
    TL_TRY(declare_var(j, vars, extent, &var));
    TL_TRY(join_stmt(j, bodies, &body));
    j->name_count = outside;
    *out = tl_stmt_loop(j->arena, var, extent, s[0]->u.loop.kind, body);
    return TL_OK;
}

static tl_status join_seqs(join *j, stmt_tuple s, const tl_stmt **out)
{
    int count = s[0]->u.seq.count;
    const tl_stmt **items = TL_NEW_ARRAY(j->arena, const tl_stmt *, count);
    for (int k = 0; k < j->samples->count; k++)
        if (s[k]->u.seq.count != count)
            return differ(j, "there are more of them, or fewer");
    for (int i = 0; i < count; i++) {
        const tl_stmt **of = TUPLE(j, tl_stmt);
        for (int k = 0; k < j->samples->count; k++)
            of[k] = s[k]->u.seq.items[i];
        TL_TRY(join_stmt(j, of, &items[i]));
    }
    *out = tl_stmt_seq(j->arena, items, count);
    return TL_OK;
}

static tl_status join_allocs(join *j, stmt_tuple s, const tl_stmt **out)
{
    const tl_buffer **buffers = TUPLE(j, tl_buffer), *buffer;
    const tl_stmt **bodies = TUPLE(j, tl_stmt), *body;
    for (int k = 0; k < j->samples->count; k++) {
        buffers[k] = s[k]->u.alloc.buffer;
        bodies[k] = s[k]->u.alloc.body;
    }
    int outside = j->name_count;
    TL_TRY(declare_buffer(j, buffers, &buffer));
    TL_TRY(join_stmt(j, bodies, &body));
    j->name_count = outside;
    *out = tl_stmt_alloc(j->arena, buffer, body);
    return TL_OK;
}

static tl_status join_stmt(join *j, stmt_tuple s, const tl_stmt **out)
{
    for (int k = 1; k < j->samples->count; k++)
        if (s[k]->kind != s[0]->kind)
            return differ(j, "they are nested in another way");
    switch (s[0]->kind) {
    case TL_STMT_LOOP:
        return join_loops(j, s, out);
    case TL_STMT_SEQ:
        return join_seqs(j, s, out);
    case TL_STMT_ALLOC:
        return join_allocs(j, s, out);
    case TL_STMT_BLOCK: {
        const tl_block **blocks = TUPLE(j, tl_block), *block = NULL;
        for (int k = 0; k < j->samples->count; k++)
            blocks[k] = s[k]->u.block;
        TL_TRY(join_blocks(j, blocks, &block));
        *out = tl_stmt_block(j->arena, block);
        return TL_OK;
    }
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return differ(j, "they are scheduled already");
}

/* ---- the program ---- */

static tl_status check_heads(const join *j)
{
    const tl_program *first = j->programs[0];
    for (int k = 0; k < j->samples->count; k++) {
        const tl_program *p = j->programs[k];
        if (p->param_count != first->param_count || p->prepared_count != first->prepared_count ||
            p->dim_count != 0 || p->strict != first->strict ||
            (p->prepare == NULL) != (first->prepare == NULL))
            return differ(j, "it has other parameters");
    }
    return TL_OK;
}

static tl_status join_all(join *j, tl_program *out)
{
    const tl_buffer *const **params =
        TL_NEW_ARRAY(j->arena, const tl_buffer *const *, j->samples->count);
    const tl_buffer *const **prepared =
        TL_NEW_ARRAY(j->arena, const tl_buffer *const *, j->samples->count);
    const tl_stmt **bodies = TUPLE(j, tl_stmt), **prepares = TUPLE(j, tl_stmt);
    for (int k = 0; k < j->samples->count; k++) {
        params[k] = j->programs[k]->params;
        prepared[k] = j->programs[k]->prepared;
        bodies[k] = j->programs[k]->body;
        prepares[k] = j->programs[k]->prepare;
    }
    TL_TRY(declare_buffers(j, params, out->param_count, &out->params));
    TL_TRY(declare_buffers(j, prepared, out->prepared_count, &out->prepared));
    if (prepares[0] != NULL) {
        bool varies = j->varies;
        j->varies = false;
        TL_TRY(join_stmt(j, prepares, &out->prepare));
        if (j->varies)
            return differ(j, "what is made of constants depends on them");
        j->varies = varies;
    }
    return join_stmt(j, bodies, &out->body);
}

tl_status tl_join_programs(tl_arena *arena, const tl_program *const *programs,
                           const tl_samples *samples, const tl_var *const *dims,
                           const tl_program **out, tl_diag *diag)
{
    join *j = TL_NEW(arena, join);
    assert(samples->count >= 1 << samples->dim_count);
    j->arena = arena;
    j->programs = programs;
    j->samples = samples;
    j->dims = dims;
    j->diag = diag;
    TL_TRY(check_heads(j));
    tl_program *program = tl_program_copy(arena, programs[0]);
    TL_TRY(join_all(j, program));
    *out = programs[0];
    if (!j->varies)
        return TL_OK;
    program->dim_count = samples->dim_count;
    program->dims = dims;
    *out = program;
    return TL_OK;
}
