/* codegen/emit/emit_index_llvm.c: what loop variables are bound to, and i64 expressions over them, each operation built
 * at the outermost level that its operands allow. */
#include "codegen/emit/emit_private.h"
#include <assert.h>
#include <limits.h>
#include "runtime/base/array.h"

const tl_bound *tl_find_bound(const tl_emitter *em, const tl_var *var)
{
    for (int i = em->bound_count - 1; i >= 0; i--)
        if (em->bound[i].var == var)
            return &em->bound[i];
    return NULL;
}

void tl_bind(tl_emitter *em, tl_bound bound)
{
    if (em->bound_count == TL_MAX_BOUND) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "loop %s: more than %d loops inside each other",
                     bound.var->name, TL_MAX_BOUND);
        em->bound_count--; /* the result is thrown away */
    }
    em->bound[em->bound_count++] = bound;
}

void tl_unbind(tl_emitter *em)
{
    em->bound_count--;
}

const tl_expr *tl_emit_substitute(tl_emitter *em, const tl_expr *e)
{
    tl_binding bindings[TL_MAX_BOUND];
    int count = 0;
    for (int i = em->bound_count - 1; i >= 0; i--) {
        const tl_bound *b = &em->bound[i];
        if (b->kind == TL_BOUND_CONSTANT)
            bindings[count++] = (tl_binding){ b->var, tl_int(em->arena, b->constant) };
        else if (b->kind == TL_BOUND_LANE)
            bindings[count++] =
                (tl_binding){ b->var,
                              tl_addi(em->arena, tl_ref(em->arena, em->lane_var), b->constant) };
    }
    return count == 0 ? e : tl_substitute(em->arena, e, bindings, count);
}

typedef struct {
    const tl_emitter *em;
    bool varies;
} vary_walk;

static bool visit_varies(const tl_expr *e, void *context)
{
    vary_walk *walk = context;
    if (e->kind == TL_EXPR_VAR) {
        const tl_bound *b = tl_find_bound(walk->em, e->u.var);
        if (e->u.var == walk->em->lane_var || (b != NULL && b->kind == TL_BOUND_LANE))
            walk->varies = true;
    }
    return !walk->varies;
}

bool tl_emit_varies(const tl_emitter *em, const tl_expr *e)
{
    vary_walk walk = { em, false };
    if (em->lanes > 1)
        tl_expr_visit(e, visit_varies, &walk);
    return walk.varies;
}

/* Levels. */
void tl_emit_push_level(tl_emitter *em, tl_emit_level level)
{
    if (em->level_count == TL_MAX_LEVELS) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "more than %d loops inside each other",
                     TL_MAX_LEVELS);
        em->level_count--;
    }
    level.cache_count = em->hoisted_count;
    em->levels[em->level_count++] = level;
}

static LLVMValueRef behind_marker(const tl_emit_level *level)
{
    return level->marker != NULL ? LLVMGetNextInstruction(level->marker)
                                 : LLVMGetFirstInstruction(level->block);
}

LLVMBasicBlockRef tl_emit_hoist(tl_emitter *em, int level)
{
    LLVMBasicBlockRef back = LLVMGetInsertBlock(em->builder);
    tl_emit_level *l = &em->levels[level];
    LLVMValueRef next = behind_marker(l);
    if (next != NULL)
        LLVMPositionBuilderBefore(em->builder, next);
    else
        LLVMPositionBuilderAtEnd(em->builder, l->block);
    em->hoist_next = next;
    return back;
}

void tl_emit_leave(tl_emitter *em, int level, LLVMBasicBlockRef back)
{
    tl_emit_level *l = &em->levels[level];
    l->marker = em->hoist_next != NULL ? LLVMGetPreviousInstruction(em->hoist_next)
                                       : LLVMGetLastInstruction(l->block);
    LLVMPositionBuilderAtEnd(em->builder, back);
}

/* The cache of what was hoisted: entries of a level go when the level does. */
static unsigned bucket_of(const tl_hoisted *key)
{
    uint64_t h = key->expr != NULL
                     ? key->expr->hash
                     : ((uintptr_t)key->base >> 4) * 31 + ((uintptr_t)key->index >> 4) * 17 +
                           (uint64_t)key->coefficient * 7;
    h ^= h >> 17;
    return (unsigned)(h % TL_HOIST_BUCKETS);
}

LLVMValueRef tl_emit_recall(tl_emitter *em, const tl_hoisted *key)
{
    for (int i = em->hoist_buckets[bucket_of(key)]; i >= 0; i = em->hoisted[i].next) {
        const tl_hoisted *h = &em->hoisted[i];
        if (key->expr != NULL) {
            if (h->expr != NULL && tl_expr_equal(h->expr, key->expr))
                return h->result;
        } else if (h->expr == NULL && h->base == key->base && h->index == key->index &&
                   h->coefficient == key->coefficient && h->element == key->element) {
            return h->result;
        }
    }
    return NULL;
}

/* Something that belongs to an outer level is forgotten with the current one: entries are a stack. */
void tl_emit_remember(tl_emitter *em, tl_hoisted entry)
{
    assert(em->hoisted_count <= em->hoisted_capacity);
    TL_ROOM(em->arena, em->hoisted, em->hoisted_count, em->hoisted_capacity);
    unsigned bucket = bucket_of(&entry);
    entry.next = em->hoist_buckets[bucket];
    em->hoist_buckets[bucket] = em->hoisted_count;
    em->hoisted[em->hoisted_count++] = entry;
}

void tl_emit_pop_level(tl_emitter *em)
{
    assert(em->level_count > 0);
    const tl_emit_level *level = &em->levels[--em->level_count];
    while (em->hoisted_count > level->cache_count) {
        const tl_hoisted *h = &em->hoisted[--em->hoisted_count];
        em->hoist_buckets[bucket_of(h)] = h->next;
    }
}

static bool is_power_of_two(LLVMValueRef v, unsigned *log)
{
    if (!LLVMIsAConstantInt(v))
        return false;
    unsigned long long value = LLVMConstIntGetZExtValue(v);
    if (value == 0 || (value & (value - 1)) != 0)
        return false;
    *log = (unsigned)__builtin_ctzll(value);
    return true;
}

static LLVMValueRef integer_like(LLVMValueRef v, int64_t value)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    int lanes = tl_emit_lanes_of(type);
    LLVMTypeRef element = lanes > 1 ? LLVMGetElementType(type) : type;
    LLVMValueRef c = LLVMConstInt(element, (unsigned long long)value, true);
    if (lanes == 1)
        return c;
    LLVMValueRef all[512];
    for (int i = 0; i < lanes; i++)
        all[i] = c;
    return LLVMConstVector(all, (unsigned)lanes);
}

/* A divisor that is never 0 (0 becomes 1), nor -1 where that would overflow. */
static LLVMValueRef safe_divisor(tl_emitter *em, LLVMValueRef a, LLVMValueRef b, bool is_signed)
{
    LLVMBuilderRef builder = em->builder;
    LLVMValueRef one = integer_like(b, 1);
    LLVMValueRef bad = LLVMBuildICmp(builder, LLVMIntEQ, b, integer_like(b, 0), "");
    if (is_signed) {
        LLVMTypeRef type = LLVMTypeOf(b);
        unsigned bits =
            LLVMGetIntTypeWidth(tl_emit_lanes_of(type) > 1 ? LLVMGetElementType(type) : type);
        LLVMValueRef least = integer_like(b, bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)));
        LLVMValueRef overflow =
            LLVMBuildAnd(builder, LLVMBuildICmp(builder, LLVMIntEQ, a, least, ""),
                         LLVMBuildICmp(builder, LLVMIntEQ, b, integer_like(b, -1), ""), "");
        bad = LLVMBuildOr(builder, bad, overflow, "");
    }
    return LLVMBuildSelect(builder, bad, one, b, "");
}

/* A constant divisor, splat or not, that is neither 0 nor -1 needs no test. */
static bool plain_divisor(LLVMValueRef b)
{
    if (tl_emit_lanes_of(LLVMTypeOf(b)) > 1) {
        if (!LLVMIsAConstantDataVector(b))
            return false;
        b = LLVMGetAggregateElement(b, 0);
    }
    return LLVMIsAConstantInt(b) && LLVMConstIntGetZExtValue(b) != 0 &&
           LLVMConstIntGetSExtValue(b) != -1;
}

LLVMValueRef tl_emit_floor(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, bool non_negative,
                           LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef builder = em->builder;
    bool is_signed = tl_dtype_infos[dtype].class == TL_CLASS_INT;
    bool quotient = kind != TL_EXPR_FLOORMOD;
    LLVMValueRef scalar = tl_emit_lanes_of(LLVMTypeOf(b)) > 1 && LLVMIsAConstantDataVector(b)
                              ? LLVMGetAggregateElement(b, 0)
                              : b;
    unsigned log;
    bool splat =
        scalar == b ||
        LLVMGetAggregateElement(b, (unsigned)tl_emit_lanes_of(LLVMTypeOf(b)) - 1) == scalar;
    bool power = splat && is_power_of_two(scalar, &log);
    if (power && LLVMConstIntGetSExtValue(scalar) > 0 &&
        (kind != TL_EXPR_DIV || !is_signed || non_negative)) {
        if (!quotient)
            return LLVMBuildAnd(builder, a, integer_like(b, (int64_t)(((uint64_t)1 << log) - 1)),
                                "");
        LLVMValueRef shift = integer_like(b, log);
        return is_signed && !non_negative ? LLVMBuildAShr(builder, a, shift, "")
                                          : LLVMBuildLShr(builder, a, shift, "");
    }
    if (!plain_divisor(b))
        b = safe_divisor(em, a, b, is_signed);
    if (!is_signed || non_negative)
        return quotient ? LLVMBuildUDiv(builder, a, b, "") : LLVMBuildURem(builder, a, b, "");
    if (kind == TL_EXPR_DIV)
        return LLVMBuildSDiv(builder, a, b, "");
    LLVMValueRef remainder = LLVMBuildSRem(builder, a, b, ""), zero = integer_like(a, 0);
    LLVMValueRef inexact = LLVMBuildICmp(builder, LLVMIntNE, remainder, zero, "");
    LLVMValueRef differ =
        LLVMBuildICmp(builder, LLVMIntSLT, LLVMBuildXor(builder, remainder, b, ""), zero, "");
    LLVMValueRef adjust = LLVMBuildAnd(builder, inexact, differ, "");
    if (!quotient)
        return LLVMBuildAdd(builder, remainder, LLVMBuildSelect(builder, adjust, b, zero, ""), "");
    LLVMValueRef q = LLVMBuildSDiv(builder, a, b, "");
    return LLVMBuildSub(builder, q, LLVMBuildSelect(builder, adjust, integer_like(a, 1), zero, ""),
                        "");
}

/* Words of 64 bits are pairs of registers on a GPU. */
static bool is_word(const tl_expr *e)
{
    tl_range range = tl_expr_range(e);
    return range.min >= INT32_MIN && range.max <= INT32_MAX;
}

static LLVMValueRef build_wide(tl_emitter *em, const tl_expr *e, tl_dtype dtype,
                               const LLVMValueRef *args)
{
    LLVMBuilderRef b = em->builder;
    LLVMIntPredicate order;
    switch (e->kind) {
    case TL_EXPR_ADD:
        return LLVMBuildNSWAdd(b, args[0], args[1], "");
    case TL_EXPR_SUB:
        return LLVMBuildNSWSub(b, args[0], args[1], "");
    case TL_EXPR_MUL:
        return LLVMBuildNSWMul(b, args[0], args[1], "");
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD: {
        bool non_negative =
            tl_expr_range(e->args[0]).min >= 0 && tl_expr_range(e->args[1]).min >= 0;
        return tl_emit_floor(em, e->kind, dtype, non_negative, args[0], args[1]);
    }
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
        order = e->kind == TL_EXPR_MIN ? LLVMIntSLT : LLVMIntSGT;
        return LLVMBuildSelect(b, LLVMBuildICmp(b, order, args[0], args[1], ""), args[0], args[1],
                               "");
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return NULL;
}

static LLVMValueRef build_scalar(tl_emitter *em, const tl_expr *e, const LLVMValueRef *args)
{
    if (em->gpu.phase == NULL || !is_word(e) || !is_word(e->args[0]) || !is_word(e->args[1]))
        return build_wide(em, e, TL_I64, args);
    LLVMValueRef words[2];
    for (int i = 0; i < 2; i++)
        words[i] = LLVMBuildTrunc(em->builder, args[i], em->i32, "");
    LLVMValueRef v = build_wide(em, e, TL_I32, words);
    if (v == NULL)
        return NULL;
    bool is_negative = tl_expr_range(e).min < 0;
    v = is_negative ? LLVMBuildSExt(em->builder, v, em->i64, "")
                    : LLVMBuildZExt(em->builder, v, em->i64, "");
    if (!is_negative && LLVMIsAInstruction(v))
        LLVMSetNNeg(v, true);
    return v;
}

/* What is taken as it is: a number, a loop's variable, what all lanes have in common. */
static bool is_leaf(const tl_emitter *em, const tl_expr *e)
{
    return e->kind == TL_EXPR_INT || e->kind == TL_EXPR_VAR || !tl_emit_varies(em, e);
}

/* Whether each value on the way to e's fits 32 bits, with room for lanes behind the end of a row. */
static bool fits_words(const tl_emitter *em, const tl_expr *e)
{
    const tl_range range = tl_expr_range(e);
    if (e->dtype != TL_I64 || range.min < INT32_MIN / 2 || range.max > INT32_MAX / 2)
        return false;
    if (is_leaf(em, e))
        return !tl_expr_has_load(e);
    return e->arg_count == 2 && tl_expr_infos[e->kind].arity == 2 && fits_words(em, e->args[0]) &&
           fits_words(em, e->args[1]);
}

static LLVMValueRef build_words(tl_emitter *em, const tl_expr *e)
{
    if (is_leaf(em, e)) {
        tl_emit_value v = tl_emit_expr(em, e);
        LLVMTypeRef type = tl_emit_vector(em->i32, tl_emit_lanes_of(LLVMTypeOf(v.llvm)));
        v.llvm = LLVMBuildTrunc(em->builder, v.llvm, type, "");
        return tl_emit_spread(em, v);
    }
    LLVMValueRef args[2] = { build_words(em, e->args[0]), build_words(em, e->args[1]) };
    return build_wide(em, e, TL_I32, args);
}

LLVMValueRef tl_emit_words(tl_emitter *em, const tl_expr *e)
{
    return em->gpu.phase == NULL && em->lanes > 1 && fits_words(em, e) ? build_words(em, e) : NULL;
}

LLVMValueRef tl_emit_scalar_index(tl_emitter *em, const tl_expr *e, int *level)
{
    *level = 0;
    if (e->kind == TL_EXPR_INT)
        return LLVMConstInt(em->i64, (unsigned long long)e->u.value, true);
    if (e->kind == TL_EXPR_VAR) {
        const tl_bound *bound = tl_find_bound(em, e->u.var);
        if (bound == NULL)
            return tl_emit_fail(em, em->i64, TL_BAD_IR, "variable %s is used outside of its loop",
                                e->u.var->name);
        if (bound->kind == TL_BOUND_VALUE) {
            *level = bound->level;
            return bound->value;
        }
        if (bound->kind == TL_BOUND_CONSTANT)
            return LLVMConstInt(em->i64, (unsigned long long)bound->constant, true);
    }
    bool arithmetic = e->arg_count == 2 && e->dtype == TL_I64 && tl_expr_infos[e->kind].arity == 2;
    if (!arithmetic) { /* a load, a select, a cast: where we are */
        *level = INT_MAX;
        return tl_emit_uniform(em, e);
    }
    tl_hoisted key = { .expr = e };
    LLVMValueRef args[2];
    for (int i = 0; i < 2; i++) {
        int arg_level;
        args[i] = tl_emit_scalar_index(em, e->args[i], &arg_level);
        *level = arg_level > *level ? arg_level : *level;
    }
    if (*level == INT_MAX)
        return build_scalar(em, e, args);
    LLVMValueRef known = tl_emit_recall(em, &key);
    if (known != NULL)
        return known;
    LLVMBasicBlockRef back = tl_emit_hoist(em, *level);
    key.result = build_scalar(em, e, args);
    tl_emit_leave(em, *level, back);
    tl_emit_remember(em, key);
    return key.result;
}
