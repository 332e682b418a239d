/* schedule/step_arguments.c: tries a primitive on copies of a schedule, with arguments made from its letters. */
#include "schedule/step_arguments.h"
#include <assert.h>
#include <string.h>
#include "schedule/analysis.h"

const char *tl_step_loop_name(const tl_step_trials *q, const tl_var *var)
{
    const char *name = q->replay != NULL ? tl_replay_name(q->replay, var) : NULL;
    return name != NULL ? name : var->name;
}

/* What there is to take as an argument. */

static void add_block(tl_step_trials *q, const tl_block *block)
{
    for (int i = 0; i < q->block_count; i++)
        if (q->blocks[i] == block)
            return;
    if (q->block_count < TL_STEP_BLOCKS)
        q->blocks[q->block_count++] = block;
}

static void add_buffer(tl_step_trials *q, const tl_buffer *buffer)
{
    for (int i = 0; i < q->buffer_count; i++)
        if (q->buffers[i] == buffer)
            return;
    if (q->buffer_count < TL_STEP_BUFFERS)
        q->buffers[q->buffer_count++] = buffer;
}

static bool collect(const tl_stmt *stmt, void *context)
{
    tl_step_trials *q = context;
    const tl_region *regions;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    add_block(q, stmt->u.block);
    int count = tl_block_reads(q->schedule->arena, stmt->u.block, &regions);
    for (int i = 0; i < count; i++)
        add_buffer(q, regions[i].buffer);
    return true;
}

/* The loops next to this one, with nothing else between. */
static void find_neighbours(tl_step_trials *q)
{
    tl_path path = tl_schedule_path_to_loop(q->schedule, q->loop->u.loop.var);
    assert(path.count > 0 && path.stmts[path.count - 1] == q->loop);
    for (int i = path.count - 2; i >= 0 && q->outside == NULL; i--)
        if (path.stmts[i]->kind == TL_STMT_LOOP)
            q->outside = path.stmts[i];
    const tl_stmt *body = q->loop->u.loop.body;
    while (body->kind == TL_STMT_ALLOC)
        body = body->u.alloc.body;
    if (body->kind == TL_STMT_LOOP)
        q->inside = body;
}

/* Trying. */

static tl_schedule *copy_schedule(const tl_schedule *s)
{
    assert(s->loop_count >= 0 && s->block_count >= 0 && s->trace.count >= 0);
    tl_schedule *copy = TL_NEW(s->arena, tl_schedule);
    *copy = *s;
    copy->loop_capacity = copy->number_capacity = s->loop_count;
    copy->block_capacity = s->block_count;
    copy->trace.capacity = s->trace.count;
    copy->loops = TL_NEW_ARRAY(s->arena, const tl_var *, s->loop_count);
    copy->loop_numbers = TL_NEW_ARRAY(s->arena, int32_t, s->loop_count);
    copy->blocks = TL_NEW_ARRAY(s->arena, const char *, s->block_count);
    copy->trace.steps = TL_NEW_ARRAY(s->arena, tl_step, s->trace.count);
    for (int i = 0; i < s->loop_count; i++) {
        copy->loops[i] = s->loops[i];
        copy->loop_numbers[i] = s->loop_numbers[i];
    }
    for (int i = 0; i < s->block_count; i++)
        copy->blocks[i] = s->blocks[i];
    for (int i = 0; i < s->trace.count; i++)
        copy->trace.steps[i] = s->trace.steps[i];
    return copy;
}

static void try_call(tl_step_trials *q, const tl_step_choice *choices, int count)
{
    assert(count >= 0 && count <= TL_MAX_ARGS);
    if (q->trials++ >= TL_STEP_TRIALS)
        return;
    tl_schedule *copy = copy_schedule(q->schedule);
    tl_arg args[TL_MAX_ARGS], outs[TL_MAX_ARGS];
    tl_diag diag = { 0 };
    int out_count;
    for (int i = 0; i < count; i++) {
        args[i] = choices[i].arg;
        if (args[i].kind == TL_ARG_LOOP)
            args[i].loop = tl_schedule_name_loop(copy, choices[i].var);
        else if (args[i].kind == TL_ARG_BLOCK)
            args[i].block = tl_schedule_name_block(copy, args[i].word);
    }
    tl_status status =
        tl_schedule_apply(copy, (tl_prim)q->prim, args, count, outs, &out_count, &diag);
    q->legal += status == TL_OK;
    q->tried(q, choices, count, copy, status, diag.text);
}

static void print_choice(const tl_step_trials *q, const tl_step_choice *c, tl_text *out)
{
    switch (c->arg.kind) {
    case TL_ARG_LOOP:
        tl_text_add(out, tl_step_loop_name(q, c->var));
        break;
    case TL_ARG_INT:
        tl_text_format(out, "%lld", (long long)c->arg.value);
        break;
    case TL_ARG_FACTORS:
        for (int i = 0; i < c->arg.count; i++) {
            tl_text_add(out, i ? ", " : "[");
            if (c->arg.factors[i] == 0)
                tl_text_add(out, "_");
            else
                tl_text_format(out, "%lld", (long long)c->arg.factors[i]);
        }
        tl_text_add(out, "]");
        break;
    case TL_ARG_BLOCK:
    case TL_ARG_WORD:
    case TL_ARG_MAP:
        tl_text_add(out, c->arg.word);
        break;
    }
}

void tl_step_print(const tl_step_trials *q, const tl_step_choice *choices, int count, tl_text *out)
{
    tl_text_format(out, "%s(", tl_prim_infos[q->prim].name);
    for (int i = 0; i < count; i++) {
        tl_text_add(out, i ? ", " : "");
        print_choice(q, &choices[i], out);
    }
    tl_text_add(out, ")");
}

static int64_t small_divisor(const tl_stmt *loop)
{
    int64_t extent;
    if (tl_const_int(loop->u.loop.extent, &extent))
        for (int64_t d = 2; d <= 16; d++)
            if (extent % d == 0 && extent > d)
                return d;
    return 2;
}

static void try_letters(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count);

static void try_with(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count,
                     tl_step_choice c)
{
    choices[count] = c;
    try_letters(q, letter + 1, choices, count + 1);
}

/* One loop, or (L*) two neighbours. */
static void try_loops(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count)
{
    const tl_step_choice self = { { .kind = TL_ARG_LOOP }, q->loop->u.loop.var };
    if (letter[1] != '*') {
        try_with(q, letter, choices, count, self);
        return;
    }
    bool swapped = strcmp(tl_prim_infos[q->prim].out, "") == 0; /* a new order */
    for (int way = 0; way < 2; way++) {
        const tl_stmt *other = way == 0 ? q->inside : q->outside;
        if (other == NULL)
            continue;
        const tl_step_choice next = { { .kind = TL_ARG_LOOP }, other->u.loop.var };
        bool self_first = (way == 0) != swapped;
        choices[count] = self_first ? self : next;
        choices[count + 1] = self_first ? next : self;
        try_letters(q, letter + 2, choices, count + 2);
    }
}

static void try_factors(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count)
{
    bool tiles = count > 1;
    for (int f = 0; f < q->factor_count; f++) {
        tl_arg arg = { .kind = TL_ARG_FACTORS, .count = tiles ? count : 2 };
        int64_t *factors = TL_NEW_ARRAY(q->schedule->arena, int64_t, arg.count);
        int64_t inner = q->factors[f] > 0 ? q->factors[f] : small_divisor(q->loop);
        for (int i = 0; i < arg.count; i++)
            factors[i] = !tiles && i == 0 ? 0 : inner;
        arg.factors = factors;
        try_with(q, letter, choices, count, (tl_step_choice){ .arg = arg });
    }
}

/* What there may be: any word at all, or the kinds of loops of a GPU, the scopes, and the calls of tensorize. */
static void try_words(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count)
{
    int legal = q->legal;
    q->word_is_free = true;
    try_with(q, letter, choices, count,
             (tl_step_choice){ .arg = { .kind = TL_ARG_WORD, .word = "anything" } });
    q->word_is_free = false;
    if (q->legal > legal)
        return;
    for (int i = 0; i < TL_LOOP_KIND_COUNT; i++)
        if (tl_loop_kind_infos[i].gpu)
            try_with(q, letter, choices, count,
                     (tl_step_choice){
                         .arg = { .kind = TL_ARG_WORD, .word = tl_loop_kind_infos[i].text } });
    for (int i = 0; i < TL_SCOPE_COUNT; i++)
        try_with(q, letter, choices, count,
                 (tl_step_choice){ .arg = { .kind = TL_ARG_WORD, .word = tl_scope_texts[i] } });
    for (int i = 0; q->prim == TL_PRIM_tensorize && tl_tensor_call_name(i) != NULL; i++)
        try_with(q, letter, choices, count,
                 (tl_step_choice){
                     .arg = { .kind = TL_ARG_WORD, .word = tl_tensor_call_name(i) } });
}

/* Fills in one letter after the other, every value in turn, and tries what is complete. */
static void try_letters(tl_step_trials *q, const char *letter, tl_step_choice *choices, int count)
{
    if (q->trials >= TL_STEP_TRIALS || count + 2 > TL_MAX_ARGS)
        return;
    if (*letter != '\0' && letter[1] == '?') { /* what may be left out is */
        try_letters(q, letter + 2, choices, count);
        return;
    }
    switch (*letter) {
    case '\0':
        try_call(q, choices, count);
        break;
    case 'L':
        try_loops(q, letter, choices, count);
        break;
    case 'F':
        try_factors(q, letter, choices, count);
        break;
    case 'B':
        for (int i = 0; i < q->block_count; i++)
            try_with(q, letter, choices, count,
                     (tl_step_choice){
                         .arg = { .kind = TL_ARG_BLOCK, .word = q->blocks[i]->name } });
        break;
    case 'b':
        for (int i = 0; i < q->buffer_count; i++)
            try_with(q, letter, choices, count,
                     (tl_step_choice){
                         .arg = { .kind = TL_ARG_WORD, .word = q->buffers[i]->name } });
        break;
    case 's':
        try_words(q, letter, choices, count);
        break;
    case 'i':
        for (int i = 0; i < q->number_count; i++)
            try_with(q, letter, choices, count,
                     (tl_step_choice){ .arg = { .kind = TL_ARG_INT, .value = q->numbers[i] } });
        break;
    default: /* a map: nobody can guess one */
        break;
    }
}

/* ---- the door ---- */

void tl_step_trials_begin(tl_step_trials *q)
{
    q->outside = q->inside = NULL;
    q->block_count = q->buffer_count = 0;
    if (q->loop != NULL)
        tl_stmt_visit(q->loop, collect, q);
    tl_stmt_visit(q->schedule->program->body, collect, q);
    if (q->loop != NULL)
        find_neighbours(q);
}

void tl_step_trials_run(tl_step_trials *q, int prim)
{
    tl_step_choice choices[TL_MAX_ARGS];
    assert(prim >= 0 && prim < TL_PRIM_COUNT);
    q->prim = prim;
    q->trials = q->legal = 0;
    if (q->loop != NULL || strchr(tl_prim_infos[prim].in, 'L') == NULL)
        try_letters(q, tl_prim_infos[prim].in, choices, 0);
}
