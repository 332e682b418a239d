/* schedule/sink_allocs.c: allocs go down to where their buffer lives.
 *
 *     alloc acc: f32[8, 32]                 for i0 in 0..16
 *     for i0 in 0..16                         alloc acc: f32[8, 32]
 *       block init   writes acc[i1, j1]  ->     block init
 *       block update reads  acc[i1, j1]         block update
 *
 * An alloc enters a loop when every element that an iteration reads was written before in that iteration. That is
 * shown access by access: the write's index, a mixed radix number of the loops around it alone, is solved for them,
 *
 *     write acc[8*w0 + w1]  read acc[e]     w0 = e // 8, w1 = e % 8
 *
 * and the solution must lie in those loops' extents and satisfy the writer's guards whenever the reader's hold. An
 * alloc that nothing uses any more goes. */
#include <assert.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

enum { MAX_UNKNOWNS = 24 };

/* A write or a read, over loop variables. */
typedef struct {
    const tl_block *block;
    tl_path path;                /* from the body of the loop to be entered down to the block */
    const tl_expr *const *index; /* rank of them, regions as begin + a variable of their own */
    int inside_count;
    const tl_var **inside;    /* those variables */
    const tl_expr *predicate; /* bound; NULL: always */
    int position;             /* of the block among those of the body, in textual order */
} access;

typedef struct {
    tl_arena *arena;
    const tl_stmt *body;
    const tl_buffer *buffer;
    const tl_var *entered; /* the variable of the loop that the alloc would enter */
    int position;
    int read_count, read_capacity, write_count, write_capacity;
    access *reads, *writes;
    bool fails; /* a reduction goes on over the loop */
} collection;

static void add(collection *c, const tl_block *block, const tl_expr *const *indices,
                const tl_expr *const *extents, bool is_write)
{
    assert(c->buffer->rank >= 0);
    int rank = c->buffer->rank;
    const tl_expr **bound = TL_NEW_ARRAY(c->arena, const tl_expr *, rank);
    access a = { .block = block, .index = bound, .position = c->position };
    a.inside = TL_NEW_ARRAY(c->arena, const tl_var *, rank);
    for (int i = 0; i < rank; i++) {
        bound[i] = tl_block_bind(c->arena, block, indices[i]);
        if (extents == NULL || tl_is_int(extents[i], 1))
            continue;
        int64_t constant, most = tl_max64(tl_expr_range(extents[i]).max, 1);
        if (is_write && !tl_const_int(extents[i], &constant))
            return; /* how much it writes is not known: it covers nothing */
        const tl_var *inside = tl_var_make(c->arena, "inside", 0, most - 1);
        bound[i] = tl_add(c->arena, bound[i], tl_ref(c->arena, inside));
        a.inside[a.inside_count++] = inside;
    }
    a.path = tl_path_to_block(c->arena, c->body, block->name);
    if (block->predicate)
        a.predicate = tl_block_bind(c->arena, block, block->predicate);
    if (is_write) {
        TL_ROOM(c->arena, c->writes, c->write_count, c->write_capacity);
        c->writes[c->write_count++] = a;
    } else {
        TL_ROOM(c->arena, c->reads, c->read_count, c->read_capacity);
        c->reads[c->read_count++] = a;
    }
}

typedef struct {
    collection *c;
    const tl_block *block;
} load_context;

static bool add_load(const tl_expr *e, void *context)
{
    load_context *l = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == l->c->buffer)
        add(l->c, l->block, e->args, NULL, false);
    return true;
}

/* A reduction reads what it updates. With an init inside it starts anew in every iteration, unless the loop to be
 * entered is one that it reduces over. */
static void add_update(collection *c, const tl_block *block, const tl_store *store)
{
    if (!block->has_init)
        add(c, block, store->indices, NULL, false);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            tl_expr_uses_var(block->iters[i].binding, c->entered))
            c->fails = c->fails || block->has_init;
}

/* The stores of a block to the buffer as one: a row of elements one after the other along one axis, in the order of the
 * stores (a transform writes a column of its matrix so). False when they are no such row. */
static bool add_row(collection *c, const tl_block *block)
{
    const tl_store *first = NULL;
    int count = 0, along = -1;
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        if (store->buffer != c->buffer)
            continue;
        if (first == NULL)
            first = store;
        for (int axis = 0; axis < c->buffer->rank; axis++) {
            tl_range step =
                tl_expr_range(tl_sub(c->arena, store->indices[axis], first->indices[axis]));
            if (step.min == 0 && step.max == 0)
                continue;
            if (step.min != count || step.max != count || (along >= 0 && along != axis))
                return false;
            along = axis;
        }
        count++;
    }
    if (along < 0)
        return false;
    const tl_expr **extents = TL_NEW_ARRAY(c->arena, const tl_expr *, c->buffer->rank);
    for (int axis = 0; axis < c->buffer->rank; axis++)
        extents[axis] = tl_int(c->arena, axis == along ? count : 1);
    add(c, block, first->indices, extents, true);
    return true;
}

static bool collect(const tl_stmt *stmt, void *context)
{
    collection *c = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    load_context loads = { c, block };
    bool row = block->combiner == TL_COMBINER_NONE && block->store_count > 1 && add_row(c, block);
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        tl_expr_visit(store->value, add_load, &loads);
        for (int k = 0; k < store->buffer->rank; k++)
            tl_expr_visit(store->indices[k], add_load, &loads);
        if (block->init)
            tl_expr_visit(block->init[i], add_load, &loads);
        if (store->buffer != c->buffer || row)
            continue;
        if (block->combiner != TL_COMBINER_NONE)
            add_update(c, block, store);
        add(c, block, store->indices, NULL, true);
    }
    if (block->predicate)
        tl_expr_visit(block->predicate, add_load, &loads);
    const tl_intrinsic_call *call = block->call;
    for (int i = 0; call && i < call->read_count; i++)
        if (call->reads[i].buffer == c->buffer)
            add(c, block, call->reads[i].begin, call->reads[i].extent, false);
    for (int i = 0; call && i < call->write_count; i++)
        if (call->writes[i].buffer == c->buffer)
            add(c, block, call->writes[i].begin, call->writes[i].extent, true);
    c->position++;
    return true;
}

/* Solving a write's index for its loops. */

static bool is_unknown(const access *write, const access *read, const tl_var *var)
{
    for (int i = 0; i < write->inside_count; i++)
        if (write->inside[i] == var)
            return true;
    return tl_path_find_loop(&write->path, var) >= 0 && tl_path_find_loop(&read->path, var) < 0;
}

typedef struct {
    const access *write, *read;
    bool found;
} unknown_search;

static bool find_unknown(const tl_expr *e, void *context)
{
    unknown_search *s = context;
    if (e->kind == TL_EXPR_VAR && is_unknown(s->write, s->read, e->u.var))
        s->found = true;
    return !s->found;
}

static bool has_unknown(const access *write, const access *read, const tl_expr *e)
{
    unknown_search s = { write, read, false };
    tl_expr_visit(e, find_unknown, &s);
    return s.found;
}

/* A digit of a loop's variable: var//step % count. */
typedef struct {
    const tl_var *var;
    int64_t step, count;
    const tl_expr *value; /* solved */
} digit;

typedef struct {
    int64_t coefficient;
    digit digit;
} unknown;

/* The variable alone, all of it; of shared buffers, whose rows lie cut in tiles, also var//d, var % m, var//d % m. */
static bool take_digit(const tl_expr *term, bool may_cut, digit *out)
{
    int64_t divisor = 1, modulus = 0;
    const tl_expr *e = term;
    if (may_cut && e->kind == TL_EXPR_FLOORMOD && tl_const_int(e->args[1], &modulus))
        e = e->args[0];
    if (may_cut && e->kind == TL_EXPR_FLOORDIV && tl_const_int(e->args[1], &divisor))
        e = e->args[0];
    if (e->kind != TL_EXPR_VAR || divisor < 1)
        return false;
    int64_t extent = e->u.var->max + 1;
    *out = (digit){ e->u.var, divisor, modulus > 0 ? modulus : extent / divisor, NULL };
    return extent >= 1 && extent % divisor == 0 && (extent / divisor) % out->count == 0;
}

/* Whether two digits are apart, so that both may have any value. */
static bool are_apart(const digit *a, const digit *b)
{
    return a->var != b->var || b->step % (a->step * a->count) == 0 ||
           a->step % (b->step * b->count) == 0;
}

static bool is_implied(tl_arena *arena, const tl_expr *condition, const tl_expr *by)
{
    if (condition->kind == TL_EXPR_AND)
        return is_implied(arena, condition->args[0], by) &&
               is_implied(arena, condition->args[1], by);
    if (tl_prove(arena, condition))
        return true;
    if (by == NULL)
        return false;
    if (by->kind == TL_EXPR_AND)
        return is_implied(arena, condition, by->args[0]) ||
               is_implied(arena, condition, by->args[1]);
    return tl_expr_equal(condition, by) || tl_follows_from(arena, condition, by);
}

/* One axis:  write = known + sum of coefficient*unknown,  dense. Adds the solutions; false: there is none. `held`: what is
 * so where the read is made, for buffers that must go in, or no block of a GPU could have one of its own: shared ones; NULL
 * for others. */
static bool solve_axis(tl_arena *arena, const access *write, const access *read, int axis,
                       const tl_expr *held, digit *solution, int *count)
{
    assert(axis >= 0 && write->index != NULL && read->index != NULL);
    tl_linear l = tl_linear_of(arena, write->index[axis]);
    const tl_expr *known = tl_int(arena, l.constant);
    unknown unknowns[MAX_UNKNOWNS];
    int unknown_count = 0;
    for (int i = 0; i < l.count; i++) {
        if (!has_unknown(write, read, l.terms[i])) {
            known = tl_add(arena, known, tl_muli(arena, l.terms[i], l.coefficients[i]));
            continue;
        }
        digit next;
        if (!take_digit(l.terms[i], held != NULL, &next) || l.coefficients[i] < 1 ||
            unknown_count == MAX_UNKNOWNS)
            return false;
        int at = unknown_count++;
        for (; at > 0 && unknowns[at - 1].coefficient > l.coefficients[i]; at--)
            unknowns[at] = unknowns[at - 1];
        unknowns[at] = (unknown){ l.coefficients[i], next };
    }
    const tl_expr *rest = tl_sub(arena, read->index[axis], known);
    if (unknown_count == 0) { /* loops that run once may be left in it */
        tl_range difference = tl_expr_range(rest);
        return difference.min == 0 && difference.max == 0;
    }
    int64_t step = 1; /* what the next coefficient must be */
    for (int i = 0; i < unknown_count; i++) {
        int64_t extent = unknowns[i].digit.count;
        if (unknowns[i].coefficient != step || *count == MAX_UNKNOWNS || extent < 1)
            return false;
        for (int k = 0; k < *count; k++)
            if (!are_apart(&solution[k], &unknowns[i].digit))
                return false;
        const tl_expr *value = tl_floordiv_expr(arena, rest, tl_int(arena, step));
        if (i + 1 < unknown_count)
            value = tl_floormod_expr(arena, value, tl_int(arena, extent));
        tl_range range = tl_expr_range(value);
        if (range.min < 0 &&
            (held == NULL || !is_implied(arena, tl_le(arena, tl_int(arena, 0), value), held)))
            return false;
        if (range.max >= extent &&
            (held == NULL || !is_implied(arena, tl_lt(arena, value, tl_int(arena, extent)), held)))
            return false;
        unknowns[i].digit.value = value;
        solution[(*count)++] = unknowns[i].digit;
        if (tl_mul_overflows(step, extent, &step))
            return false;
    }
    return true;
}

/* The value of a loop of a dim's extent must be below that extent, not only below its largest value. `held`: what is so where
 * the read is made. */
static bool extents_hold(tl_arena *arena, const access *write, const tl_expr *held,
                         const tl_binding *solution, int count)
{
    for (int i = 0; i < write->path.count; i++) {
        const tl_stmt *stmt = write->path.stmts[i];
        int64_t extent;
        if (stmt->kind != TL_STMT_LOOP || tl_const_int(stmt->u.loop.extent, &extent))
            continue;
        for (int k = 0; k < count; k++)
            if (solution[k].var == stmt->u.loop.var &&
                !is_implied(arena, tl_lt(arena, solution[k].value, stmt->u.loop.extent), held))
                return false;
    }
    return true;
}

/* Variables by their digits; those that nothing asks for are 0. */
static int put_together(tl_arena *arena, const digit *digits, int count, tl_binding *out)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const tl_expr *part = tl_muli(arena, digits[i].value, digits[i].step);
        int at = 0;
        while (at < found && out[at].var != digits[i].var)
            at++;
        out[at] =
            (tl_binding){ digits[i].var, at < found ? tl_add(arena, out[at].value, part) : part };
        found += at == found;
    }
    return found;
}

static bool covers(tl_arena *arena, const tl_buffer *buffer, const access *write,
                   const access *read)
{
    assert(write->position >= 0 && read->position >= 0);
    if (write->position >= read->position)
        return false;
    digit digits[MAX_UNKNOWNS];
    tl_binding solution[MAX_UNKNOWNS];
    int digit_count = 0;
    const tl_expr *held = read->predicate; /* and what is read lies in the buffer */
    for (int axis = 0; axis < buffer->rank; axis++) {
        held = tl_and(arena, held, tl_le(arena, tl_int(arena, 0), read->index[axis]));
        held = tl_and(arena, held, tl_lt(arena, read->index[axis], buffer->shape[axis]));
    }
    const tl_expr *decides = buffer->scope == TL_SCOPE_SHARED ? held : NULL;
    for (int axis = 0; axis < buffer->rank; axis++)
        if (!solve_axis(arena, write, read, axis, decides, digits, &digit_count))
            return false;
    int count = put_together(arena, digits, digit_count, solution);
    if (!extents_hold(arena, write, held, solution, count))
        return false;
    if (write->predicate == NULL)
        return true;
    for (int i = 0; i < write->path.count && count < MAX_UNKNOWNS; i++) { /* any value will do: 0 */
        const tl_stmt *stmt = write->path.stmts[i];
        if (stmt->kind != TL_STMT_LOOP || !is_unknown(write, read, stmt->u.loop.var))
            continue;
        bool is_solved = false;
        for (int k = 0; k < count; k++)
            is_solved = is_solved || solution[k].var == stmt->u.loop.var;
        if (!is_solved)
            solution[count++] = (tl_binding){ stmt->u.loop.var, tl_int(arena, 0) };
    }
    const tl_expr *wanted = tl_substitute(arena, write->predicate, solution, count);
    return is_implied(arena, wanted, held);
}

bool tl_writes_before_reads(tl_arena *arena, const tl_stmt *loop, const tl_buffer *buffer)
{
    assert(loop->kind == TL_STMT_LOOP);
    collection c = {
        .arena = arena, .body = loop->u.loop.body, .buffer = buffer, .entered = loop->u.loop.var
    };
    tl_stmt_visit(loop->u.loop.body, collect, &c);
    for (int r = 0; r < c.read_count && !c.fails; r++) {
        bool is_covered = false;
        for (int w = 0; w < c.write_count && !is_covered; w++)
            is_covered = covers(arena, buffer, &c.writes[w], &c.reads[r]);
        if (!is_covered)
            return false;
    }
    return !c.fails;
}

static bool may_enter(tl_arena *arena, const tl_stmt *loop, const tl_buffer *buffer)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_loop_kind kind = loop->u.loop.kind;
    if (kind == TL_LOOP_VECTORIZED)
        return false;
    if (tl_loop_kind_infos[kind].gpu &&
        (buffer->scope == TL_SCOPE_SHARED || tl_scope_threads[buffer->scope] > 0))
        return kind == TL_LOOP_BLOCK_X || kind == TL_LOOP_BLOCK_Y || kind == TL_LOOP_BLOCK_Z;
    if (buffer->scope == TL_SCOPE_SHARED && tl_is_thread_kind(kind))
        return false;
    return tl_writes_before_reads(arena, loop, buffer);
}

/* Going down. */

static const tl_stmt *sink(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *buffer);

/* One item that uses the buffer takes the alloc in; else it stands before the first that does, and what follows is
 * its body. */
static const tl_stmt *sink_into_seq(tl_arena *arena, const tl_stmt *seq, const tl_buffer *buffer)
{
    assert(seq->kind == TL_STMT_SEQ);
    int first = -1, last = -1, count = seq->u.seq.count;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, count);
    for (int i = 0; i < count; i++) {
        items[i] = seq->u.seq.items[i];
        if (!tl_stmt_uses_buffer(items[i], buffer))
            continue;
        first = first < 0 ? i : first;
        last = i;
    }
    if (first == last) {
        const tl_stmt *item = sink(arena, items[first], buffer);
        if (item->kind != TL_STMT_ALLOC || item->u.alloc.buffer != buffer) {
            items[first] = item;
            return tl_stmt_seq(arena, items, count);
        }
    }
    if (first == 0)
        return tl_stmt_alloc(arena, buffer, seq);
    const tl_stmt *rest = tl_stmt_seq(arena, items + first, count - first);
    items[first] = tl_stmt_alloc(arena, buffer, rest);
    return tl_stmt_seq(arena, items, first + 1);
}

static const tl_stmt *sink(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *buffer)
{
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        if (may_enter(arena, stmt, buffer))
            return tl_stmt_with_body(arena, stmt, sink(arena, stmt->u.loop.body, buffer));
        break;
    case TL_STMT_SEQ:
        return sink_into_seq(arena, stmt, buffer);
    case TL_STMT_ALLOC: {
        const tl_stmt *body = sink(arena, stmt->u.alloc.body, buffer);
        if (body->kind != TL_STMT_ALLOC || body->u.alloc.body != stmt->u.alloc.body)
            return tl_stmt_with_body(arena, stmt, body);
        break;
    }
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return tl_stmt_alloc(arena, buffer, stmt);
}

static const tl_stmt *sink_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind != TL_STMT_ALLOC)
        return stmt;
    if (!tl_stmt_uses_buffer(stmt->u.alloc.body, stmt->u.alloc.buffer))
        return stmt->u.alloc.body;
    const tl_stmt *sunk = sink(arena, stmt->u.alloc.body, stmt->u.alloc.buffer);
    bool is_same = sunk->kind == TL_STMT_ALLOC && sunk->u.alloc.buffer == stmt->u.alloc.buffer &&
                   sunk->u.alloc.body == stmt->u.alloc.body;
    return is_same ? stmt : sunk;
}

const tl_stmt *tl_sink_allocs(tl_arena *arena, const tl_stmt *root)
{
    return tl_stmt_rewrite(arena, root, sink_alloc, NULL);
}
