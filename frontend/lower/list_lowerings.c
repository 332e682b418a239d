/* frontend/lower/list_lowerings.c: all ways to compute a kernel, for a tuner to choose among. */
#include <string.h>
#include "frontend/lower/lower_private.h"

/* Whether every node of the kernel that has a lowering of that name may be lowered so; `error` gets the largest of
 * theirs. A node without one takes its default. */
static bool is_legal(const tl_kernel *kernel, const char *name, int *error)
{
    *error = 1;
    for (int i = 0; i < kernel->node_count; i++) {
        const tl_lowering *row = tl_lowering_find(kernel->nodes[i]->op, name);
        if (row != NULL && !row->lowers(kernel->nodes[i]))
            return false;
        if (row != NULL && row->error > *error)
            *error = row->error;
    }
    return true;
}

/* The names that some node offers, in the order of the table, each once. Returns how many. */
static int collect_names(const tl_kernel *kernel, const char *names[TL_MAX_LOWERINGS])
{
    int count = 0;
    for (int i = 0; i < kernel->node_count; i++) {
        const tl_lowering *rows[TL_MAX_LOWERINGS];
        int row_count = tl_lowerings_of(kernel->nodes[i]->op, rows);
        for (int r = 0; r < row_count; r++) {
            bool known = false;
            for (int k = 0; k < count; k++)
                known |= strcmp(names[k], rows[r]->name) == 0;
            if (!known && count < TL_MAX_LOWERINGS)
                names[count++] = rows[r]->name;
        }
    }
    return count;
}

tl_status tl_kernel_lowerings(tl_arena *arena, const tl_kernel *kernel, tl_numerics numerics,
                              const tl_kernel_lowering **out, int *count, tl_diag *diag)
{
    const char *names[TL_MAX_LOWERINGS], *name = NULL;
    int error, name_count = collect_names(kernel, names);
    tl_kernel_lowering *found = TL_NEW_ARRAY(arena, tl_kernel_lowering, name_count + 1);
    double bound = 0;
    *count = 0;
    for (int i = 0; i < name_count; i++) {
        tl_program *program;
        if (!is_legal(kernel, names[i], &error) || (numerics == TL_NUMERICS_STRICT && error > 1))
            continue;
        TL_TRY(tl_kernel_program(arena, kernel, names[i], &program, diag));
        if (name == NULL) {
            char key[33];
            tl_workload_key(arena, program, key);
            name = tl_arena_format(arena, "%s_%.8s", kernel->family, key);
            bound = tl_program_error_bound(program);
        }
        program->name = name;
        program->strict = numerics == TL_NUMERICS_STRICT;
        program->tf32 = numerics == TL_NUMERICS_TF32;
        found[(*count)++] = (tl_kernel_lowering){ .name = names[i],
                                                  .program = program,
                                                  .text = tl_program_text(arena, program),
                                                  .rtol = error * bound,
                                                  .ttol = error * bound };
    }
    *out = found;
    if (*count == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s has no lowering", kernel->name);
    return TL_OK;
}
