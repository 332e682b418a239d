/* codegen/emit/emit_join_llvm.c: the threads of a GPU block that drive a reduction combine what they have.
 *
 *     for t in 0..N threadIdx.x             v = A[t]
 *       S[0] = S[0] + A[t]           ->     v += v of lane^16, then of lane^8, ^4, ^2, ^1       (the tree of a warp)
 *                                           where N > 32: a word of shared memory a warp, and all of them added up
 *                                           the first thread: S[0] = S[0] + v
 *
 * N is a power of two up to 32, so that rows of threads fill a warp, or a multiple of 32, so that a row has whole warps. */
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"

enum { WARP = 32, MOST_WORDS = 2 };

typedef struct {
    const tl_emitter *em;
    bool found;
} row_walk;

static bool visit_row(const tl_expr *e, void *context)
{
    row_walk *walk = context;
    const tl_bound *b = e->kind == TL_EXPR_VAR ? tl_find_bound(walk->em, e->u.var) : NULL;
    walk->found = walk->found ||
                  (b != NULL && b->kind == TL_BOUND_VALUE && b->value == walk->em->gpu.thread[0]);
    return !walk->found;
}

bool tl_emit_joins_threads(const tl_emitter *em, const tl_store *store)
{
    if (em->gpu.phase == NULL || !(em->gpu.loops & 1u) || em->gpu.phase->launch.block[0] == 1 ||
        !tl_reads_own_element(store))
        return false;
    const tl_placement *placement = tl_plan_find(em->plan, store->buffer);
    if (placement != NULL &&
        (placement->place == TL_PLACE_REGISTER || placement->place == TL_PLACE_STACK))
        return false; /* each thread has its own */
    row_walk walk = { em, false };
    for (int a = 0; a < store->buffer->rank && !walk.found; a++)
        tl_expr_visit(store->indices[a], visit_row, &walk);
    return !walk.found;
}

/* The words of 32 bits of a value, and back. */
static int take_apart(tl_emitter *em, LLVMValueRef v, LLVMValueRef words[MOST_WORDS])
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef type = LLVMTypeOf(v);
    if (type == em->f32) {
        words[0] = LLVMBuildBitCast(b, v, em->i32, "");
        return 1;
    }
    if (type == em->f64)
        v = LLVMBuildBitCast(b, v, em->i64, "");
    if (LLVMTypeOf(v) != em->i64) {
        words[0] = LLVMBuildZExt(b, v, em->i32, "");
        return 1;
    }
    words[0] = LLVMBuildTrunc(b, v, em->i32, "");
    words[1] =
        LLVMBuildTrunc(b, LLVMBuildLShr(b, v, LLVMConstInt(em->i64, WARP, false), ""), em->i32, "");
    return 2;
}

static LLVMValueRef put_together(tl_emitter *em, LLVMTypeRef type, LLVMValueRef *words, int count)
{
    LLVMBuilderRef b = em->builder;
    if (type == em->f32)
        return LLVMBuildBitCast(b, words[0], type, "");
    if (count == 1)
        return LLVMBuildTrunc(b, words[0], type, "");
    LLVMValueRef high = LLVMBuildShl(b, LLVMBuildZExt(b, words[1], em->i64, ""),
                                     LLVMConstInt(em->i64, WARP, false), "");
    LLVMValueRef v = LLVMBuildOr(b, LLVMBuildZExt(b, words[0], em->i64, ""), high, "");
    return type == em->f64 ? LLVMBuildBitCast(b, v, type, "") : v;
}

static LLVMValueRef linear_thread(tl_emitter *em)
{
    LLVMBuilderRef b = em->builder;
    const int64_t *block = em->gpu.phase->launch.block;
    LLVMValueRef at = LLVMConstInt(em->i64, 0, false);
    for (int axis = TL_GPU_AXES - 1; axis >= 0; axis--) {
        at = LLVMBuildMul(b, at, LLVMConstInt(em->i64, (unsigned long long)block[axis], false), "");
        at = LLVMBuildAdd(b, at, em->gpu.thread[axis], "");
    }
    return at;
}

/* The lanes of this thread's warp: the last one of a block may have fewer than 32. */
static LLVMValueRef lanes_there(tl_emitter *em)
{
    LLVMBuilderRef b = em->builder;
    const int64_t *block = em->gpu.phase->launch.block;
    int64_t threads = block[0] * block[1] * block[2], rest = threads % WARP;
    LLVMValueRef all = LLVMConstAllOnes(em->i32);
    if (rest == 0)
        return all;
    LLVMValueRef some = LLVMConstInt(em->i32, (1ull << rest) - 1, false);
    LLVMValueRef full = LLVMConstInt(em->i64, (unsigned long long)(threads - rest), false);
    return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, linear_thread(em), full, ""), all, some,
                           "");
}

static LLVMValueRef from_lane(tl_emitter *em, LLVMValueRef v, LLVMValueRef mask, int distance)
{
    LLVMValueRef words[MOST_WORDS];
    int count = take_apart(em, v, words);
    for (int i = 0; i < count; i++) {
        LLVMValueRef args[4] = { mask, words[i], LLVMConstInt(em->i32, (unsigned)distance, false),
                                 LLVMConstInt(em->i32, WARP - 1, false) };
        words[i] = tl_emit_intrinsic(em, "llvm.nvvm.shfl.sync.bfly.i32", NULL, 0, args, 4);
    }
    return put_together(em, LLVMTypeOf(v), words, count);
}

static LLVMValueRef word_of_warp(tl_emitter *em, LLVMValueRef index)
{
    LLVMValueRef at =
        LLVMBuildMul(em->builder, index, LLVMConstInt(em->i64, TL_GPU_JOIN_BYTES, false), "");
    LLVMValueRef from =
        LLVMConstInt(em->i64, (unsigned long long)em->gpu.phase->launch.join_offset, false);

    at = LLVMBuildAdd(em->builder, at, from, "");
    return LLVMBuildGEP2(em->builder, em->i8, em->gpu.shared, &at, 1, "");
}

/* A bool lies in memory as a byte. */
static LLVMTypeRef stored_type(tl_emitter *em, LLVMTypeRef type)
{
    return type == em->i1 ? em->i8 : type;
}

/* Every warp writes its value, all threads read those of their row. */
static LLVMValueRef join_warps(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef type = LLVMTypeOf(v), stored = stored_type(em, type);
    int64_t warps = em->gpu.phase->launch.block[0] / WARP;
    LLVMValueRef warp = LLVMBuildLShr(b, linear_thread(em), LLVMConstInt(em->i64, 5, false), "");
    LLVMValueRef lane =
        LLVMBuildAnd(b, em->gpu.thread[0], LLVMConstInt(em->i64, WARP - 1, false), "");
    LLVMValueRef first =
        LLVMBuildSub(b, warp,
                     LLVMBuildLShr(b, em->gpu.thread[0], LLVMConstInt(em->i64, 5, false), ""), "");
    tl_emit_barrier(em); /* what an earlier reduction left here has been read */
    LLVMBasicBlockRef after =
        tl_emit_begin_where(em,
                            LLVMBuildICmp(b, LLVMIntEQ, lane, LLVMConstInt(em->i64, 0, false), ""));
    LLVMBuildStore(b, stored == type ? v : LLVMBuildZExt(b, v, stored, ""), word_of_warp(em, warp));
    tl_emit_end_where(em, after);
    tl_emit_barrier(em);
    LLVMValueRef total = NULL;
    for (int64_t w = 0; w < warps; w++) {
        LLVMValueRef at =
            LLVMBuildAdd(b, first, LLVMConstInt(em->i64, (unsigned long long)w, false), "");
        LLVMValueRef one = LLVMBuildLoad2(b, stored, word_of_warp(em, at), "");
        one = stored == type ? one : LLVMBuildTrunc(b, one, type, "");
        total = total == NULL ? one : tl_emit_binary(em, NULL, kind, dtype, total, one);
    }
    return total;
}

void tl_emit_join(tl_emitter *em, const tl_store *store)
{
    const tl_launch_plan *launch = &em->gpu.phase->launch;
    const tl_expr *value = store->value;
    tl_dtype dtype = store->buffer->dtype;
    int64_t row = launch->block[0];
    bool is_left = tl_emit_is_update(store) && tl_is_own_element(value->args[0], store);
    if (em->gpu.partly != NULL || !tl_emit_is_update(store) || em->lanes > 1 ||
        (row % WARP != 0 && (row > WARP || (row & (row - 1)) != 0))) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "buffer %s: all threads along x must combine what they store to one element, "
                     "with a plain update, and be a power of two up to %d or a multiple of %d",
                     store->buffer->name, WARP, WARP);
        return;
    }
    LLVMValueRef v = tl_emit_uniform(em, value->args[is_left ? 1 : 0]), mask = lanes_there(em);
    for (int distance = (int)(row < WARP ? row : WARP) / 2; distance > 0; distance /= 2)
        v = tl_emit_binary(em, NULL, value->kind, dtype, v, from_lane(em, v, mask, distance));
    if (row > WARP)
        v = join_warps(em, value->kind, dtype, v);
    LLVMBasicBlockRef after =
        tl_emit_begin_where(em, LLVMBuildICmp(em->builder, LLVMIntEQ, em->gpu.thread[0],
                                              LLVMConstInt(em->i64, 0, false), ""));
    LLVMValueRef old = tl_emit_uniform(em, value->args[is_left ? 0 : 1]);
    tl_emit_store_scalar(em, store, tl_emit_binary(em, NULL, value->kind, dtype, old, v));
    tl_emit_end_where(em, after);
}
