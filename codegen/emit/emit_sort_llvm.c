/* codegen/emit/emit_sort_llvm.c: sort_f32 as functions inside the kernel's module.
 *
 * A heap sort of positions: in place in I, no scratch, n log n. A tie is decided by the position, which makes the
 * order total, so the result is that of a stable sort. A NaN goes behind every number. */
#include <string.h>
#include "codegen/emit/emit_private.h"

/* A function in the making: variables are stack slots, which optimisation turns into values. */
typedef struct {
    tl_emitter *em;
    LLVMBuilderRef b;
    LLVMValueRef f;
    LLVMValueRef x, x_stride, positions, stride, descending;
} maker;

static LLVMValueRef number(const maker *m, int64_t value)
{
    return LLVMConstInt(m->em->i64, (unsigned long long)value, true);
}

static LLVMBasicBlockRef block(const maker *m)
{
    return LLVMAppendBasicBlockInContext(m->em->context, m->f, "");
}

static LLVMValueRef get(const maker *m, LLVMValueRef slot)
{
    return LLVMBuildLoad2(m->b, m->em->i64, slot, "");
}

static LLVMValueRef element(const maker *m, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef index,
                            LLVMValueRef stride)
{
    LLVMValueRef offset = LLVMBuildMul(m->b, index, stride, "");
    return LLVMBuildGEP2(m->b, type, base, &offset, 1, "");
}

static LLVMValueRef position(const maker *m, LLVMValueRef index)
{
    LLVMValueRef p = element(m, m->em->i64, m->positions, index, m->stride);
    LLVMValueRef v = LLVMBuildLoad2(m->b, m->em->i64, p, "");
    LLVMSetAlignment(v, 8);
    return v;
}

static void set_position(const maker *m, LLVMValueRef index, LLVMValueRef value)
{
    LLVMBuildStore(m->b, value, element(m, m->em->i64, m->positions, index, m->stride));
}

static LLVMValueRef value_at(const maker *m, LLVMValueRef p)
{
    LLVMValueRef v =
        LLVMBuildLoad2(m->b, m->em->f32, element(m, m->em->f32, m->x, p, m->x_stride), "");
    LLVMSetAlignment(v, 4);
    return v;
}

/* Number a goes strictly before number b. */
static LLVMValueRef goes_before(const maker *m, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef up = LLVMBuildFCmp(m->b, LLVMRealOLT, a, b, ""),
                 down = LLVMBuildFCmp(m->b, LLVMRealOGT, a, b, "");
    LLVMValueRef order = LLVMBuildSelect(m->b, m->descending, down, up, "");
    LLVMValueRef a_is = LLVMBuildFCmp(m->b, LLVMRealORD, a, a, ""),
                 b_not = LLVMBuildFCmp(m->b, LLVMRealUNO, b, b, "");
    return LLVMBuildOr(m->b, order, LLVMBuildAnd(m->b, a_is, b_not, ""), "");
}

/* Position p comes after position q in the result. */
static LLVMValueRef comes_after(const maker *m, LLVMValueRef p, LLVMValueRef q)
{
    LLVMValueRef a = value_at(m, p), b = value_at(m, q);
    LLVMValueRef later = goes_before(m, b, a);
    LLVMValueRef tie = LLVMBuildNot(m->b, LLVMBuildOr(m->b, later, goes_before(m, a, b), ""), "");
    LLVMValueRef behind = LLVMBuildICmp(m->b, LLVMIntSGT, p, q, "");
    return LLVMBuildOr(m->b, later, LLVMBuildAnd(m->b, tie, behind, ""), "");
}

static LLVMValueRef make_function(tl_emitter *em, const char *suffix, LLVMTypeRef *types,
                                  unsigned count)
{
    const char *name = tl_arena_format(em->arena, "%s.%s", em->kernel->name, suffix);
    LLVMValueRef f =
        LLVMAddFunction(em->module, name, LLVMFunctionType(em->nothing, types, count, false));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    return f;
}

static maker start(tl_emitter *em, LLVMValueRef f, LLVMBuilderRef b)
{
    maker m = { .em = em, .b = b, .f = f };
    LLVMPositionBuilderAtEnd(b, block(&m));
    return m;
}

/* sift(x, x_stride, positions, stride, descending, root, end): sinks `root` below its larger children. */
static LLVMValueRef make_sift(tl_emitter *em, LLVMBuilderRef b)
{
    LLVMTypeRef types[7] = { em->pointer, em->i64, em->pointer, em->i64, em->i1, em->i64, em->i64 };
    LLVMValueRef f = make_function(em, "sift", types, 7);
    maker m = start(em, f, b);
    m.x = LLVMGetParam(f, 0);
    m.x_stride = LLVMGetParam(f, 1);
    m.positions = LLVMGetParam(f, 2);
    m.stride = LLVMGetParam(f, 3);
    m.descending = LLVMGetParam(f, 4);
    LLVMValueRef end = LLVMGetParam(f, 6), root = LLVMBuildAlloca(b, em->i64, "root");
    LLVMValueRef child = LLVMBuildAlloca(b, em->i64, "child");
    LLVMBasicBlockRef head = block(&m), inside = block(&m), two = block(&m), chosen = block(&m),
                      swap = block(&m), done = block(&m);
    LLVMBuildStore(b, LLVMGetParam(f, 5), root);
    LLVMBuildBr(b, head);

    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef left =
        LLVMBuildAdd(b, LLVMBuildMul(b, get(&m, root), number(&m, 2), ""), number(&m, 1), "");
    LLVMBuildStore(b, left, child);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, left, end, ""), inside, done);

    LLVMPositionBuilderAtEnd(b, inside);
    LLVMValueRef right = LLVMBuildAdd(b, left, number(&m, 1), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, right, end, ""), two, chosen);
    LLVMPositionBuilderAtEnd(b, two);
    LLVMValueRef larger = comes_after(&m, position(&m, right), position(&m, left));
    LLVMBuildStore(b, LLVMBuildSelect(b, larger, right, left, ""), child);
    LLVMBuildBr(b, chosen);

    LLVMPositionBuilderAtEnd(b, chosen);
    LLVMValueRef c = get(&m, child), r = get(&m, root);
    LLVMValueRef at_child = position(&m, c), at_root = position(&m, r);
    LLVMBuildCondBr(b, comes_after(&m, at_child, at_root), swap, done);
    LLVMPositionBuilderAtEnd(b, swap);
    set_position(&m, c, at_root);
    set_position(&m, r, at_child);
    LLVMBuildStore(b, c, root);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMBuildRetVoid(b);
    return f;
}

/* A loop: `counter` from `first` by `by` while it is >= `least` and < `limit`. */
typedef struct {
    LLVMValueRef counter, value;
    LLVMBasicBlockRef head, after;
    int64_t by;
} counting;

static counting begin_loop(const maker *m, LLVMValueRef counter, LLVMValueRef first, int64_t by,
                           int64_t least, LLVMValueRef limit)
{
    counting loop = { .counter = counter, .head = block(m), .after = block(m), .by = by };
    LLVMBasicBlockRef body = block(m);
    LLVMBuildStore(m->b, first, counter);
    LLVMBuildBr(m->b, loop.head);
    LLVMPositionBuilderAtEnd(m->b, loop.head);
    loop.value = get(m, counter);
    LLVMValueRef on =
        LLVMBuildAnd(m->b, LLVMBuildICmp(m->b, LLVMIntSGE, loop.value, number(m, least), ""),
                     LLVMBuildICmp(m->b, LLVMIntSLT, loop.value, limit, ""), "");
    LLVMBuildCondBr(m->b, on, body, loop.after);
    LLVMPositionBuilderAtEnd(m->b, body);
    return loop;
}

static void end_loop(const maker *m, const counting *loop)
{
    LLVMBuildStore(m->b, LLVMBuildAdd(m->b, loop->value, number(m, loop->by), ""), loop->counter);
    LLVMBuildBr(m->b, loop->head);
    LLVMPositionBuilderAtEnd(m->b, loop->after);
}

static void call_sift(const maker *m, LLVMValueRef sift, LLVMValueRef root, LLVMValueRef end)
{
    LLVMValueRef args[7] = { m->x, m->x_stride, m->positions, m->stride, m->descending, root, end };
    LLVMBuildCall2(m->b, LLVMGlobalGetValueType(sift), sift, args, 7, "");
}

/* sort(x, x_stride, y, y_stride, positions, stride, n, descending) */
LLVMValueRef tl_emit_sort_function(tl_emitter *em)
{
    LLVMValueRef known = LLVMGetNamedFunction(em->module, tl_arena_format(em->arena, "%s.sort_f32",
                                                                          em->kernel->name));
    if (known != NULL)
        return known;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(em->context);
    LLVMValueRef sift = make_sift(em, b);
    LLVMTypeRef types[8] = { em->pointer, em->i64, em->pointer, em->i64,
                             em->pointer, em->i64, em->i64,     em->i1 };
    LLVMValueRef f = make_function(em, "sort_f32", types, 8);
    maker m = start(em, f, b);
    m.x = LLVMGetParam(f, 0);
    m.x_stride = LLVMGetParam(f, 1);
    m.positions = LLVMGetParam(f, 4);
    m.stride = LLVMGetParam(f, 5);
    m.descending = LLVMGetParam(f, 7);
    LLVMValueRef n = LLVMGetParam(f, 6), counter = LLVMBuildAlloca(b, em->i64, "i");

    counting fill = begin_loop(&m, counter, number(&m, 0), 1, 0, n);
    set_position(&m, fill.value, fill.value);
    end_loop(&m, &fill);

    LLVMValueRef middle =
        LLVMBuildSub(b, LLVMBuildSDiv(b, n, number(&m, 2), ""), number(&m, 1), "");
    counting heap = begin_loop(&m, counter, middle, -1, 0, n);
    call_sift(&m, sift, heap.value, n);
    end_loop(&m, &heap);

    counting take = begin_loop(&m, counter, LLVMBuildSub(b, n, number(&m, 1), ""), -1, 1, n);
    LLVMValueRef top = position(&m, number(&m, 0)), last = position(&m, take.value);
    set_position(&m, number(&m, 0), last);
    set_position(&m, take.value, top);
    call_sift(&m, sift, number(&m, 0), take.value);
    end_loop(&m, &take);

    counting copy = begin_loop(&m, counter, number(&m, 0), 1, 0, n);
    LLVMValueRef to = element(&m, em->f32, LLVMGetParam(f, 2), copy.value, LLVMGetParam(f, 3));
    LLVMSetAlignment(LLVMBuildStore(b, value_at(&m, position(&m, copy.value)), to), 4);
    end_loop(&m, &copy);
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    return f;
}
