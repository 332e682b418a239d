/* codegen/emit/emit_llvm.c: the module of a kernel.
 *
 * A phase NAME_0 unpacks the arguments and calls its body, whose pointers are parameters that do not alias: no
 * argument of a kernel overlaps another that is written. NAME_sizes exists where something depends on dims. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"

LLVMValueRef tl_emit_fail(tl_emitter *em, LLVMTypeRef type, tl_status status, const char *format,
                          ...)
{
    if (em->status == TL_OK) {
        char sentence[1024];
        va_list args;
        va_start(args, format);
        vsnprintf(sentence, sizeof sentence, format, args);
        va_end(args);
        em->status = tl_fail(em->diag, status, "%s", sentence);
    }
    return LLVMGetPoison(type);
}

LLVMValueRef tl_emit_intrinsic(tl_emitter *em, const char *name, LLVMTypeRef *overloads,
                               int overload_count, LLVMValueRef *args, int arg_count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(em->module, id, overloads, (size_t)overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(em->context, id, overloads, (size_t)overload_count);
    return LLVMBuildCall2(em->builder, type, f, args, (unsigned)arg_count, "");
}

void tl_emit_add_attribute(tl_emitter *em, LLVMValueRef function, unsigned at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, at, LLVMCreateEnumAttribute(em->context, kind, 0));
}

void tl_emit_add_text(tl_emitter *em, LLVMValueRef function, const char *name, const char *value)
{
    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(em->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

LLVMValueRef tl_emit_add_function(tl_emitter *em, const char *name, LLVMTypeRef *params,
                                  unsigned count)
{
    LLVMValueRef f =
        LLVMAddFunction(em->module, name, LLVMFunctionType(em->nothing, params, count, false));
    tl_emit_add_attribute(em, f, LLVMAttributeFunctionIndex, "nounwind");
    /* kernels run where numbers below the smallest normal one count as zero: `x < 0` is no question of bits */
    if (em->gpu.phase == NULL)
        tl_emit_add_text(em, f, "denormal-fp-math", "dynamic,dynamic");
    else
        tl_emit_add_text(em, f, "denormal-fp-math-f32", "preserve-sign,preserve-sign");
    tl_emit_add_text(em, f, "target-cpu", em->target->cpu);
    tl_emit_add_text(em, f, "target-features", em->target->features);
    if (tl_isa_infos[em->target->isa].vector_bits == 512)
        tl_emit_add_text(em, f, "prefer-vector-width", "512");
    return f;
}

/* Everything of an earlier function is forgotten. */
void tl_emit_start_function(tl_emitter *em, LLVMValueRef function)
{
    em->function = function;
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(em->context, function, "entry");
    LLVMPositionBuilderAtEnd(em->builder, entry);
    em->bound_count = em->level_count = em->storage_count = 0;
    em->hoisted_count = em->moving_count = 0;
    for (int i = 0; i < TL_HOIST_BUCKETS; i++)
        em->hoist_buckets[i] = -1;
    em->lanes = 1;
    em->lane_var = NULL;
    em->mask = em->guard = NULL;
    em->is_tail = em->safe_used = false;
    em->safe = LLVMBuildAlloca(em->builder, LLVMArrayType2(em->i8, TL_SAFE_BYTES), "");
    LLVMSetAlignment(em->safe, 64);
    tl_emit_push_level(em, (tl_emit_level){ .block = entry, .marker = em->safe });
}

const tl_buffer *tl_emit_param(const tl_lowered_kernel *kernel, int index)
{
    const tl_program *p = kernel->program;
    return index < p->param_count ? p->params[index] : p->prepared[index - p->param_count];
}

int tl_emit_param_count(const tl_lowered_kernel *kernel)
{
    return kernel->program->param_count + kernel->program->prepared_count;
}

void tl_emit_bind_dims(tl_emitter *em, const LLVMValueRef *values)
{
    const tl_program *p = em->kernel->program;
    for (int d = 0; d < p->dim_count; d++)
        tl_bind(em,
                (tl_bound){
                    .var = p->dims[d], .kind = TL_BOUND_VALUE, .value = values[d], .level = 0 });
}

LLVMValueRef tl_emit_scratch(tl_emitter *em, const tl_placement *placement)
{
    int level;
    LLVMValueRef offset = tl_emit_scalar_index(em, placement->offset, &level);
    LLVMValueRef base = placement->place == TL_PLACE_THREAD  ? em->thread_scratch
                        : placement->place == TL_PLACE_BLOCK ? em->gpu.shared
                                                             : em->scratch;
    LLVMBasicBlockRef back = tl_emit_hoist(em, 0);
    LLVMValueRef at = LLVMBuildGEP2(em->builder, em->i8, base, &offset, 1, "");
    tl_emit_leave(em, 0, back);
    return at;
}

/* body(buffers..., scratch, thread_scratch, begin, end, dims...) */
static LLVMValueRef emit_body(tl_emitter *em, int index)
{
    assert(index >= 0 && index < em->plan->phase_count);
    const tl_phase *phase = &em->plan->phases[index];
    int buffers = tl_emit_param_count(em->kernel), dims = em->kernel->program->dim_count;
    int count = buffers + 4 + dims;
    LLVMTypeRef *types = TL_NEW_ARRAY(em->arena, LLVMTypeRef, count);
    for (int i = 0; i < count; i++)
        types[i] = i < buffers + 2 ? em->pointer : em->i64;
    const char *name = tl_arena_format(em->arena, "%s_%d.body", em->kernel->name, index);
    LLVMValueRef f = tl_emit_add_function(em, name, types, (unsigned)count);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    for (int i = 0; i < buffers + 2; i++)
        tl_emit_add_attribute(em, f, (unsigned)i + 1, "noalias");

    tl_emit_start_function(em, f);
    LLVMValueRef *dim_values = TL_NEW_ARRAY(em->arena, LLVMValueRef, dims);
    for (int d = 0; d < dims; d++)
        dim_values[d] = LLVMGetParam(f, (unsigned)(buffers + 4 + d));
    tl_emit_bind_dims(em, dim_values);
    em->scratch = LLVMGetParam(f, (unsigned)buffers);
    em->thread_scratch = LLVMGetParam(f, (unsigned)buffers + 1);
    for (int i = 0; i < buffers; i++)
        tl_add_storage(em, tl_emit_param(em->kernel, i), LLVMGetParam(f, (unsigned)i), false);

    if (phase->var != NULL)
        tl_emit_range(em, phase->var, LLVMGetParam(f, (unsigned)buffers + 2),
                      LLVMGetParam(f, (unsigned)buffers + 3), false, phase->body);
    else
        tl_emit_stmt(em, phase->body);
    LLVMBuildRetVoid(em->builder);
    return f;
}

static LLVMValueRef load_field(tl_emitter *em, LLVMValueRef base, LLVMTypeRef type, int64_t index)
{
    return LLVMBuildLoad2(em->builder, type, tl_emit_offset(em, em->i64, base, index), "");
}

/* void NAME_i(const tl_kernel_args *args, int64_t begin, int64_t end, int thread) */
static void emit_phase(tl_emitter *em, int index)
{
    assert(index >= 0 && index < em->plan->phase_count);
    LLVMValueRef body = emit_body(em, index);
    LLVMTypeRef types[4] = { em->pointer, em->i64, em->i64, em->i32 };
    const char *name = tl_arena_format(em->arena, "%s_%d", em->kernel->name, index);
    LLVMValueRef f = tl_emit_add_function(em, name, types, 4);
    tl_emit_start_function(em, f);
    LLVMBuilderRef b = em->builder;
    LLVMValueRef args = LLVMGetParam(f, 0);
    int buffers = tl_emit_param_count(em->kernel), dims = em->kernel->program->dim_count, count = 0;
    LLVMValueRef *out = TL_NEW_ARRAY(em->arena, LLVMValueRef, buffers + 4 + dims);
    LLVMValueRef buffer_table = load_field(em, args, em->pointer, 0);
    for (int i = 0; i < buffers; i++)
        out[count++] = load_field(em, buffer_table, em->pointer, i);
    out[count++] = load_field(em, args, em->pointer, 2);
    LLVMValueRef thread = LLVMBuildSExt(b, LLVMGetParam(f, 3), em->i64, "");
    LLVMValueRef offset = LLVMBuildMul(b, thread, load_field(em, args, em->i64, 4), "");
    out[count++] = LLVMBuildGEP2(b, em->i8, load_field(em, args, em->pointer, 3), &offset, 1, "");
    out[count++] = LLVMGetParam(f, 1);
    out[count++] = LLVMGetParam(f, 2);
    LLVMValueRef dim_table = dims > 0 ? load_field(em, args, em->pointer, 1) : NULL;
    for (int d = 0; d < dims; d++)
        out[count++] = load_field(em, dim_table, em->i64, d);
    LLVMBuildCall2(b, LLVMGlobalGetValueType(body), body, out, (unsigned)count, "");
    LLVMBuildRetVoid(b);
}

static void store_size(tl_emitter *em, const tl_expr *value, LLVMValueRef table, int64_t index)
{
    int level;
    LLVMValueRef v = tl_emit_scalar_index(em, value, &level);
    LLVMBuildStore(em->builder, v, tl_emit_offset(em, em->i64, table, index));
}

/* void NAME_sizes(const int64_t *dims, int64_t *extents, int64_t *scratch, int64_t *thread_scratch) */
static void emit_sizes(tl_emitter *em)
{
    assert(em->plan->has_sizes);
    LLVMTypeRef types[4] = { em->pointer, em->pointer, em->pointer, em->pointer };
    LLVMValueRef f =
        tl_emit_add_function(em, tl_arena_format(em->arena, "%s_sizes", em->kernel->name), types,
                             4);
    tl_emit_start_function(em, f);
    int dims = em->kernel->program->dim_count;
    LLVMValueRef *values = TL_NEW_ARRAY(em->arena, LLVMValueRef, dims);
    for (int d = 0; d < dims; d++)
        values[d] = load_field(em, LLVMGetParam(f, 0), em->i64, d);
    em->levels[0].marker = LLVMGetLastInstruction(LLVMGetInsertBlock(em->builder));
    tl_emit_bind_dims(em, values);
    for (int i = 0; i < em->plan->phase_count; i++)
        store_size(em, em->plan->phases[i].extent, LLVMGetParam(f, 1), i);
    store_size(em, em->plan->scratch, LLVMGetParam(f, 2), 0);
    store_size(em, em->plan->thread_scratch, LLVMGetParam(f, 3), 0);
    LLVMBuildRetVoid(em->builder);
}

void tl_emit_start_module(tl_emitter *em)
{
    LLVMContextRef c = em->context;
    em->module = LLVMModuleCreateWithNameInContext(em->kernel->name, c);
    em->builder = LLVMCreateBuilderInContext(c);
    em->i1 = LLVMInt1TypeInContext(c);
    em->i8 = LLVMInt8TypeInContext(c);
    em->i16 = LLVMInt16TypeInContext(c);
    em->i32 = LLVMInt32TypeInContext(c);
    em->i64 = LLVMInt64TypeInContext(c);
    em->f32 = LLVMFloatTypeInContext(c);
    em->f64 = LLVMDoubleTypeInContext(c);
    em->pointer = LLVMPointerTypeInContext(c, 0);
    em->nothing = LLVMVoidTypeInContext(c);
}

tl_status tl_emit_module(tl_emitter *em)
{
    tl_emit_start_module(em);
    for (int i = 0; i < em->plan->phase_count && em->status == TL_OK; i++)
        emit_phase(em, i);
    if (em->plan->has_sizes && em->status == TL_OK)
        emit_sizes(em);
    LLVMDisposeBuilder(em->builder);
    return em->status;
}
