/* codegen/lower/lower_program.c: runs the passes of lower_passes.def; knows nothing about any of them. */
#include "codegen/lower/lower_program.h"
#include "codegen/lower/passes.h"

#define WHEN_CPU    \
    {               \
        true, false \
    }
#define WHEN_GPU    \
    {               \
        false, true \
    }
#define WHEN_ALL   \
    {              \
        true, true \
    }

enum {
#define INVARIANT(name, check, holds) name = 1 << TL_INVARIANT_##name,
#include "codegen/lower/lower_invariants.def"
#undef INVARIANT
};

static const tl_lower_pass passes[] = {
#define PASS(name, when, leaves, holds) { #name, WHEN_##when, leaves, holds, tl_##name },
#include "codegen/lower/lower_passes.def"
#undef PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

const tl_lower_pass *tl_lower_passes(int *count)
{
    *count = PASS_COUNT;
    return passes;
}

tl_program tl_lowered_program(const tl_lowered_kernel *kernel)
{
    tl_program program = *kernel->program;
    *(kernel->prepare ? &program.prepare : &program.body) = kernel->body;
    return program;
}

const char *tl_lowered_text(const tl_lowered_kernel *kernel)
{
    tl_program program = *kernel->program;
    program.body = kernel->body;
    program.prepare = NULL;
    return tl_program_text(kernel->arena, &program);
}

static tl_status run(const tl_lower_pass *pass, tl_lowered_kernel *kernel, tl_diag *diag)
{
    TL_TRY(pass->run(kernel, diag));
#ifndef NDEBUG
    TL_TRY(tl_verify_lowered(kernel, pass->holds, diag));
#endif
    return TL_OK;
}

tl_status tl_lower(tl_lowered_kernel *kernel, const tl_lower_observer *observer, tl_diag *diag)
{
    bool is_gpu = tl_target_is_gpu(kernel->target);
    for (int p = 0; p < PASS_COUNT; p++) {
        if (!passes[p].is_run[is_gpu])
            continue;
        tl_status status = run(&passes[p], kernel, diag);
        if (status != TL_OK) {
            tl_context(diag, "pass %s of kernel %s", passes[p].name, kernel->name);
            return status;
        }
        if (observer != NULL)
            observer->see(observer->context, p + 1, &passes[p], kernel);
    }
    return TL_OK;
}
