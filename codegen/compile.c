/* codegen/compile.c: the whole way of a kernel: lower, plan, emit, optimise, generate. */
#include <llvm-c/Analysis.h>
#include <llvm-c/Linker.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "codegen/llvm/llvm_private.h"

#define ARENA_LIMIT ((size_t)1 << 30)

static tl_descriptor describe_common(tl_arena *arena, const tl_lowered_kernel *kernel,
                                     const tl_kernel_plan *plan)
{
    const tl_program *program = kernel->program;
    return (tl_descriptor){ .name = tl_arena_strdup(arena, kernel->name),
                            .phase_count = plan->phase_count,
                            .extents = TL_NEW_ARRAY(arena, int64_t, plan->phase_count),
                            .has_sizes = plan->has_sizes,
                            .dim_count = program->dim_count,
                            .buffer_count = program->param_count + program->prepared_count };
}

static tl_status describe_cpu(tl_arena *arena, const tl_lowered_kernel *kernel,
                              const tl_kernel_plan *plan, tl_descriptor *out, tl_diag *diag)
{
    (void)diag;
    *out = describe_common(arena, kernel, plan);
    int64_t *extents = TL_NEW_ARRAY(arena, int64_t, plan->phase_count);
    out->extents = extents;
    for (int i = 0; i < plan->phase_count && !plan->has_sizes; i++)
        tl_const_int(plan->phases[i].extent, &extents[i]);
    if (!plan->has_sizes) {
        tl_const_int(plan->scratch, &out->scratch_bytes);
        tl_const_int(plan->thread_scratch, &out->thread_scratch_bytes);
    }
    return TL_OK;
}

_Static_assert((int)TL_GPU_MAP_SCRATCH == (int)TL_MAP_SCRATCH, "the same in both");

static void describe_maps(tl_arena *arena, const tl_kernel_plan *plan, tl_descriptor *out)
{
    tl_tensor_map *maps = TL_NEW_ARRAY(arena, tl_tensor_map, plan->map_count);
    for (int i = 0; i < plan->map_count; i++) {
        const tl_map_plan *from = &plan->maps[i];
        maps[i] = (tl_tensor_map){ .buffer = from->buffer,
                                   .offset = from->offset,
                                   .dtype = from->from->dtype,
                                   .rank = from->rank,
                                   .swizzle = from->swizzle };
        for (int a = 0; a < from->rank; a++) {
            maps[i].extents[a] = from->extents[a];
            maps[i].strides[a] = from->strides[a];
            maps[i].box[a] = (int)from->box[a];
        }
    }
    out->map_count = plan->map_count;
    out->maps = maps;
}

static tl_status describe_gpu(tl_arena *arena, const tl_lowered_kernel *kernel,
                              const tl_kernel_plan *plan, tl_descriptor *out, tl_diag *diag)
{
    *out = describe_common(arena, kernel, plan);
    tl_launch *launches = TL_NEW_ARRAY(arena, tl_launch, plan->phase_count);
    out->form = TL_FORM_PTX;
    out->arch = tl_arena_strdup(arena, kernel->target->cpu);
    out->launches = launches;
    TL_TRY(tl_gpu_formula(arena, kernel->program, plan->scratch, &out->scratch_bytes,
                          &out->scratch_formula, diag));
    describe_maps(arena, plan, out);
    for (int i = 0; i < plan->phase_count; i++) {
        const tl_launch_plan *from = &plan->phases[i].launch;
        bool is_dynamic = from->shared_bytes > TL_GPU_STATIC_SHARED;
        tl_launch *l = &launches[i];
        *l = (tl_launch){ .cluster = { 1, 1, 1 },
                          .shared_bytes = is_dynamic ? 0 : from->shared_bytes,
                          .dynamic_shared_bytes = is_dynamic ? from->shared_bytes : 0,
                          .registers = -1,
                          .spill_bytes = -1 };
        for (int axis = 0; axis < TL_GPU_AXES; axis++) {
            l->block[axis] = (int)from->block[axis];
            l->cluster[axis] = (int)from->cluster[axis];
            TL_TRY(tl_gpu_formula(arena, kernel->program, from->grid[axis], &l->grid[axis],
                                  &l->grid_formula[axis], diag));
        }
    }
    return TL_OK;
}

/* What makes code for a kind of target: plan, module, passes over it, what follows them before code is generated, and what
 * is asked of the code. */
typedef struct {
    tl_status (*plan)(const tl_lowered_kernel *kernel, tl_kernel_plan *out, tl_diag *diag);
    tl_status (*emit)(tl_emitter *em);
    const char *passes;
    tl_status (*finish)(LLVMModuleRef module, LLVMTargetMachineRef machine, tl_diag *diag);
    LLVMCodeGenFileType object;
    tl_status (*check)(const void *object, size_t size, tl_diag *diag);
    tl_status (*describe)(tl_arena *arena, const tl_lowered_kernel *kernel,
                          const tl_kernel_plan *plan, tl_descriptor *out, tl_diag *diag);
} backend;

/* The CPU's passes are for code that is already explicit vectors: registers out of stack slots, common subexpressions,
 * invariants out of loops. Higher levels buy nothing and cost two to four times the time. A GPU's code generation has passes
 * of its own for addresses; flow that a thread's tests have left is put in order before it. */
static const backend backends[] = {
    { tl_plan_make, tl_emit_module,
      "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse)", NULL,
      LLVMObjectFile, tl_object_check, describe_cpu },
    { tl_gpu_plan_make, tl_emit_gpu_module,
      "function(scalarize-masked-mem-intrin,sroa,early-cse,simplifycfg,"
      "instcombine<no-verify-fixpoint>,loop-mssa(licm),"
      "early-cse,simplifycfg)",
      tl_llvm_fill_device, LLVMAssemblyFile, NULL, describe_gpu },
};

static const backend *backend_of(const tl_target *target)
{
    return &backends[tl_target_is_gpu(target)];
}

/* What has to be released however a compile ends. */
typedef struct {
    tl_arena *arena; /* of the latest kernel: */
    tl_lowered_kernel kernel;
    tl_kernel_plan plan;
    LLVMContextRef context;
    LLVMModuleRef module; /* of the first kernel, with what was joined to it */
    const tl_target *target;
    LLVMTargetMachineRef machine;
    char complaint[512]; /* the first of the context's */
} held;

static void release(held *h)
{
    if (h->module != NULL)
        LLVMDisposeModule(h->module);
    if (h->machine != NULL)
        tl_llvm_give_back(h->target, h->machine);
    if (h->context != NULL)
        LLVMContextDispose(h->context);
    tl_arena_destroy(h->arena);
    free(h);
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

static tl_status check(const tl_program *program, bool prepare, tl_diag *diag)
{
    if (prepare && program->prepare == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s has no prepare part", program->name);
    return TL_OK;
}

/* The kernel as a module, optimised. */
static tl_status build_module(held *h, const tl_codegen_part *part, const tl_target *target,
                              LLVMModuleRef *out, tl_diag *diag)
{
    const tl_program *program = part->program;
    tl_lowered_kernel *kernel = &h->kernel;
    *kernel = (tl_lowered_kernel){
        .arena = h->arena, .program = program, .prepare = part->prepare, .target = target
    };
    kernel->name =
        part->prepare ? tl_arena_format(h->arena, "%s_prepare", program->name) : program->name;
    kernel->body = part->prepare ? program->prepare : program->body;
    TL_TRY(tl_lower(kernel, NULL, diag));
    const backend *b = backend_of(target);
    TL_TRY(b->plan(kernel, &h->plan, diag));

    tl_emitter *em = TL_NEW(h->arena, tl_emitter);
    em->arena = h->arena;
    em->kernel = kernel;
    em->plan = &h->plan;
    em->target = target;
    em->context = h->context;
    em->diag = diag;
    tl_status status = b->emit(em);
    *out = em->module;
    if (status != TL_OK)
        return status;
    LLVMSetTarget(*out, target->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(h->machine);
    LLVMSetModuleDataLayout(*out, layout);
    LLVMDisposeTargetData(layout);
    TL_TRY(verify_module(*out, kernel->name, diag));
    return tl_llvm_optimise(*out, b->passes, h->machine, diag);
}

/* Every kernel's module is optimised by itself and then joined to those before it. */
static tl_status add_module(held *h, const tl_codegen_part *part, const tl_target *target,
                            tl_diag *diag)
{
    LLVMModuleRef module = NULL;
    tl_status status = build_module(h, part, target, &module, diag);
    if (status != TL_OK) {
        if (module != NULL)
            LLVMDisposeModule(module);
        return status;
    }
    if (h->module == NULL)
        h->module = module;
    else if (LLVMLinkModules2(h->module, module)) /* disposes of `module` */
        return tl_fail(diag, TL_INTERNAL, "LLVM does not join it to the others: %s", h->complaint);
    return TL_OK;
}

static tl_status add_kernel(held *h, const tl_codegen_part *part, const tl_target *target,
                            tl_diag *diag)
{
    TL_TRY(check(part->program, part->prepare, diag));
    tl_arena_destroy(h->arena);
    h->arena = tl_arena_create(ARENA_LIMIT);
    if (h->arena == NULL || TL_ARENA_GUARD(h->arena))
        return tl_fail(diag, TL_NO_MEMORY, "no memory to compile it");
    return add_module(h, part, target, diag);
}

/* What is compiled, and into what. */
typedef struct {
    const char *name; /* of the module; NULL: as the kernel */
    const tl_codegen_part *parts;
    int count;
    const tl_target *target;
    tl_emit what;
} job;

static tl_status compile(held *h, const job *j, tl_text *out, tl_diag *diag)
{
    h->target = j->target;
    TL_TRY(tl_llvm_borrow(j->target, &h->machine, diag));
    h->context = LLVMContextCreate();
    tl_llvm_collect(h->context, h->complaint);
    for (int i = 0; i < j->count; i++) {
        tl_status status = add_kernel(h, &j->parts[i], j->target, diag);
        if (status != TL_OK) {
            tl_context(diag, "kernel %s", j->parts[i].program->name);
            return status;
        }
    }
    if (j->name != NULL) {
        LLVMSetModuleIdentifier(h->module, j->name, strlen(j->name));
        LLVMSetSourceFileName(h->module, j->name, strlen(j->name));
    }
    const backend *b = backend_of(j->target);
    if (j->what == TL_EMIT_LLVM) {
        TL_TRY(tl_llvm_print(h->module, out, diag));
    } else {
        if (b->finish != NULL)
            TL_TRY(b->finish(h->module, h->machine, diag));
        TL_TRY(tl_llvm_generate(h->module, h->machine,
                                j->what == TL_EMIT_OBJECT ? b->object : LLVMAssemblyFile, out,
                                diag));
    }
    if (h->complaint[0] != '\0')
        return tl_fail(diag, TL_INTERNAL, "LLVM: %s", h->complaint);
    bool is_checked = j->what == TL_EMIT_OBJECT && b->check != NULL;
    return is_checked ? b->check(out->data, out->size, diag) : TL_OK;
}

/* `descriptor`, when not NULL, is that of the last kernel, in `arena`. */
static tl_status compile_guarded(tl_arena *arena, const job *j, tl_text *out,
                                 tl_descriptor *descriptor, tl_diag *diag)
{
    tl_llvm_guard guard;
    held *h = calloc(1, sizeof *h);
    if (h == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory to compile");
    tl_llvm_enter(&guard);
    if (setjmp(guard.escape) != 0) { /* LLVM's objects are in no state to be disposed of */
        tl_status status = tl_fail(diag, TL_INTERNAL, "LLVM gave up on kernel %s: %s",
                                   h->kernel.name != NULL ? h->kernel.name : "", guard.text);
        tl_llvm_leave(&guard);
        tl_arena_destroy(h->arena);
        free(h);
        return status;
    }
    tl_status status = compile(h, j, out, diag);
    tl_llvm_leave(&guard);
    if (status == TL_OK && descriptor != NULL)
        status = backend_of(j->target)->describe(arena, &h->kernel, &h->plan, descriptor, diag);
    if (status == TL_OK && descriptor != NULL && j->what == TL_EMIT_LLVM)
        descriptor->form = TL_FORM_LLVM;
    release(h);
    return status;
}

bool tl_ptx_has_module(void)
{
    const char *wanted = getenv("TILTH_PTX_WITH_IR");
    return wanted != NULL && strcmp(wanted, "1") == 0;
}

/* The module that PTX is made from, behind it: a comment a line. */
static tl_status add_module_text(const tl_codegen_part *part, const tl_target *target, tl_text *out,
                                 tl_diag *diag)
{
    const job j = { NULL, part, 1, target, TL_EMIT_LLVM };
    tl_text ir = { 0 };
    tl_status status = compile_guarded(NULL, &j, &ir, NULL, diag);
    for (const char *line = tl_text_get(&ir); status == TL_OK && *line != '\0';) {
        size_t size = strcspn(line, "\n");
        tl_text_format(out, "//ir %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
    tl_text_free(&ir);
    return status;
}

tl_status tl_codegen_compile(tl_arena *arena, const tl_program *program, bool prepare,
                             const tl_target *target, tl_emit what, tl_text *out,
                             tl_descriptor *descriptor, tl_diag *diag)
{
    const tl_codegen_part part = { program, prepare };
    const job j = { NULL, &part, 1, target, what };
    TL_TRY(compile_guarded(arena, &j, out, descriptor, diag));
    return what == TL_EMIT_OBJECT && tl_target_is_gpu(target) && tl_ptx_has_module()
               ? add_module_text(&part, target, out, diag)
               : TL_OK;
}

tl_status tl_codegen_emit(const char *name, const tl_codegen_part *parts, int count,
                          const tl_target *target, tl_emit what, tl_text *out, tl_diag *diag)
{
    assert(count > 0);
    const job j = { name, parts, count, target, what };
    return compile_guarded(NULL, &j, out, NULL, diag);
}

static void show_pass(void *context, int number, const tl_lower_pass *pass,
                      const tl_lowered_kernel *kernel)
{
    const tl_codegen_observer *observer = context;
    observer->show(observer->context, number, pass->name, tl_lowered_text(kernel));
}

tl_status tl_codegen_observe(const tl_program *program, bool prepare, const tl_target *target,
                             const tl_codegen_observer *observer, tl_diag *diag)
{
    TL_TRY(check(program, prepare, diag));
    tl_arena *arena = tl_arena_create(ARENA_LIMIT);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to lower kernel %s", program->name);
    }
    tl_lowered_kernel kernel = { .arena = arena,
                                 .program = program,
                                 .prepare = prepare,
                                 .name = program->name,
                                 .target = target,
                                 .body = prepare ? program->prepare : program->body };
    tl_codegen_observer shown = *observer;
    tl_lower_observer passes = { show_pass, &shown };
    tl_status status = tl_lower(&kernel, &passes, diag);
    tl_arena_destroy(arena);
    return status;
}

static tl_status describe_lowered(tl_arena *scratch, tl_arena *arena, tl_lowered_kernel *kernel,
                                  tl_descriptor *out, tl_diag *diag)
{
    const backend *b = backend_of(kernel->target);
    tl_kernel_plan *plan = TL_NEW(scratch, tl_kernel_plan);
    TL_TRY(tl_lower(kernel, NULL, diag));
    TL_TRY(b->plan(kernel, plan, diag));
    return b->describe(arena, kernel, plan, out, diag);
}

tl_status tl_codegen_describe(tl_arena *arena, const tl_program *program, bool prepare,
                              const tl_target *target, tl_descriptor *descriptor, tl_diag *diag)
{
    TL_TRY(check(program, prepare, diag));
    tl_arena *scratch = tl_arena_create(ARENA_LIMIT);
    if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(scratch);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to lower kernel %s", program->name);
    }
    tl_lowered_kernel kernel = { .arena = scratch,
                                 .program = program,
                                 .prepare = prepare,
                                 .name = program->name,
                                 .target = target,
                                 .body = prepare ? program->prepare : program->body };
    tl_status status = describe_lowered(scratch, arena, &kernel, descriptor, diag);
    tl_arena_destroy(scratch);
    return status;
}
