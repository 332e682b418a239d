/* codegen/compile.c: the whole way of one kernel: lower, plan, emit, optimise, generate. */
#include <llvm-c/Analysis.h>
#include <string.h>
#include "codegen/emit_private.h"
#include "codegen/llvm_private.h"

#define ARENA_LIMIT ((size_t)1 << 30)

/* What has to be released however a compile ends. */
typedef struct {
    tl_arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
} held;

static void release(held *h)
{
    if (h->module != NULL)
        LLVMDisposeModule(h->module);
    if (h->machine != NULL)
        LLVMDisposeTargetMachine(h->machine);
    if (h->context != NULL)
        LLVMContextDispose(h->context);
    tl_arena_destroy(h->arena);
}

static tl_descriptor describe(tl_arena *arena, const tl_kernel *kernel, const tl_plan *plan)
{
    const tl_program *program = kernel->program;
    int64_t *extents = TL_NEW_ARRAY(arena, int64_t, plan->phase_count);
    tl_descriptor d = { .name = tl_arena_strdup(arena, kernel->name),
                        .phase_count = plan->phase_count,
                        .extents = extents,
                        .has_sizes = plan->has_sizes,
                        .dim_count = program->dim_count,
                        .buffer_count = program->param_count + program->prepared_count };
    for (int i = 0; i < plan->phase_count && !plan->has_sizes; i++)
        tl_const_int(plan->phases[i].extent, &extents[i]);
    if (!plan->has_sizes) {
        tl_const_int(plan->scratch, &d.scratch_bytes);
        tl_const_int(plan->thread_scratch, &d.thread_scratch_bytes);
    }
    return d;
}

static tl_status verify_module(LLVMModuleRef module, const char *name, tl_diag *diag)
{
    char *message = NULL;
    tl_status status = TL_OK;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = tl_fail(diag, TL_INTERNAL, "the LLVM module of kernel %s is not valid: %s", name,
                         message);
    LLVMDisposeMessage(message);
    return status;
}

static tl_status check(const tl_program *program, bool prepare, const tl_target *target,
                       tl_diag *diag)
{
    if (tl_target_is_gpu(target))
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: there is no code generator for %s",
                       program->name, tl_isa_infos[target->isa].text);
    if (prepare && program->prepare == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s has no prepare part", program->name);
    return TL_OK;
}

static tl_status compile(held *h, const tl_program *program, bool prepare, const tl_target *target,
                         tl_emit what, tl_text *out, tl_kernel *kernel, tl_plan *plan,
                         tl_diag *diag)
{
    *kernel = (tl_kernel){ .arena = h->arena, .program = program, .target = target };
    kernel->name = prepare ? tl_arena_format(h->arena, "%s_prepare", program->name) : program->name;
    kernel->body = prepare ? program->prepare : program->body;
    TL_TRY(tl_lower(kernel, NULL, diag));
    TL_TRY(tl_plan_make(kernel, plan, diag));
    TL_TRY(tl_llvm_machine(target, &h->machine, diag));

    char complaint[512] = "";
    h->context = LLVMContextCreate();
    tl_llvm_collect(h->context, complaint);
    tl_emitter *em = TL_NEW(h->arena, tl_emitter);
    em->arena = h->arena;
    em->kernel = kernel;
    em->plan = plan;
    em->target = target;
    em->context = h->context;
    em->diag = diag;
    tl_status status = tl_emit_module(em);
    h->module = em->module;
    if (status != TL_OK)
        return status;
    LLVMSetTarget(h->module, target->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(h->machine);
    LLVMSetModuleDataLayout(h->module, layout);
    LLVMDisposeTargetData(layout);
    TL_TRY(verify_module(h->module, kernel->name, diag));
    TL_TRY(tl_llvm_optimise(h->module, h->machine, diag));
    TL_TRY(tl_llvm_emit(h->module, h->machine, what, out, diag));
    if (complaint[0] != '\0')
        return tl_fail(diag, TL_INTERNAL, "LLVM: %s", complaint);
    return what == TL_EMIT_OBJECT ? tl_object_check(out->data, out->size, diag) : TL_OK;
}

tl_status tl_codegen_compile(tl_arena *arena, const tl_program *program, bool prepare,
                             const tl_target *target, tl_emit what, tl_text *out,
                             tl_descriptor *descriptor, tl_diag *diag)
{
    TL_TRY(check(program, prepare, target, diag));
    held h = { .arena = tl_arena_create(ARENA_LIMIT) };
    tl_llvm_guard guard;
    tl_llvm_enter(&guard);
    if (h.arena == NULL || TL_ARENA_GUARD(h.arena)) {
        tl_llvm_leave(&guard);
        release(&h);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to compile kernel %s", program->name);
    }
    if (setjmp(guard.escape) != 0) { /* LLVM's objects are in no state to be disposed of */
        tl_llvm_leave(&guard);
        tl_arena_destroy(h.arena);
        return tl_fail(diag, TL_INTERNAL, "LLVM gave up on kernel %s: %s", program->name,
                       guard.text);
    }
    tl_kernel kernel;
    tl_plan plan;
    tl_status status = compile(&h, program, prepare, target, what, out, &kernel, &plan, diag);
    tl_llvm_leave(&guard);
    if (status == TL_OK && descriptor != NULL)
        *descriptor = describe(arena, &kernel, &plan);
    else if (status != TL_OK)
        tl_context(diag, "kernel %s", program->name);
    release(&h);
    return status;
}

tl_status tl_codegen_observe(const tl_program *program, bool prepare, const tl_target *target,
                             const tl_codegen_observer *observer, tl_diag *diag)
{
    TL_TRY(check(program, prepare, target, diag));
    tl_arena *arena = tl_arena_create(ARENA_LIMIT);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to lower kernel %s", program->name);
    }
    tl_kernel kernel = {
        .arena = arena, .program = program, .name = program->name, .target = target
    };
    kernel.body = prepare ? program->prepare : program->body;
    tl_lower_debug debug = { observer->show, observer->context };
    tl_status status = tl_lower(&kernel, &debug, diag);
    tl_arena_destroy(arena);
    return status;
}
