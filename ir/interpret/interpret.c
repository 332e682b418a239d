/* ir/interpret/interpret.c: the entry: checks the arguments, compiles, runs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/float_mode.h"

void tl_machine_where(const tl_frame *f, int site, char *out, size_t size)
{
    const tl_machine *m = f->machine;
    const tl_site *s = &m->sites[site];
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < s->loop_count && used < size; i++) {
        const tl_insn *loop = &m->insns[s->loops[i]];
        used += (size_t)snprintf(out + used, size - used, "%s%s = %" PRId64, used ? ", " : "",
                                 loop->var->name, f->slots[loop->slot]);
    }
    for (int i = 0; s->block != NULL && i < s->block->iter_count && used < size; i++) {
        const tl_iter_code *iter = &s->block->iters[i];
        if (!iter->is_alias && site == f->site)
            used += (size_t)snprintf(out + used, size - used, "%s%s = %" PRId64, used ? ", " : "",
                                     iter->iter->var->name, f->slots[iter->slot]);
    }
}

void tl_machine_fail(tl_frame *f, tl_status status, const char *format, ...)
{
    tl_machine *m = f->machine;
    char sentence[1536], where[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    m->status = tl_fail(m->diag, status, "%s", sentence);
    if (f->site >= 0 && f->site < m->site_count) {
        tl_machine_where(f, f->site, where, sizeof where);
        tl_context(m->diag, "%s%s%s%s", m->sites[f->site].name, where[0] ? " (" : "", where,
                   where[0] ? ")" : "");
    }
    longjmp(m->escape, 1);
}

static const tl_argument *find_argument(const tl_argument *arguments, int count,
                                        const tl_buffer *buffer)
{
    for (int i = 0; i < count; i++)
        if (arguments[i].buffer == buffer)
            return &arguments[i];
    return NULL;
}

static tl_status check_dims(const tl_program *program, const int64_t *dims, tl_diag *diag)
{
    for (int i = 0; i < program->dim_count; i++) {
        const tl_var *dim = program->dims[i];
        if (dims[i] < dim->min || dims[i] > dim->max)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "dim %s is %" PRId64 ", outside of its range %" PRId64 "..%" PRId64,
                           dim->name, dims[i], dim->min, dim->max);
    }
    return TL_OK;
}

/* Gives every parameter its memory. What is read only needs no watching. */
static tl_status bind_arguments(tl_machine *m, tl_frame *f, const tl_program *program,
                                const tl_argument *arguments, int count,
                                const tl_interpret_options *options, tl_diag *diag)
{
    for (int i = 0; i < program->param_count + program->prepared_count; i++) {
        bool is_param = i < program->param_count;
        const tl_buffer *buffer =
            is_param ? program->params[i] : program->prepared[i - program->param_count];
        const tl_argument *argument = find_argument(arguments, count, buffer);
        int memory = tl_machine_memory(m, buffer);
        bool needed = is_param || options->skip_prepare;
        if (needed && (argument == NULL || argument->data == NULL) && m->memories[memory].count > 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no argument for its parameter %s",
                           program->name, buffer->name);

        bool watched = buffer->role == TL_ROLE_OUTPUT || buffer->role == TL_ROLE_INOUT ||
                       (buffer->role == TL_ROLE_PREPARED && !options->skip_prepare);
        bool given = buffer->role != TL_ROLE_OUTPUT &&
                     !(buffer->role == TL_ROLE_PREPARED && !options->skip_prepare);
        void *data = argument != NULL ? argument->data : NULL;
        f->storages[memory] = tl_storage_make(m, memory, data, watched);
        f->storages[memory]->birth = given ? 0 : tl_machine_tick(m);
    }
    return TL_OK;
}

static tl_status interpret(tl_machine *m, const tl_program *program, const tl_argument *arguments,
                           int count, const int64_t *dims, const tl_interpret_options *options)
{
    if (setjmp(m->escape) != 0)
        return m->status;
    tl_machine_compile(m, program, dims, !options->skip_prepare);
    tl_fiber *root = tl_fiber_create(m);
    TL_TRY(bind_arguments(m, &root->frame, program, arguments, count, options, m->diag));
    tl_fiber_run_all(m, root);
    return TL_OK;
}

static tl_status interpret_in_arena(const tl_program *program, const tl_argument *arguments,
                                    int count, const int64_t *dims,
                                    const tl_interpret_options *options, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to interpret %s", program->name);
    }
    tl_machine *m = TL_NEW(arena, tl_machine);
    m->arena = arena;
    m->check = options->check;
    m->reads_unwritten = options->reads_unwritten;
    m->budget = options->max_instances > 0 ? options->max_instances : INT64_MAX;
    m->diag = diag;
    tl_status status = interpret(m, program, arguments, count, dims, options);
    if (status != TL_OK)
        tl_context(diag, "kernel %s", program->name);
    tl_arena_destroy(arena);
    return status;
}

tl_status tl_interpret(const tl_program *program, const tl_argument *arguments, int argument_count,
                       const int64_t *dims, const tl_interpret_options *options, tl_diag *diag)
{
    static const tl_interpret_options everything = { .check = true };
    TL_TRY(check_dims(program, dims, diag));
    uint64_t mode = tl_float_mode_enter();
    tl_status status = interpret_in_arena(program, arguments, argument_count, dims,
                                          options != NULL ? options : &everything, diag);
    tl_float_mode_leave(mode);
    return status;
}
