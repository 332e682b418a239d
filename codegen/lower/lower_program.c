/* codegen/lower/lower_program.c: runs the passes of lower_passes.def; knows nothing about any of them. */
#include "codegen/lower/lower_program.h"
#include "codegen/lower/passes.h"

enum { WHEN_CPU = 1, WHEN_GPU = 2, WHEN_ALL = 3 };

static const struct pass {
    const char *name;
    unsigned when;
    tl_pass_function *run;
} passes[] = {
#define PASS(name, when, leaves) { #name, WHEN_##when, tl_##name },
#include "codegen/lower/lower_passes.def"
#undef PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

static const char *kernel_text(const tl_lowered_kernel *kernel)
{
    tl_program program = *kernel->program;
    program.body = kernel->body;
    program.prepare = NULL;
    return tl_program_text(kernel->arena, &program);
}

tl_status tl_lower(tl_lowered_kernel *kernel, const tl_lower_debug *debug, tl_diag *diag)
{
    unsigned when = tl_target_is_gpu(kernel->target) ? WHEN_GPU : WHEN_CPU;
    for (int p = 0; p < PASS_COUNT; p++) {
        if (!(passes[p].when & when))
            continue;
        tl_status status = passes[p].run(kernel, diag);
        if (status != TL_OK) {
            tl_context(diag, "pass %s of kernel %s", passes[p].name, kernel->name);
            return status;
        }
        if (debug != NULL && debug->dump != NULL)
            debug->dump(debug->context, p + 1, passes[p].name, kernel_text(kernel));
    }
    return TL_OK;
}
