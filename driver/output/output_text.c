/* driver/output/output_text.c: the kernels of a model as one text: LLVM IR or assembly. */
#include "codegen/codegen.h"
#include "driver/output/output.h"
#include "runtime/base/file.h"

static tl_status emit(const tl_model *model, tl_emit what, tl_arena *arena, tl_text *out,
                      tl_diag *diag)
{
    const tl_model_facts *facts = tl_model_get_facts(model);
    tl_codegen_part *parts = TL_NEW_ARRAY(arena, tl_codegen_part, 2 * facts->kernel_count);
    int count = 0;
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        if (k->same_as != i)
            continue;
        parts[count++] = (tl_codegen_part){ k->scheduled, false };
        if (k->scheduled->prepare != NULL && !tl_target_is_gpu(facts->target))
            parts[count++] = (tl_codegen_part){ k->scheduled, true };
    }
    if (count == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "the model has no kernels");
    return tl_codegen_emit(facts->graph->name, parts, count, facts->target, what, out, diag);
}

static tl_status write_text(const tl_output *o, tl_emit what, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_arena *arena = tl_arena_create(0);
    tl_status status = arena == NULL || TL_ARENA_GUARD(arena)
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : emit(o->model, what, arena, &text, diag);
    if (status == TL_OK)
        status = tl_file_write(o->path, text.data, text.size, diag);
    tl_arena_destroy(arena);
    tl_text_free(&text);
    return status;
}

tl_status tl_output_llvm(tl_output *o, tl_diag *diag)
{
    return write_text(o, TL_EMIT_LLVM, diag);
}

tl_status tl_output_ptx(tl_output *o, tl_diag *diag)
{
    const tl_target *target = tl_model_get_facts(o->model)->target;
    if (!tl_target_is_gpu(target))
        return tl_fail(diag, TL_UNSUPPORTED,
                       "PTX is for GPUs, and this is for %s: --target cuda,sm_90", target->cpu);
    return write_text(o, TL_EMIT_ASSEMBLY, diag);
}

tl_status tl_output_assembly(tl_output *o, tl_diag *diag)
{
    return write_text(o, TL_EMIT_ASSEMBLY, diag);
}
