/* schedule/schedule.c: the state of a schedule, its handles, and the one door through which every
 * primitive goes: check the arguments by the letters of primitives.def, rewrite, verify, record. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "schedule/barriers.h"
#include "schedule/schedule_private.h"

const tl_prim_info tl_prim_infos[TL_PRIM_COUNT] = {
#define PRIMITIVE(name, in, out) [TL_PRIM_##name] = { #name, in, out, tl_apply_##name },
#include "schedule/primitives.def"
#undef PRIMITIVE
};

tl_schedule *tl_schedule_create(tl_arena *arena, const tl_program *program, const tl_target *target,
                                bool verify)
{
    assert(program != NULL && program->body != NULL);
    tl_schedule *s = TL_NEW(arena, tl_schedule);
    s->arena = arena;
    s->program = program;
    s->target = target;
    s->verify = verify;
    s->random = tl_random_make(1);
    return s;
}

const tl_program *tl_schedule_program(const tl_schedule *s)
{
    return s->program;
}

tl_arena *tl_schedule_arena(const tl_schedule *s)
{
    return s->arena;
}

const tl_trace *tl_schedule_trace(const tl_schedule *s)
{
    return &s->trace;
}

void tl_schedule_seed(tl_schedule *s, uint64_t seed)
{
    s->random = tl_random_make(seed);
}

void tl_schedule_decide(tl_schedule *s, tl_arg decision)
{
    s->decision = decision;
    s->has_decided = true;
}

const char *tl_schedule_name_value(tl_schedule *s)
{
    return tl_arena_format(s->arena, "v%d", (int)++s->values);
}

/* Handles. */

tl_loop_ref tl_schedule_name_loop(tl_schedule *s, const tl_var *var)
{
    assert(var != NULL);
    for (int i = 0; i < s->loop_count; i++)
        if (s->loops[i] == var)
            return (tl_loop_ref){ i + 1 };
    TL_ROOM(s->arena, s->loops, s->loop_count, s->loop_capacity);
    TL_ROOM(s->arena, s->loop_numbers, s->loop_count, s->number_capacity);
    s->loops[s->loop_count] = var;
    s->loop_numbers[s->loop_count] = 0;
    return (tl_loop_ref){ ++s->loop_count };
}

void tl_schedule_rename_loop(tl_schedule *s, const tl_var *from, const tl_var *to)
{
    assert(from != NULL && to != NULL && from != to);
    for (int i = 0; i < s->loop_count; i++)
        if (s->loops[i] == from)
            s->loops[i] = to;
}

tl_block_ref tl_schedule_name_block(tl_schedule *s, const char *name)
{
    assert(name != NULL);
    for (int i = 0; i < s->block_count; i++)
        if (strcmp(s->blocks[i], name) == 0)
            return (tl_block_ref){ i + 1 };
    TL_ROOM(s->arena, s->blocks, s->block_count, s->block_capacity);
    s->blocks[s->block_count] = tl_arena_strdup(s->arena, name);
    return (tl_block_ref){ ++s->block_count };
}

static bool add_block_name(const tl_stmt *stmt, void *context)
{
    tl_text *text = context;
    if (stmt->kind == TL_STMT_BLOCK)
        tl_text_format(text, "%s%s", text->size ? ", " : "", stmt->u.block->name);
    return true;
}

/* "there is no block X in kernel K; its blocks: ..." */
static tl_status no_such_block(const tl_schedule *s, const char *name, tl_diag *diag)
{
    if (diag == NULL)
        return TL_ILLEGAL_SCHEDULE;
    tl_text names = { 0 };
    tl_stmt_visit(s->program->body, add_block_name, &names);
    if (s->program->prepare)
        tl_stmt_visit(s->program->prepare, add_block_name, &names);
    tl_fail(diag, TL_ILLEGAL_SCHEDULE, "there is no block %s in kernel %s; its blocks: %.600s",
            name, s->program->name, tl_text_get(&names));
    tl_text_free(&names);
    return TL_ILLEGAL_SCHEDULE;
}

tl_status tl_schedule_block(tl_schedule *s, const char *name, tl_block_ref *out, tl_diag *diag)
{
    if (tl_program_find_block(s->program, name) == NULL)
        return no_such_block(s, name, diag);
    *out = tl_schedule_name_block(s, name);
    return TL_OK;
}

const tl_block *tl_schedule_get_block(const tl_schedule *s, tl_block_ref ref)
{
    if (ref.id < 1 || ref.id > s->block_count)
        return NULL;
    return tl_program_find_block(s->program, s->blocks[ref.id - 1]);
}

const tl_stmt *tl_schedule_get_loop(const tl_schedule *s, tl_loop_ref ref)
{
    if (ref.id < 1 || ref.id > s->loop_count)
        return NULL;
    return tl_program_find_loop(s->program, s->loops[ref.id - 1]);
}

tl_status tl_need_loop(tl_schedule *s, const char *prim, tl_loop_ref ref, const tl_stmt **out,
                       tl_diag *diag)
{
    *out = tl_schedule_get_loop(s, ref);
    if (*out)
        return TL_OK;
    if (ref.id < 1 || ref.id > s->loop_count)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "%s: there is no loop handle %d", prim, ref.id);
    return tl_refuse(
        diag, prim, s->loops[ref.id - 1]->name,
        "the loop is gone: an earlier step split, fused, unwound or moved it away; take "
        "the loops that the step gave, or loops(BLOCK) again");
}

tl_status tl_need_block(tl_schedule *s, const char *prim, tl_block_ref ref, const tl_block **out,
                        tl_diag *diag)
{
    *out = tl_schedule_get_block(s, ref);
    if (*out)
        return TL_OK;
    if (ref.id < 1 || ref.id > s->block_count)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "%s: there is no block handle %d", prim, ref.id);
    tl_status status = no_such_block(s, s->blocks[ref.id - 1], diag);
    tl_context(diag, "%s", prim);
    return status;
}

tl_status tl_refuse(tl_diag *diag, const char *prim, const char *subject, const char *format, ...)
{
    if (diag == NULL)
        return TL_ILLEGAL_SCHEDULE;
    char sentence[1600];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return tl_fail(diag, TL_ILLEGAL_SCHEDULE, "%s %s: %s", prim, subject, sentence);
}

/* Programs. */

void tl_schedule_set_program(tl_schedule *s, const tl_program *program)
{
    s->program = program;
}

void tl_schedule_set_body(tl_schedule *s, const tl_stmt *body)
{
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    program->body = body;
    s->program = program;
}

void tl_schedule_replace(tl_schedule *s, const tl_path *path, const tl_stmt *with)
{
    assert(path->count > 0);
    assert(path->stmts[0] == s->program->body || path->stmts[0] == s->program->prepare);
    const tl_stmt *root = tl_path_replace(s->arena, path, with);
    if (path->stmts[0] == s->program->body) {
        tl_schedule_set_body(s, root);
        return;
    }
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    program->prepare = root;
    s->program = program;
}

tl_path tl_schedule_path_to_loop(const tl_schedule *s, const tl_var *var)
{
    tl_path path = tl_path_to_loop(s->arena, s->program->body, var);
    if (path.count == 0 && s->program->prepare)
        path = tl_path_to_loop(s->arena, s->program->prepare, var);
    return path;
}

tl_path tl_schedule_path_to_block(const tl_schedule *s, const char *name)
{
    tl_path path = tl_path_to_block(s->arena, s->program->body, name);
    if (path.count == 0 && s->program->prepare)
        path = tl_path_to_block(s->arena, s->program->prepare, name);
    return path;
}

const char *tl_fresh_block_name(tl_schedule *s, const char *base)
{
    const char *name = base;
    for (int i = 1; tl_program_find_block(s->program, name); i++)
        name = tl_arena_format(s->arena, "%s_%d", base, i);
    return name;
}

const char *tl_fresh_buffer_name(tl_schedule *s, const char *base)
{
    const char *name = base;
    for (int i = 1; tl_program_find_buffer(s->program, name); i++)
        name = tl_arena_format(s->arena, "%s_%d", base, i);
    return name;
}

/* Fused loops have both names, so that they would double with each step; a text has names of 200 characters at most, of which
 * the printer takes some to make them unique. */
enum { LONGEST_NAME = 100 };

tl_var *tl_var_derive(tl_arena *arena, const tl_var *from, const char *suffix,
                      const tl_expr *extent)
{
    assert(extent->dtype == TL_I64);
    tl_range range = tl_expr_range(extent);
    int64_t max = range.max == INT64_MAX ? INT64_MAX : tl_max64(range.max - 1, 0);
    const char *name = from->name;
    if (*suffix)
        name = tl_arena_format(arena, "%.*s%.*s", LONGEST_NAME, name, LONGEST_NAME, suffix);
    if (strlen(name) > LONGEST_NAME)
        name = tl_arena_strndup(arena, name, LONGEST_NAME);
    return tl_var_make(arena, name, 0, max);
}

/* The one door. */

static const char *const letter_words[] = {
    ['L'] = "a loop", ['B'] = "a block", ['b'] = "a buffer's name",   ['i'] = "an integer",
    ['s'] = "a word", ['M'] = "a map",   ['F'] = "a list of factors",
};
static const char *const kind_words[] = {
    [TL_ARG_LOOP] = "a loop",
    [TL_ARG_BLOCK] = "a block",
    [TL_ARG_INT] = "an integer",
    [TL_ARG_WORD] = "a word",
    [TL_ARG_FACTORS] = "a list of factors",
    [TL_ARG_MAP] = "a map",
};

static bool letter_takes(char letter, const tl_arg *arg)
{
    switch (arg->kind) {
    case TL_ARG_LOOP:
        return letter == 'L';
    case TL_ARG_BLOCK:
        return letter == 'B';
    case TL_ARG_INT:
        return letter == 'i';
    case TL_ARG_WORD:
        return (letter == 'b' || letter == 's') && arg->word != NULL;
    case TL_ARG_FACTORS:
        return letter == 'F' && arg->count > 0;
    case TL_ARG_MAP:
        return letter == 'M' && arg->word != NULL;
    }
    return false;
}

static tl_status check_args(const tl_prim_info *info, const tl_arg *args, int arg_count,
                            tl_diag *diag)
{
    int a = 0;
    for (const char *in = info->in; *in; in++) {
        bool many = in[1] == '*', optional = in[1] == '?';
        if (a == arg_count) {
            if (!optional)
                return tl_fail(diag, TL_BAD_ARGUMENT, "%s: argument %d, %s, is missing", info->name,
                               a + 1, letter_words[(unsigned char)*in]);
        } else if (letter_takes(*in, &args[a])) {
            a++;
            while (many && a < arg_count && letter_takes(*in, &args[a]))
                a++;
        } else if (!optional) {
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: argument %d must be %s and is %s",
                           info->name, a + 1, letter_words[(unsigned char)*in],
                           kind_words[args[a].kind]);
        }
        in += many || optional;
    }
    if (a < arg_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: takes %d arguments here and got %d", info->name,
                       a, arg_count);
    return TL_OK;
}

static tl_status check_handles(const tl_schedule *s, const char *prim, const tl_arg *args,
                               int count, tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        int32_t loop = args[i].loop.id, block = args[i].block.id;
        if (args[i].kind == TL_ARG_LOOP && (loop < 1 || loop > s->loop_count))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no loop handle %d", prim, loop);
        if (args[i].kind == TL_ARG_BLOCK && (block < 1 || block > s->block_count))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no block handle %d", prim, block);
    }
    return TL_OK;
}

tl_schedule_state tl_schedule_save(tl_schedule *s)
{
    tl_schedule_state saved = { .program = s->program,
                                .loop_count = s->loop_count,
                                .block_count = s->block_count,
                                .step_count = s->trace.count,
                                .numbers = s->numbers,
                                .values = s->values };
    if (s->loop_count)
        saved.loops = tl_arena_copy(s->arena, s->loops, sizeof *s->loops * (size_t)s->loop_count,
                                    _Alignof(const tl_var *));
    return saved;
}

void tl_schedule_restore(tl_schedule *s, const tl_schedule_state *saved)
{
    assert(saved->loop_count <= s->loop_count && saved->block_count <= s->block_count);
    assert(saved->step_count <= s->trace.count && saved->numbers <= s->numbers);
    s->program = saved->program;
    s->loop_count = saved->loop_count;
    s->block_count = saved->block_count;
    s->trace.count = saved->step_count;
    s->numbers = saved->numbers;
    s->values = saved->values;
    for (int i = 0; i < saved->loop_count; i++) {
        s->loops[i] = saved->loops[i];
        if (s->loop_numbers[i] > saved->numbers)
            s->loop_numbers[i] = 0;
    }
}

/* Allocs as the text has them: over all that follows. */
static void extend_allocs(tl_schedule *s)
{
    const tl_stmt *body = tl_extend_allocs(s->arena, s->program->body), *prepare = NULL;
    if (s->program->prepare)
        prepare = tl_extend_allocs(s->arena, s->program->prepare);
    if (body == s->program->body && prepare == s->program->prepare)
        return;
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    program->body = body;
    program->prepare = prepare;
    s->program = program;
}

tl_status tl_schedule_apply(tl_schedule *s, tl_prim prim, const tl_arg *args, int arg_count,
                            tl_arg *out, int *out_count, tl_diag *diag)
{
    assert((unsigned)prim < TL_PRIM_COUNT);
    const tl_prim_info *info = &tl_prim_infos[prim];
    if (arg_count > TL_MAX_ARGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d arguments are more than %d", info->name,
                       arg_count, TL_MAX_ARGS);
    TL_TRY(check_args(info, args, arg_count, diag));

    TL_TRY(check_handles(s, info->name, args, arg_count, diag));

    tl_schedule_state before = tl_schedule_save(s);
    s->has_decided = false;
    *out_count = 0;
    tl_status status = tl_schedule_introduce(s, info->name, args, arg_count, diag);
    if (status == TL_OK)
        status = info->apply(s, args, arg_count, out, out_count, diag);
    if (status == TL_OK && s->program != before.program)
        status = tl_check_expression_sizes(s, info->name, diag);
    bool moves_blocks = strpbrk(info->in, "Bb") != NULL && s->program != before.program;
    if (status == TL_OK && moves_blocks)
        extend_allocs(s);
    if (status == TL_OK && moves_blocks)
        status = tl_check_parallel_loops(s, before.program, info->name, diag);
    if (status == TL_OK && s->program != before.program)
        status = tl_check_barriers(s->arena, info->name, s->program->body, diag);
    if (status == TL_OK && s->verify && s->program != before.program) {
        status = tl_program_verify(s->program, diag);
        if (status != TL_OK)
            tl_context(diag, "the program after %s", info->name);
    }
    if (status != TL_OK) {
        tl_schedule_restore(s, &before);
        *out_count = 0;
        return status;
    }
    tl_arg decided[TL_MAX_ARGS];
    if (s->has_decided && arg_count < TL_MAX_ARGS) {
        memcpy(decided, args, sizeof *args * (size_t)arg_count);
        decided[arg_count++] = s->decision;
        args = decided;
    }
    tl_schedule_record(s, prim, args, arg_count, out, *out_count);
    return TL_OK;
}
