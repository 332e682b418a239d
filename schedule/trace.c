/* schedule/trace.c: traces: recording what a schedule was told, printing it, replaying it.
 *
 * A recorded loop has a number, given in order of appearance; a printed one has the name of its
 * variable, made unique. A block is known by its name: the one it has in the program, or the one that
 * an earlier step of the trace gave its result. */
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/schedule_private.h"

static tl_arg *copy_args(tl_arena *arena, const tl_arg *args, int count)
{
    assert(count >= 0 && (count == 0 || args != NULL));
    tl_arg *copy = TL_NEW_ARRAY(arena, tl_arg, count);
    for (int i = 0; i < count; i++) {
        copy[i] = args[i];
        if (args[i].word)
            copy[i].word = tl_arena_strdup(arena, args[i].word);
        if (args[i].kind == TL_ARG_FACTORS && args[i].count)
            copy[i].factors =
                tl_arena_copy(arena, args[i].factors, sizeof(int64_t) * (size_t)args[i].count,
                              _Alignof(int64_t));
    }
    return copy;
}

tl_step *tl_trace_append(tl_arena *arena, tl_trace *trace, tl_prim prim, const tl_arg *args,
                         int arg_count, const tl_arg *outs, int out_count)
{
    assert(prim < TL_PRIM_COUNT && arg_count <= TL_MAX_ARGS && out_count >= 0);
    TL_ROOM(arena, trace->steps, trace->count, trace->capacity);
    tl_step *step = &trace->steps[trace->count++];
    *step = (tl_step){ .prim = prim, .arg_count = arg_count, .out_count = out_count };
    step->args = copy_args(arena, args, arg_count);
    step->outs = copy_args(arena, outs, out_count);
    return step;
}

/* Recording. */

/* From the schedule's handles to the trace's numbers and names. */
static void number_args(tl_schedule *s, tl_arg *args, int count)
{
    for (int i = 0; i < count; i++) {
        tl_arg *arg = &args[i];
        if (arg->kind == TL_ARG_LOOP) {
            assert(arg->loop.id >= 0 && arg->loop.id <= s->loop_count);
            int32_t *number = &s->loop_numbers[arg->loop.id - 1];
            if (*number == 0)
                *number = ++s->numbers;
            arg->word = s->loops[arg->loop.id - 1]->name;
            arg->loop.id = *number;
        } else if (arg->kind == TL_ARG_BLOCK) {
            arg->word = s->blocks[arg->block.id - 1];
            arg->block.id = 0;
        }
    }
}

static bool find_block(const tl_stmt *stmt, void *context)
{
    const tl_block **block = context;
    if (*block == NULL && stmt->kind == TL_STMT_BLOCK)
        *block = stmt->u.block;
    return *block == NULL;
}

/* A loop that no step of the trace gave (code named it by its variable) is given by a loops(BLOCK) step of some
 * block under it. */
static tl_status introduce_loop(tl_schedule *s, const char *prim, const tl_var *var, tl_diag *diag)
{
    const tl_stmt *loop = tl_program_find_loop(s->program, var);
    const tl_block *block = NULL;
    if (loop)
        tl_stmt_visit(loop, find_block, &block);
    else
        return TL_OK; /* gone: the primitive says so */
    if (block == NULL)
        return tl_refuse(diag, prim, var->name,
                         "no block is under the loop, and a trace names a loop by "
                         "loops(BLOCK)");
    tl_path path = tl_schedule_path_to_block(s, block->name);

    tl_arg outs[TL_MAX_ARGS], arg = { .kind = TL_ARG_BLOCK, .word = block->name };
    int out_count = 0;
    for (int i = 0; i < path.count && out_count < TL_MAX_ARGS; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP)
            outs[out_count++] =
                (tl_arg){ .kind = TL_ARG_LOOP,
                          .loop = tl_schedule_name_loop(s, path.stmts[i]->u.loop.var) };
    number_args(s, outs, out_count);
    tl_trace_append(s->arena, &s->trace, TL_PRIM_loops, &arg, 1, outs, out_count);
    return TL_OK;
}

tl_status tl_schedule_introduce(tl_schedule *s, const char *prim, const tl_arg *args, int arg_count,
                                tl_diag *diag)
{
    for (int i = 0; i < arg_count; i++)
        if (args[i].kind == TL_ARG_LOOP && s->loop_numbers[args[i].loop.id - 1] == 0)
            TL_TRY(introduce_loop(s, prim, s->loops[args[i].loop.id - 1], diag));
    return TL_OK;
}

void tl_schedule_record(tl_schedule *s, tl_prim prim, const tl_arg *args, int arg_count,
                        const tl_arg *outs, int out_count)
{
    assert(arg_count <= TL_MAX_ARGS && out_count <= TL_MAX_ARGS);
    tl_arg in[TL_MAX_ARGS], out[TL_MAX_ARGS];
    if (arg_count > 0) /* without any, the list may be NULL */
        memcpy(in, args, sizeof(tl_arg) * (size_t)arg_count);
    if (out_count > 0)
        memcpy(out, outs, sizeof(tl_arg) * (size_t)out_count);
    number_args(s, in, arg_count);
    number_args(s, out, out_count);
    tl_trace_append(s->arena, &s->trace, prim, in, arg_count, out, out_count);
}

/* Printing. */

typedef struct {
    tl_arena *arena;
    int count;          /* numbers run from 1 to count */
    const char **names; /* by number - 1 */
} name_table;

static bool is_taken(const name_table *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (table->names[i] && strcmp(table->names[i], name) == 0)
            return true;
    return false;
}

static void name_loop(name_table *table, const tl_arg *arg)
{
    if (arg->kind != TL_ARG_LOOP || arg->loop.id < 1 || table->names[arg->loop.id - 1])
        return;
    const char *base = arg->word && *arg->word ? arg->word : "_", *name = base;
    for (int i = 1; strcmp(base, "_") != 0 && is_taken(table, name); i++)
        name = tl_arena_format(table->arena, "%s_%d", base, i);
    table->names[arg->loop.id - 1] = name;
}

static name_table make_names(tl_arena *arena, const tl_trace *trace)
{
    name_table table = { .arena = arena };
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < trace->count; i++) {
            const tl_step *step = &trace->steps[i];
            for (int k = 0; k < step->out_count + step->arg_count; k++) {
                const tl_arg *arg =
                    k < step->out_count ? &step->outs[k] : &step->args[k - step->out_count];
                if (pass == 1)
                    name_loop(&table, arg);
                else if (arg->kind == TL_ARG_LOOP && arg->loop.id > table.count)
                    table.count = arg->loop.id;
            }
        }
        if (pass == 0)
            table.names = TL_NEW_ARRAY(arena, const char *, table.count);
    }
    return table;
}

static void print_arg(const tl_arg *arg, const name_table *names, tl_text *out)
{
    switch (arg->kind) {
    case TL_ARG_LOOP:
        tl_text_add(out, arg->loop.id < 1 ? "_" : names->names[arg->loop.id - 1]);
        break;
    case TL_ARG_BLOCK:
    case TL_ARG_WORD:
    case TL_ARG_MAP:
        tl_text_add(out, arg->word ? arg->word : "_");
        break;
    case TL_ARG_INT:
        if (arg->word)
            tl_text_add(out, arg->word);
        else
            tl_text_format(out, "%lld", (long long)arg->value);
        break;
    case TL_ARG_FACTORS:
        if (arg->word) {
            tl_text_add(out, arg->word);
            break;
        }
        tl_text_add(out, "[");
        for (int i = 0; i < arg->count; i++) {
            tl_text_add(out, i ? ", " : "");
            if (arg->factors[i] == 0)
                tl_text_add(out, "_");
            else
                tl_text_format(out, "%lld", (long long)arg->factors[i]);
        }
        tl_text_add(out, "]");
        break;
    }
}

static void print_step(const tl_step *step, const name_table *names, tl_text *out)
{
    for (int i = 0; i < step->out_count; i++) {
        tl_text_add(out, i ? ", " : "");
        print_arg(&step->outs[i], names, out);
    }
    tl_text_format(out, "%s%s(", step->out_count ? " = " : "", tl_prim_infos[step->prim].name);
    for (int i = 0; i < step->arg_count; i++) {
        tl_text_add(out, i ? ", " : "");
        print_arg(&step->args[i], names, out);
    }
    tl_text_add(out, ")");
}

void tl_trace_print(const tl_trace *trace, tl_text *out)
{
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(scratch);
        out->failed = true;
        return;
    }
    name_table names = make_names(scratch, trace);
    if (trace->lowering)
        tl_text_format(out, "lowering(%s)\n", trace->lowering);
    for (int i = 0; i < trace->count; i++) {
        print_step(&trace->steps[i], &names, out);
        tl_text_add(out, "\n");
    }
    tl_arena_destroy(scratch);
}

const char *tl_trace_text(tl_arena *arena, const tl_trace *trace)
{
    tl_text text = { 0 };
    tl_trace_print(trace, &text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

const char *tl_step_text(tl_arena *arena, const tl_trace *trace, const tl_step *step)
{
    name_table names = make_names(arena, trace);
    tl_text text = { 0 };
    print_step(step, &names, &text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

/* Replaying. */

tl_replay *tl_replay_start(const tl_trace *trace, tl_schedule *s)
{
    tl_arena *arena = s->arena;
    if (trace->lowering && s->trace.lowering == NULL)
        s->trace.lowering = tl_arena_strdup(arena, trace->lowering);
    int numbers = 0, blocks = 0, values = 0;
    for (int i = 0; i < trace->count; i++) {
        const tl_step *step = &trace->steps[i];
        for (int k = 0; k < step->out_count; k++) {
            if (step->outs[k].kind == TL_ARG_BLOCK)
                blocks++;
            else if (step->outs[k].kind != TL_ARG_LOOP)
                values++;
            else if (step->outs[k].loop.id > numbers)
                numbers = step->outs[k].loop.id;
        }
        for (int k = 0; k < step->arg_count; k++)
            if (step->args[k].kind == TL_ARG_LOOP && step->args[k].loop.id > numbers)
                numbers = step->args[k].loop.id;
    }
    tl_replay *r = TL_NEW(arena, tl_replay);
    *r = (tl_replay){ .trace = trace,
                      .schedule = s,
                      .loops = TL_NEW_ARRAY(arena, tl_loop_ref, numbers),
                      .block_names = TL_NEW_ARRAY(arena, const char *, blocks),
                      .blocks = TL_NEW_ARRAY(arena, tl_block_ref, blocks),
                      .value_names = TL_NEW_ARRAY(arena, const char *, values),
                      .values = TL_NEW_ARRAY(arena, tl_arg, values) };
    return r;
}

static tl_status resolve_arg(const tl_replay *r, tl_schedule *s, tl_arg *arg, tl_diag *diag)
{
    if (arg->kind == TL_ARG_LOOP) {
        int32_t number = arg->loop.id;
        assert(number >= 0);
        arg->loop = number > 0 ? r->loops[number - 1] : (tl_loop_ref){ 0 };
        if (arg->loop.id == 0)
            return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "no step before gave the loop %s",
                           arg->word ? arg->word : "_");
    } else if (arg->kind == TL_ARG_BLOCK) {
        for (int i = r->block_count - 1; i >= 0; i--) {
            if (strcmp(r->block_names[i], arg->word) == 0) {
                arg->block = r->blocks[i];
                return TL_OK;
            }
        }
        return tl_schedule_block(s, arg->word, &arg->block, diag);
    } else if ((arg->kind == TL_ARG_FACTORS || arg->kind == TL_ARG_INT) && arg->word) {
        for (int i = r->value_count - 1; i >= 0; i--) {
            if (strcmp(r->value_names[i], arg->word) == 0 && r->values[i].kind == arg->kind) {
                *arg = r->values[i];
                return TL_OK;
            }
        }
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "no step before gave %s", arg->word);
    }
    return TL_OK;
}

/* The trace names more or fewer results than there are: these. */
static tl_status refuse_count(const tl_schedule *s, const tl_step *step, const tl_arg *outs,
                              int out_count, tl_diag *diag)
{
    const char *name = tl_prim_infos[step->prim].name, *names = "";
    for (int i = 0; i < out_count && diag != NULL; i++)
        if (outs[i].kind == TL_ARG_LOOP)
            names = tl_arena_format(s->arena, "%s%s%s", names, i ? ", " : ": ",
                                    s->loops[outs[i].loop.id - 1]->name);
    return tl_fail(diag, TL_ILLEGAL_SCHEDULE,
                   "%s gives %d results here and the trace names %d%.500s", name, out_count,
                   step->out_count, names);
}

tl_status tl_replay_step(tl_replay *r, tl_schedule *s, const tl_step *step, tl_diag *diag)
{
    tl_arg args[TL_MAX_ARGS], outs[TL_MAX_ARGS];
    int out_count;
    if (step->arg_count > TL_MAX_ARGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%d arguments are more than %d", step->arg_count,
                       TL_MAX_ARGS);
    for (int i = 0; i < step->arg_count; i++) {
        args[i] = step->args[i];
        TL_TRY(resolve_arg(r, s, &args[i], diag));
    }
    TL_TRY(tl_schedule_apply(s, step->prim, args, step->arg_count, outs, &out_count, diag));

    if (step->out_count && step->out_count != out_count)
        return refuse_count(s, step, outs, out_count, diag);
    for (int i = 0; i < step->out_count; i++) {
        const tl_arg *name = &step->outs[i];
        if (name->kind == TL_ARG_LOOP && name->loop.id > 0) {
            r->loops[name->loop.id - 1] = outs[i].loop;
        } else if (name->kind == TL_ARG_BLOCK && name->word) {
            r->block_names[r->block_count] = name->word;
            r->blocks[r->block_count++] = outs[i].block;
        } else if ((name->kind == TL_ARG_FACTORS || name->kind == TL_ARG_INT) && name->word) {
            r->value_names[r->value_count] = name->word;
            r->values[r->value_count++] = outs[i];
        }
    }
    return TL_OK;
}

tl_status tl_replay_to(tl_replay *r, int step_count, tl_diag *diag)
{
    assert(r->done >= 0 && r->done <= r->trace->count);
    for (; r->done < step_count && r->done < r->trace->count; r->done++) {
        const tl_step *step = &r->trace->steps[r->done];
        tl_status status = tl_replay_step(r, r->schedule, step, diag);
        if (status == TL_OK)
            continue;
        if (diag) {
            const char *text = tl_step_text(r->schedule->arena, r->trace, step);
            tl_context(diag, "trace step %d: %.400s", r->done + 1, text);
        }
        return status;
    }
    return TL_OK;
}

tl_loop_ref tl_replay_loop(const tl_replay *r, const char *name)
{
    for (int i = r->done - 1; i >= 0; i--) {
        const tl_step *step = &r->trace->steps[i];
        for (int k = 0; k < step->out_count; k++) {
            const tl_arg *arg = &step->outs[k];
            if (arg->kind == TL_ARG_LOOP && arg->loop.id > 0 && strcmp(arg->word, name) == 0)
                return r->loops[arg->loop.id - 1];
        }
    }
    return (tl_loop_ref){ 0 };
}

const char *tl_replay_name(const tl_replay *r, const tl_var *var)
{
    for (int i = r->done - 1; i >= 0; i--) {
        const tl_step *step = &r->trace->steps[i];
        for (int k = 0; k < step->out_count; k++) {
            const tl_arg *arg = &step->outs[k];
            if (arg->kind != TL_ARG_LOOP || arg->loop.id < 1 || strcmp(arg->word, "_") == 0)
                continue;
            tl_loop_ref ref = r->loops[arg->loop.id - 1];
            if (ref.id > 0 && r->schedule->loops[ref.id - 1] == var)
                return arg->word;
        }
    }
    return NULL;
}

tl_status tl_trace_apply(const tl_trace *trace, tl_schedule *s, tl_diag *diag)
{
    return tl_replay_to(tl_replay_start(trace, s), trace->count, diag);
}
