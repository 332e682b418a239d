/* tests/support/random_schedule.c: a primitive, its arguments by the letters of primitives.def, what makes sense next. */
#include "tests/support/random_schedule.h"
#include <string.h>
#include "schedule/schedule_private.h"

enum { MAX_LOOPS = 96, MAX_BLOCKS = 48, MAX_BUFFERS = 64 };

const char *const random_prim_names[TL_PRIM_COUNT] = {
#define PRIMITIVE(name, in, out) #name,
#include "schedule/primitives.def"
#undef PRIMITIVE
};

/* What a random argument is taken from. */
typedef struct {
    tl_schedule *schedule;
    int loop_count, block_count, buffer_count;
    tl_loop_ref loops[MAX_LOOPS];
    const tl_block *blocks[MAX_BLOCKS];
    const tl_buffer *buffers[MAX_BUFFERS];
} choices;

static int64_t below(random_steps *r, int64_t n)
{
    return tl_random_below(r->random, n);
}

static bool collect(const tl_stmt *stmt, void *context)
{
    choices *c = context;
    if (stmt->kind == TL_STMT_LOOP && c->loop_count < MAX_LOOPS)
        c->loops[c->loop_count++] = tl_schedule_name_loop(c->schedule, stmt->u.loop.var);
    if (stmt->kind == TL_STMT_BLOCK && c->block_count < MAX_BLOCKS)
        c->blocks[c->block_count++] = stmt->u.block;
    if (stmt->kind == TL_STMT_ALLOC && c->buffer_count < MAX_BUFFERS)
        c->buffers[c->buffer_count++] = stmt->u.alloc.buffer;
    return true;
}

static choices collect_choices(tl_schedule *s)
{
    choices c = { .schedule = s };
    const tl_program *program = tl_schedule_program(s);
    tl_stmt_visit(program->body, collect, &c);
    if (program->prepare)
        tl_stmt_visit(program->prepare, collect, &c);
    for (int i = 0; i < program->param_count && c.buffer_count < MAX_BUFFERS; i++)
        c.buffers[c.buffer_count++] = program->params[i];
    return c;
}

/* The loops around a block, outermost first. */
static int nest_of(random_steps *r, const tl_block *block, tl_loop_ref *out)
{
    const tl_schedule *s = r->schedule;
    tl_path path = tl_schedule_path_to_block(s, block->name);
    int count = 0;
    for (int i = 0; i < path.count && count < TL_MAX_ARGS; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP)
            out[count++] = tl_schedule_name_loop(r->schedule, path.stmts[i]->u.loop.var);
    return count;
}

static const tl_block *random_block(random_steps *r, const choices *from)
{
    return from->blocks[below(r, from->block_count)];
}

static const char *random_map(random_steps *r, int rank)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    tl_arena *arena = tl_schedule_arena(r->schedule);
    const char *left = "", *right = "";
    int order[6] = { 0, 1, 2, 3, 4, 5 };
    if (rank > 6)
        rank = 6;
    for (int i = rank - 1; i > 0; i--) {
        int k = (int)below(r, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    int split = (int)below(r, rank + 1);
    int factor = 2 + (int)below(r, 4);
    for (int i = 0; i < rank; i++) {
        const char *comma = i ? ", " : "", *name = names[order[i]];
        left = tl_arena_format(arena, "%s%s%s", left, comma, names[i]);
        if (i == split)
            right = tl_arena_format(arena, "%s%s%s//%d, %s%%%d", right, comma, name, factor, name,
                                    factor);
        else
            right = tl_arena_format(arena, "%s%s%s", right, comma, name);
    }
    return tl_arena_format(arena, "(%s) -> (%s)", left, right);
}

static tl_arg random_factors(random_steps *r)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 8, 16 };
    int count = 1 + (int)below(r, 3);
    int64_t *factors = TL_NEW_ARRAY(tl_schedule_arena(r->schedule), int64_t, count);
    for (int i = 0; i < count; i++)
        factors[i] = sizes[below(r, 7)];
    factors[below(r, count)] = 0;
    return (tl_arg){ .kind = TL_ARG_FACTORS, .count = count, .factors = factors };
}

static tl_arg block_arg(random_steps *r, const tl_block *block)
{
    return (tl_arg){ .kind = TL_ARG_BLOCK,
                     .block = tl_schedule_name_block(r->schedule, block->name) };
}

static tl_arg loop_arg(tl_loop_ref loop)
{
    return (tl_arg){ .kind = TL_ARG_LOOP, .loop = loop };
}

static tl_arg random_arg(random_steps *r, const choices *from, char letter)
{
    static const char *const scopes[] = { "global", "stack", "register", "global",
                                          "stack",  "stack", "global",   "shared" };
    const tl_buffer *buffer =
        from->buffer_count ? from->buffers[below(r, from->buffer_count)] : NULL;
    switch (letter) {
    case 'L':
        return loop_arg(from->loops[below(r, from->loop_count)]);
    case 'B':
        return block_arg(r, random_block(r, from));
    case 'b':
        return (tl_arg){ .kind = TL_ARG_WORD, .word = buffer ? buffer->name : "none" };
    case 's':
        return (tl_arg){ .kind = TL_ARG_WORD, .word = scopes[below(r, r->may_bind ? 8 : 7)] };
    case 'i':
        return (tl_arg){ .kind = TL_ARG_INT, .value = 1 + below(r, 2) };
    case 'F':
        return random_factors(r);
    default:
        return (tl_arg){ .kind = TL_ARG_MAP, .word = random_map(r, buffer ? buffer->rank : 1) };
    }
}

static tl_arg random_int(random_steps *r, int64_t least, int64_t most)
{
    return (tl_arg){ .kind = TL_ARG_INT, .value = least + below(r, most - least + 1) };
}

/* Sizes of tiles, one a loop. */
static tl_arg tile_sizes(random_steps *r, int count)
{
    int64_t *sizes = TL_NEW_ARRAY(tl_schedule_arena(r->schedule), int64_t, count);
    for (int i = 0; i < count; i++)
        sizes[i] = 1 + below(r, 5);
    return (tl_arg){ .kind = TL_ARG_FACTORS, .count = count, .factors = sizes };
}

/* A block that writes what `block` reads, or reads what it writes; NULL: there is none. */
static const tl_block *neighbour(random_steps *r, const choices *from, const tl_block *block,
                                 bool is_reader)
{
    const tl_block *found[MAX_BLOCKS];
    int count = 0;
    for (int i = 0; i < from->block_count; i++) {
        const tl_block *other = from->blocks[i];
        const tl_block *writer = is_reader ? block : other, *reader = is_reader ? other : block;
        for (int k = 0; k < writer->store_count && other != block; k++) {
            if (tl_block_reads_buffer(reader, writer->stores[k].buffer)) {
                found[count++] = other;
                break;
            }
        }
    }
    return count ? found[below(r, count)] : NULL;
}

/* A loop where it may make sense: of the block's own nest, or of that of a block it gives to or takes from. */
static void fit_loop(random_steps *r, const choices *from, tl_prim prim, const tl_block *block,
                     tl_arg *loop)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    const tl_block *whose = block;
    if (prim == TL_PRIM_compute_at || prim == TL_PRIM_reverse_compute_at)
        whose = neighbour(r, from, block, prim == TL_PRIM_compute_at);
    int count = whose ? nest_of(r, whose, nest) : 0;
    if (count > 0)
        *loop = loop_arg(nest[below(r, count)]);
}

/* Words and numbers that mean something to a primitive, in the place of any. */
static void fit_args(random_steps *r, const choices *from, tl_prim prim, tl_arg *args)
{
    static const char *const axes[] = { "blockIdx.x",  "blockIdx.y",  "threadIdx.x",
                                        "threadIdx.y", "threadIdx.z", "vthread" };
    static const char *const calls[] = { "dot_u8i8_i32x16", "dot_bf16_f32x16" };
    const char *in = tl_prim_infos[prim].in;
    tl_loop_ref nest[TL_MAX_ARGS];
    if (in[0] == 'B' && in[1] == 'L' && below(r, 4) > 0)
        fit_loop(r, from, prim, tl_schedule_get_block(r->schedule, args[0].block), &args[1]);
    if (prim == TL_PRIM_bind)
        args[1].word = axes[below(r, 6)];
    if (prim == TL_PRIM_storage_align) {
        args[1] = random_int(r, 0, 2);
        args[2] = random_int(r, 1, 8);
        args[3] = random_int(r, 0, 2);
    }
    if (prim == TL_PRIM_sample_perfect_tile) {
        args[1] = random_int(r, 1, 3);
        args[2] = random_int(r, 4, 16);
    }
    if (prim == TL_PRIM_sample_categorical) {
        args[0] = tile_sizes(r, 3);
        args[1] = tile_sizes(r, 3);
    }
    if (prim == TL_PRIM_tensorize) {
        int size = nest_of(r, random_block(r, from), nest);
        if (size >= 2)
            args[0].loop = nest[size - 2];
        args[1].word = calls[below(r, 2)];
    }
    if (prim == TL_PRIM_pad) {
        const tl_block *block = tl_schedule_get_block(r->schedule, args[0].block);
        args[1] = tile_sizes(r, block->iter_count);
    }
    if ((prim == TL_PRIM_cache_read || prim == TL_PRIM_prefetch) && below(r, 4) > 0) {
        const tl_region *reads;
        int count = tl_block_reads(tl_schedule_arena(r->schedule),
                                   tl_schedule_get_block(r->schedule, args[0].block), &reads);
        if (count > 0)
            args[1].word = reads[below(r, count)].buffer->name;
    }
}

/* Loops of one nest. */
static int random_loops(random_steps *r, const choices *from, tl_prim prim, const char *letters,
                        tl_arg *args)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = 0, size = nest_of(r, random_block(r, from), nest);
    if (size == 0)
        return 0;
    int first = (int)below(r, size), last = first + 1 + (int)below(r, size - first);
    for (int i = first; i < last && count < TL_MAX_ARGS / 2; i++)
        args[count++] = loop_arg(nest[i]);
    for (int i = count - 1; prim == TL_PRIM_reorder && i > 0; i--) {
        int k = (int)below(r, i + 1);
        tl_arg t = args[i];
        args[i] = args[k];
        args[k] = t;
    }
    if (letters[2] == 'F') {
        args[count] = tile_sizes(r, count);
        count++;
    }
    return count;
}

/* Arguments by the letters of primitives.def. */
static int random_args(random_steps *r, const choices *from, tl_prim prim, tl_arg *args)
{
    const char *letters = tl_prim_infos[prim].in;
    int count = 0;
    if (strncmp(letters, "L*", 2) == 0)
        return random_loops(r, from, prim, letters, args);
    for (const char *at = letters; *at; at++) {
        if (*at == '?') /* a decision left open */
            count--;
        else
            args[count++] = random_arg(r, from, *at);
    }
    fit_args(r, from, prim, args);
    for (int i = 0; letters[i]; i++) /* the map fits the buffer */
        if (letters[i] == 'M' && i > 0)
            for (int b = 0; b < from->buffer_count; b++)
                if (strcmp(from->buffers[b]->name, args[i - 1].word) == 0)
                    args[i].word = random_map(r, from->buffers[b]->rank);
    return count;
}

static bool try_step_for(random_steps *r, tl_prim prim, const tl_arg *args, int count, tl_arg *out)
{
    int out_count;
    if (r->status != TL_OK)
        return false;
    tl_status status = tl_schedule_apply(r->schedule, prim, args, count, out, &out_count, &r->diag);
    r->tried[prim]++;
    r->applied[prim] += status == TL_OK;
    if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE) {
        r->status = status;
        if (tl_schedule_introduce(r->schedule, random_prim_names[prim], args, count, NULL) == TL_OK)
            tl_schedule_record(r->schedule, prim, args, count, NULL, 0);
    }
    return status == TL_OK;
}

static bool try_step(random_steps *r, tl_prim prim, const tl_arg *args, int count)
{
    tl_arg out[TL_MAX_ARGS];
    return try_step_for(r, prim, args, count, out);
}

/* Steps that only make sense after this one. */
static void follow_up(random_steps *r, tl_prim prim, const tl_arg *args, const tl_arg *out)
{
    if (prim == TL_PRIM_sample_perfect_tile) {
        tl_arg split[] = { args[0], out[0] };
        try_step(r, TL_PRIM_split, split, 2);
    }
    if (prim == TL_PRIM_sample_compute_location) {
        tl_arg at[] = { args[0], out[0] };
        try_step(r, TL_PRIM_compute_at, at, 2);
    }
    if (prim == TL_PRIM_bind) { /* so that the threads wait for each other, whatever else comes */
        try_step(r, TL_PRIM_place_barriers, NULL, 0);
        return;
    }
    if (prim != TL_PRIM_compute_at || below(r, 3) == 0)
        return;
    if (below(r, 2) == 0) {
        tl_arg stages[] = { args[1], random_int(r, 2, 4) };
        try_step(r, TL_PRIM_software_pipeline, stages, 2);
        return;
    }
    const tl_block *block = tl_schedule_get_block(r->schedule, args[0].block);
    if (block == NULL || block->store_count == 0)
        return;
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = block->stores[0].buffer->name }, args[1] };
    try_step(r, TL_PRIM_rolling_buffer, roll, 2);
}

/* Beginnings that random steps find too rarely: a producer under its consumer's loop, rolled or run ahead. */
static void begin(random_steps *r)
{
    choices from = collect_choices(r->schedule);
    const tl_block *writer = random_block(r, &from), *reader = neighbour(r, &from, writer, true);
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = reader ? nest_of(r, reader, nest) : 0;
    if (count == 0 || writer->store_count == 0 || below(r, 2) == 0)
        return;
    tl_arg loop = loop_arg(nest[below(r, count)]);
    tl_arg at[] = { block_arg(r, writer), loop };
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = writer->stores[0].buffer->name }, loop };
    tl_arg pipe[] = { loop, random_int(r, 2, 4) };
    if (!try_step(r, TL_PRIM_compute_at, at, 2))
        return;
    if (below(r, 2))
        try_step(r, TL_PRIM_rolling_buffer, roll, 2);
    else
        try_step(r, TL_PRIM_software_pipeline, pipe, 2);
}

bool random_steps_apply(random_steps *r, int most)
{
    r->status = TL_OK;
    begin(r);
    int steps = 1 + (int)below(r, most);
    for (int tries = 0, done = 0; done < steps && tries < 12 * steps; tries++) {
        tl_prim prim = (tl_prim)below(r, TL_PRIM_COUNT);
        if (below(r, 4) == 0)
            prim = TL_PRIM_split;
        if (prim == TL_PRIM_bind && !r->may_bind)
            prim = TL_PRIM_reverse_compute_at;
        choices from = collect_choices(r->schedule);
        if (from.loop_count == 0 || from.block_count == 0 || r->status != TL_OK)
            break;
        tl_arg args[TL_MAX_ARGS];
        int count = random_args(r, &from, prim, args);
        if (count == 0 && tl_prim_infos[prim].in[0])
            continue;
        tl_arg out[TL_MAX_ARGS];
        if (try_step_for(r, prim, args, count, out)) {
            done += prim != TL_PRIM_loops;
            follow_up(r, prim, args, out);
        }
    }
    return r->status == TL_OK;
}
