/* schedule/prim/prim_tensorize.c: tensorize(loop, intrinsic)
 *
 *     for j in 0..16
 *       for k in 0..4                 ->     call dot_u8i8_i32x16(read C[j0*16..j0*16 + 16], read A[k0*4..k0*4 + 4],
 *         C: C[j0*16 + j] sum=                   read B[j0*16..j0*16 + 16, k0*4..k0*4 + 4],
 *              i32(A[k0*4 + k])*                 write C[j0*16..j0*16 + 16])
 *              i32(B[j0*16 + j, k0*4 + k])
 *
 * The loops from `loop` inwards are one call of an intrinsic of schedule/prim/tensor_shapes.def. Which loop is which axis is
 * told by what it moves: the result and the left operand (m), the result and the right one (n), both operands (k).
 *
 * Requires  only loops and one block from `loop` inwards, the loops serial, of exactly the intrinsic's extents (loops of
 *           one iteration do not count); the block a sum that only updates, of the product of two loads, with the
 *           intrinsic's dtypes; each axis moving one index of an operand, by one, in the intrinsic's order, or, of B's
 *           columns in blocks, two: j//b and j%b of an axis of b; no guard that speaks of these loops.
 * Keeps     every value, but for the order of the sums.
 */
#include <assert.h>
#include <string.h>
#include "ir/program/intrinsics.h"
#include "schedule/schedule_private.h"

#define PRIM "tensorize"

enum { MAX_LOOPS = 8 };

typedef struct {
    const char *name;
    tl_dtype dtypes[3];
    const char *axes[3];
    int64_t extents[3]; /* m, n, k */
    bool takes_blocks;  /* of B's columns */
} tensor_shape;

static const tensor_shape shapes[] = {
#define TENSOR(name, c, a, b, ca, aa, ba, m, n, k) \
    { #name, { TL_##c, TL_##a, TL_##b }, { ca, aa, ba }, { m, n, k }, false },
#define GROUP_TENSOR(name, c, a, b, ca, aa, ba, m, n, k) \
    { #name, { TL_##c, TL_##a, TL_##b }, { ca, aa, ba }, { m, n, k }, true },
#include "schedule/prim/tensor_shapes.def"
#undef GROUP_TENSOR
#undef TENSOR
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

const char *tl_tensor_call_name(int index)
{
    return index >= 0 && index < SHAPES ? shapes[index].name : NULL;
}

static const char letters[] = "mnk";
static const char operand_names[] = "CAB";

/* C, A, B: what is accessed, its indices over loop variables, and which axis of it each letter moves (-1: none). */
typedef struct {
    const tl_buffer *buffer;
    const tl_expr *const *indices; /* over the iters */
    const tl_expr **bound;
    int axis_of[3];
    int block_axis; /* which n moves once a block of columns; -1: there are none */
} operand;

typedef struct {
    const tensor_shape *shape;
    const tl_block *block;
    tl_path path; /* from the loop down to the block */
    int loop_count;
    const tl_stmt *loops[MAX_LOOPS];
    int letter_of[MAX_LOOPS];
    operand operands[3];
} plan;

/* Whether the second is the same but for more columns. */
static bool is_wider(const tensor_shape *a, const tensor_shape *b)
{
    return memcmp(a->dtypes, b->dtypes, sizeof a->dtypes) == 0 && a->extents[0] == b->extents[0] &&
           a->extents[2] == b->extents[2] && strcmp(a->axes[2], b->axes[2]) == 0 &&
           a->extents[1] < b->extents[1];
}

static tl_status find_shape(tl_schedule *s, const char *subject, const char *word,
                            const tensor_shape **out, tl_diag *diag)
{
    const char *known = "";
    for (int i = 0; i < SHAPES; i++) {
        if (strcmp(shapes[i].name, word) == 0) {
            *out = &shapes[i];
            return TL_OK;
        }
        if (i + 1 == SHAPES || !is_wider(&shapes[i], &shapes[i + 1]))
            known = tl_arena_format(s->arena, "%s%s%s", known, *known ? ", " : "", shapes[i].name);
    }
    return tl_refuse(diag, PRIM, subject,
                     "there is no product %s; those it knows, the widest of each kind: %s", word,
                     known);
}

/* The nest from the loop inwards. */
static tl_status take_nest(tl_schedule *s, const tl_stmt *loop, plan *p, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    const tl_stmt *stmt = loop;
    int64_t extent;
    for (; stmt->kind == TL_STMT_LOOP; stmt = stmt->u.loop.body) {
        if (stmt->u.loop.kind != TL_LOOP_SERIAL)
            return tl_refuse(diag, PRIM, name, "loop %s is %s; tensorize before loops get a kind",
                             stmt->u.loop.var->name, tl_loop_kind_infos[stmt->u.loop.kind].text);
        if (!tl_const_int(stmt->u.loop.extent, &extent))
            return tl_refuse(diag, PRIM, name, "the extent %s of loop %s is not constant",
                             tl_expr_text(s->arena, stmt->u.loop.extent), stmt->u.loop.var->name);
        if (p->loop_count == MAX_LOOPS)
            return tl_refuse(diag, PRIM, name, "there are more than %d loops inside", MAX_LOOPS);
        p->loops[p->loop_count++] = stmt;
    }
    if (stmt->kind != TL_STMT_BLOCK)
        return tl_refuse(diag, PRIM, name,
                         "the loops from it inwards run more than one block, or an alloc");
    p->block = stmt->u.block;
    p->path = tl_path_to_block(s->arena, loop, p->block->name);
    return TL_OK;
}

static const tl_expr *strip_cast(const tl_expr *e)
{
    return e->kind == TL_EXPR_CAST ? e->args[0] : e;
}

static operand operand_of(tl_arena *arena, const tl_block *block, const tl_buffer *buffer,
                          const tl_expr *const *indices)
{
    operand o = { buffer, indices, TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank), { 0 }, -1 };
    for (int axis = 0; axis < buffer->rank; axis++)
        o.bound[axis] = tl_block_bind(arena, block, indices[axis]);
    return o;
}

static tl_status take_block(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_block *block = p->block;
    if (block->call != NULL)
        return tl_refuse(diag, PRIM, block->name, "it calls %s already", block->call->name);
    if (block->combiner != TL_COMBINER_SUM)
        return tl_refuse(diag, PRIM, block->name, "it is no sum");
    if (tl_keeps_order(s, block))
        return tl_refuse(diag, PRIM, block->name, "%s", TL_STRICT_RULE);
    if (tl_intrinsic_rounds(p->shape->name) && !s->program->tf32)
        return tl_refuse(
            diag, PRIM, block->name,
            "%s rounds its operands to tf32, which the kernel's numerics do not allow; "
            "a tf32 kernel, or --numerics tf32, does",
            p->shape->name);
    if (block->has_init)
        return tl_refuse(diag, PRIM, block->name,
                         "it also initialises its result, which %s does not: decompose_reduction "
                         "first",
                         p->shape->name);
    for (int i = 0; i < p->loop_count; i++)
        if (block->predicate && tl_expr_uses_var(tl_block_bind(s->arena, block, block->predicate),
                                                 p->loops[i]->u.loop.var))
            return tl_refuse(diag, PRIM, block->name,
                             "its guard %s speaks of loop %s, and %s computes whole tiles: pad or "
                             "loop_partition first",
                             tl_expr_text(s->arena, block->predicate),
                             p->loops[i]->u.loop.var->name, p->shape->name);
    const tl_store *store = &block->stores[0];
    const tl_expr *product = store->value;
    const tl_expr *a = NULL, *b = NULL;
    if (product->kind == TL_EXPR_MUL) {
        a = strip_cast(product->args[0]);
        b = strip_cast(product->args[1]);
    }
    if (a == NULL || a->kind != TL_EXPR_LOAD || b->kind != TL_EXPR_LOAD)
        return tl_refuse(diag, PRIM, block->name,
                         "what it sums, %s, is not the product of two "
                         "loads",
                         tl_expr_text(s->arena, product));
    p->operands[0] = operand_of(s->arena, block, store->buffer, store->indices);
    p->operands[1] = operand_of(s->arena, block, a->u.buffer, a->args);
    p->operands[2] = operand_of(s->arena, block, b->u.buffer, b->args);
    return TL_OK;
}

static bool moves(const operand *o, const tl_var *var)
{
    for (int axis = 0; axis < o->buffer->rank; axis++)
        if (tl_expr_uses_var(o->bound[axis], var))
            return true;
    return false;
}

/* Whether the variable moves an index of the operand by one: alone, or as var//b with var%b on a later axis of b. */
static bool find_axis(tl_arena *arena, const tensor_shape *shape, operand *op, int letter,
                      const tl_var *var)
{
    int axes[2], count = 0;
    int64_t coefficient, block = 0;
    const tl_expr *rest;
    for (int axis = 0; axis < op->buffer->rank; axis++)
        if (tl_expr_uses_var(op->bound[axis], var)) {
            if (count == 2)
                return false;
            axes[count++] = axis;
        }
    if (count == 0)
        return true;
    if (op->axis_of[letter] >= 0)
        return false;
    op->axis_of[letter] = axes[count - 1];
    if (count == 1)
        return tl_affine_in(arena, op->bound[axes[0]], var, &coefficient, &rest) &&
               coefficient == 1;
    if (!shape->takes_blocks || letters[letter] != 'n' ||
        !tl_const_int(op->buffer->shape[axes[1]], &block) || block < 1 ||
        shape->extents[letter] % block != 0)
        return false;
    const tl_binding zero = { var, tl_int(arena, 0) };
    const tl_expr *over[2] = {
        tl_floordiv_expr(arena, tl_ref(arena, var), tl_int(arena, block)),
        tl_floormod_expr(arena, tl_ref(arena, var), tl_int(arena, block)),
    };
    for (int i = 0; i < 2; i++) {
        const tl_expr *first = tl_substitute(arena, op->bound[axes[i]], &zero, 1);
        if (!tl_expr_equal(op->bound[axes[i]], tl_add(arena, first, over[i])))
            return false;
    }
    op->block_axis = axes[0];
    return true;
}

/* Whether the loops are the axes; the sentence of what is not, else NULL. */
static const char *match(tl_arena *arena, plan *p)
{
    const tensor_shape *shape = p->shape;
    for (int o = 0; o < 3; o++) {
        if (p->operands[o].buffer->dtype != shape->dtypes[o])
            return tl_arena_format(arena, "operand %c, %s, is %s and must be %s", operand_names[o],
                                   p->operands[o].buffer->name,
                                   tl_dtype_infos[p->operands[o].buffer->dtype].text,
                                   tl_dtype_infos[shape->dtypes[o]].text);
        for (int l = 0; l < 3; l++)
            p->operands[o].axis_of[l] = -1;
        p->operands[o].block_axis = -1;
    }
    bool seen[3] = { shape->extents[0] == 1, shape->extents[1] == 1, shape->extents[2] == 1 };
    for (int i = 0; i < p->loop_count; i++) {
        const tl_var *var = p->loops[i]->u.loop.var;
        int64_t extent = 1;
        (void)tl_const_int(p->loops[i]->u.loop.extent, &extent);
        p->letter_of[i] = -1;
        if (extent == 1)
            continue;
        bool c = moves(&p->operands[0], var), a = moves(&p->operands[1], var);
        bool b = moves(&p->operands[2], var);
        int letter = c && a && !b ? 0 : c && b && !a ? 1 : a && b && !c ? 2 : -1;
        if (letter < 0)
            return tl_arena_format(arena,
                                   "loop %s moves %s%s%s, and an axis of a product moves two of "
                                   "the three",
                                   var->name, c ? "C" : "", a ? "A" : "", b ? "B" : "");
        if (seen[letter] || extent != shape->extents[letter])
            return tl_arena_format(arena,
                                   "loop %s is axis %c with %lld iterations, and that has "
                                   "%lld here",
                                   var->name, letters[letter], (long long)extent,
                                   (long long)shape->extents[letter]);
        seen[letter] = true;
        p->letter_of[i] = letter;
        for (int o = 0; o < 3; o++)
            if (!find_axis(arena, shape, &p->operands[o], letter, var))
                return tl_arena_format(arena, "loop %s does not move one index of %s by one",
                                       var->name, p->operands[o].buffer->name);
    }
    for (int l = 0; l < 3; l++)
        if (!seen[l])
            return tl_arena_format(arena, "no loop is axis %c, of %lld iterations", letters[l],
                                   (long long)shape->extents[l]);
    for (int o = 0; o < 3; o++) {
        int before = p->operands[o].block_axis;
        for (const char *at = shape->axes[o]; *at; at++) {
            int axis = p->operands[o].axis_of[strchr(letters, *at) - letters];
            if (axis <= before)
                return tl_arena_format(arena, "the axes of %s do not lie in the order %s",
                                       p->operands[o].buffer->name, shape->axes[o]);
            before = axis;
        }
    }
    return NULL;
}

static tl_status check_match(tl_schedule *s, plan *p, tl_diag *diag)
{
    const char *why = match(s->arena, p);
    if (why == NULL)
        return TL_OK;
    bool fits = p->operands[1].buffer->dtype == p->shape->dtypes[1] &&
                p->operands[2].buffer->dtype == p->shape->dtypes[2];
    operand a = p->operands[1]; /* a product may be written either way */
    p->operands[1] = p->operands[2];
    p->operands[2] = a;
    const char *other = match(s->arena, p);
    if (other == NULL)
        return TL_OK;
    if (!fits && p->operands[1].buffer->dtype == p->shape->dtypes[1] &&
        p->operands[2].buffer->dtype == p->shape->dtypes[2])
        why = other; /* the way round that was meant */
    return tl_refuse(diag, PRIM, p->block->name, "%s: %s", p->shape->name, why);
}

static tl_region region_of(tl_arena *arena, const plan *p, int o)
{
    const operand *op = &p->operands[o];
    const tl_expr **extent = TL_NEW_ARRAY(arena, const tl_expr *, op->buffer->rank);
    for (int axis = 0; axis < op->buffer->rank; axis++)
        extent[axis] = tl_int(arena, 1);
    for (int l = 0; l < 3; l++)
        if (op->axis_of[l] >= 0)
            extent[op->axis_of[l]] = tl_int(arena, p->shape->extents[l]);
    int64_t block = 0;
    if (op->block_axis >= 0 && tl_const_int(op->buffer->shape[op->axis_of[1]], &block)) {
        extent[op->block_axis] = tl_int(arena, p->shape->extents[1] / block);
        extent[op->axis_of[1]] = tl_int(arena, block);
    }
    return (tl_region){ op->buffer, op->indices, extent };
}

/* The block, its iters at the tile's first element. */
static const tl_stmt *make_call(tl_arena *arena, const plan *p)
{
    tl_binding *first = TL_NEW_ARRAY(arena, tl_binding, p->loop_count);
    for (int i = 0; i < p->loop_count; i++)
        first[i] = (tl_binding){ p->loops[i]->u.loop.var, tl_int(arena, 0) };
    tl_region *reads = TL_NEW_ARRAY(arena, tl_region, 3), *writes = TL_NEW(arena, tl_region);
    for (int o = 0; o < 3; o++)
        reads[o] = region_of(arena, p, o);
    writes[0] = reads[0];
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    *call = (tl_intrinsic_call){
        .name = p->shape->name, .read_count = 3, .write_count = 1, .reads = reads, .writes = writes
    };
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, p->block->iter_count);
    for (int k = 0; k < p->block->iter_count; k++) {
        iters[k] = p->block->iters[k];
        iters[k].binding = tl_substitute(arena, iters[k].binding, first, p->loop_count);
    }
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = p->block->name,
                         .iter_count = p->block->iter_count,
                         .iters = iters,
                         .predicate = p->block->predicate,
                         .call = call };
    return tl_stmt_block(arena, block);
}

tl_status tl_apply_tensorize(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                             int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_WORD);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    plan p = { 0 };
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &loop, diag));
    TL_TRY(find_shape(s, loop->u.loop.var->name, args[1].word, &p.shape, diag));
    TL_TRY(take_nest(s, loop, &p, diag));
    TL_TRY(take_block(s, &p, diag));
    TL_TRY(check_match(s, &p, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    if (tl_find_kind_above(&path, TL_LOOP_VECTORIZED))
        return tl_refuse(diag, PRIM, p.block->name, "it is inside a vectorized loop");
    const tl_program *before = s->program;
    tl_schedule_replace(s, &path, make_call(s->arena, &p));
    return tl_check_parallel_loops(s, before, PRIM, diag);
}
