/* schedule/legal_steps.c: tries every primitive that takes a loop on copies of a schedule, with arguments made from
 * the letters of primitives.def, so that a new primitive is explained without being named here. */
#include "schedule/legal_steps.h"
#include <assert.h>
#include <string.h>
#include "schedule/analysis.h"
#include "schedule/schedule_private.h"

enum { MAX_BLOCKS = 32, MAX_BUFFERS = 32, MAX_TRIALS = 128, MAX_SHOWN = 3 };

const char *tl_prim_name(int index)
{
    return index >= 0 && index < TL_PRIM_COUNT ? tl_prim_infos[index].name : NULL;
}

const char *tl_prim_arguments(int index)
{
    return index >= 0 && index < TL_PRIM_COUNT ? tl_prim_infos[index].in : NULL;
}

typedef struct {
    const tl_schedule *schedule;
    const tl_replay *replay;
    const tl_stmt *loop, *outside, *inside; /* the next loops of its nest, or NULL */
    int block_count, buffer_count;
    const tl_block *blocks[MAX_BLOCKS]; /* those under the loop first */
    const tl_buffer *buffers[MAX_BUFFERS];
    /* of the primitive that is tried */
    int prim, trials, legal;
    tl_text *allowed, *refused;
    bool has_refusal;
} question;

static const char *name_of(const question *q, const tl_var *var)
{
    const char *name = q->replay != NULL ? tl_replay_name(q->replay, var) : NULL;
    return name != NULL ? name : var->name;
}

/* What there is to take as an argument. */

static void add_block(question *q, const tl_block *block)
{
    for (int i = 0; i < q->block_count; i++)
        if (q->blocks[i] == block)
            return;
    if (q->block_count < MAX_BLOCKS)
        q->blocks[q->block_count++] = block;
}

static void add_buffer(question *q, const tl_buffer *buffer)
{
    for (int i = 0; i < q->buffer_count; i++)
        if (q->buffers[i] == buffer)
            return;
    if (q->buffer_count < MAX_BUFFERS)
        q->buffers[q->buffer_count++] = buffer;
}

static bool collect(const tl_stmt *stmt, void *context)
{
    question *q = context;
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
static void find_neighbours(question *q)
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

/* A loop or block stands in `word` until the copy has a handle for it. */
typedef struct {
    tl_arg arg;
    const tl_var *var;
} choice;

static void print_choice(const question *q, const choice *c, tl_text *out)
{
    switch (c->arg.kind) {
    case TL_ARG_LOOP:
        tl_text_add(out, name_of(q, c->var));
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

static void print_call(const question *q, const choice *choices, int count, tl_text *out)
{
    tl_text_format(out, "%s(", tl_prim_infos[q->prim].name);
    for (int i = 0; i < count; i++) {
        tl_text_add(out, i ? ", " : "");
        print_choice(q, &choices[i], out);
    }
    tl_text_add(out, ")");
}

static void try_call(question *q, const choice *choices, int count)
{
    assert(count >= 0 && count <= TL_MAX_ARGS);
    if (q->trials++ >= MAX_TRIALS)
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
    if (status == TL_OK && q->legal++ < MAX_SHOWN) {
        tl_text_add(q->allowed, "    ");
        print_call(q, choices, count, q->allowed);
        tl_text_add(q->allowed, "\n");
    } else if (status != TL_OK && !q->has_refusal) {
        q->has_refusal = true;
        tl_text_add(q->refused, "    ");
        print_call(q, choices, count, q->refused);
        tl_text_format(q->refused, "\n        %.*s\n", (int)strcspn(diag.text, "\n"), diag.text);
    }
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

static void try_letters(question *q, const char *letter, choice *choices, int count);

static void try_with(question *q, const char *letter, choice *choices, int count, choice c)
{
    choices[count] = c;
    try_letters(q, letter + 1, choices, count + 1);
}

/* One loop, or (L*) two neighbours. */
static void try_loops(question *q, const char *letter, choice *choices, int count)
{
    const choice self = { { .kind = TL_ARG_LOOP }, q->loop->u.loop.var };
    if (letter[1] != '*') {
        try_with(q, letter, choices, count, self);
        return;
    }
    bool swapped = strcmp(tl_prim_infos[q->prim].out, "") == 0; /* a new order */
    for (int way = 0; way < 2; way++) {
        const tl_stmt *other = way == 0 ? q->inside : q->outside;
        if (other == NULL)
            continue;
        const choice next = { { .kind = TL_ARG_LOOP }, other->u.loop.var };
        bool self_first = (way == 0) != swapped;
        choices[count] = self_first ? self : next;
        choices[count + 1] = self_first ? next : self;
        try_letters(q, letter + 2, choices, count + 2);
    }
}

static void try_factors(question *q, const char *letter, choice *choices, int count)
{
    bool tiles = count > 1;
    tl_arg arg = { .kind = TL_ARG_FACTORS, .count = tiles ? count : 2 };
    int64_t *factors = TL_NEW_ARRAY(q->schedule->arena, int64_t, arg.count);
    for (int i = 0; i < arg.count; i++)
        factors[i] = !tiles && i == 0 ? 0 : small_divisor(q->loop);
    arg.factors = factors;
    try_with(q, letter, choices, count, (choice){ .arg = arg });
}

static void try_words(question *q, const char *letter, choice *choices, int count)
{
    int legal = q->legal;
    bool refused = q->has_refusal;
    size_t told = q->refused->size;
    try_with(q, letter, choices, count,
             (choice){ .arg = { .kind = TL_ARG_WORD, .word = "anything" } });
    if (q->legal > legal) /* a word of the user's own */
        return;
    if (!refused && q->refused->size > told) { /* what it says of a wrong word is not the point */
        q->refused->size = told;
        q->refused->data[told] = '\0';
        q->has_refusal = false;
    }
    for (int i = 0; i < TL_LOOP_KIND_COUNT; i++)
        if (tl_loop_kind_infos[i].gpu)
            try_with(q, letter, choices, count,
                     (choice){
                         .arg = { .kind = TL_ARG_WORD, .word = tl_loop_kind_infos[i].text } });
    for (int i = 0; i < TL_SCOPE_COUNT; i++)
        try_with(q, letter, choices, count,
                 (choice){ .arg = { .kind = TL_ARG_WORD, .word = tl_scope_texts[i] } });
}

/* Fills in one letter after the other, every value in turn, and tries what is complete. */
static void try_letters(question *q, const char *letter, choice *choices, int count)
{
    if (q->trials >= MAX_TRIALS || count + 2 > TL_MAX_ARGS)
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
                     (choice){ .arg = { .kind = TL_ARG_BLOCK, .word = q->blocks[i]->name } });
        break;
    case 'b':
        for (int i = 0; i < q->buffer_count; i++)
            try_with(q, letter, choices, count,
                     (choice){ .arg = { .kind = TL_ARG_WORD, .word = q->buffers[i]->name } });
        break;
    case 's':
        try_words(q, letter, choices, count);
        break;
    case 'i':
        try_with(q, letter, choices, count, (choice){ .arg = { .kind = TL_ARG_INT, .value = 1 } });
        break;
    default: /* a map: nobody can guess one */
        break;
    }
}

/* What the loop is. */

static bool tell_block(const tl_stmt *stmt, void *context)
{
    question *q = context;
    tl_arena *arena = q->schedule->arena;
    static const char *const kinds[] = {
        [TL_ITER_SPATIAL] = "spatial", [TL_ITER_REDUCE] = "reduce", [TL_ITER_ORDERED] = "ordered"
    };
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *b = stmt->u.block;
    const tl_var *var = q->loop->u.loop.var;
    bool drives = false;
    for (int i = 0; i < b->iter_count; i++) {
        if (!tl_expr_uses_var(b->iters[i].binding, var))
            continue;
        drives = true;
        tl_text_format(q->allowed, "  drives the %s iter %s = %s of block %s\n",
                       kinds[b->iters[i].kind], b->iters[i].var->name,
                       tl_expr_text(arena, b->iters[i].binding), b->name);
    }
    if (!drives)
        tl_text_format(q->allowed, "  drives no iter of block %s: it repeats it\n", b->name);
    for (int s = 0; s < b->store_count; s++) {
        const tl_expr *accesses[16] = { NULL };
        int count = 1 + tl_collect_loads(b->stores[s].value, accesses + 1, 15);
        accesses[0] = tl_load(arena, b->stores[s].buffer, b->stores[s].indices);
        tl_text_format(q->allowed, "  one iteration on, %s moves in", b->name);
        for (int i = 0; i < count; i++) {
            const tl_expr *bound = tl_block_bind(arena, b, accesses[i]);
            int64_t stride = tl_access_stride(arena, bound->u.buffer, bound->args, var);
            tl_text_format(q->allowed, "%s %s by ", i ? "," : "", bound->u.buffer->name);
            if (stride == TL_NOT_AFFINE)
                tl_text_add(q->allowed, "no constant");
            else
                tl_text_format(q->allowed, "%lld", (long long)stride);
        }
        tl_text_add(q->allowed, " elements\n");
    }
    return true;
}

static void tell_loop(question *q, tl_text *out)
{
    const tl_var *var = q->loop->u.loop.var;
    tl_path path = tl_schedule_path_to_loop(q->schedule, var);
    tl_text_format(out, "loop %s", name_of(q, var));
    if (strcmp(name_of(q, var), var->name) != 0)
        tl_text_format(out, " (%s in the program)", var->name);
    tl_text_format(out, ": %s, 0..%s", tl_loop_kind_infos[q->loop->u.loop.kind].text,
                   tl_expr_text(q->schedule->arena, q->loop->u.loop.extent));
    const char *before = ", inside of ";
    for (int i = 0; i < path.count - 1; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP) {
            tl_text_format(out, "%s%s", before, name_of(q, path.stmts[i]->u.loop.var));
            before = ", ";
        }
    tl_text_add(out, "\n");
    q->allowed = out;
    tl_stmt_visit(q->loop, tell_block, q);
}

void tl_schedule_why(const tl_schedule *s, const tl_replay *replay, const tl_stmt *loop,
                     tl_text *out)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_text allowed = { 0 }, refused = { 0 };
    question q = { .schedule = s, .replay = replay, .loop = loop };
    tl_stmt_visit(loop, collect, &q);
    tl_stmt_visit(s->program->body, collect, &q);
    find_neighbours(&q);
    tell_loop(&q, out);

    q.allowed = &allowed;
    for (q.prim = 0; q.prim < TL_PRIM_COUNT; q.prim++) {
        choice choices[TL_MAX_ARGS];
        tl_text why_not = { 0 };
        if (strchr(tl_prim_infos[q.prim].in, 'L') == NULL)
            continue;
        q.refused = &why_not;
        q.trials = q.legal = 0;
        q.has_refusal = false;
        try_letters(&q, tl_prim_infos[q.prim].in, choices, 0);
        if (q.legal > MAX_SHOWN)
            tl_text_format(&allowed, "    ... and %d more of %s\n", q.legal - MAX_SHOWN,
                           tl_prim_infos[q.prim].name);
        if (q.legal == 0)
            tl_text_add(&refused, tl_text_get(&why_not));
        tl_text_free(&why_not);
    }
    tl_text_format(out, "  legal, for example:\n%s",
                   allowed.size ? tl_text_get(&allowed) : "    nothing\n");
    if (refused.size > 0)
        tl_text_format(out, "  refused:\n%s", tl_text_get(&refused));
    tl_text_free(&allowed);
    tl_text_free(&refused);
}
