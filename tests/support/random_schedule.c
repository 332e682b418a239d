/* tests/support/random_schedule.c: a primitive, its arguments by the letters of primitives.def, what makes sense next. */
#include "tests/support/random_schedule.h"
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

enum { MAX_LOOPS = 96, MAX_BLOCKS = 48, MAX_BUFFERS = 64 };

const char *const random_prim_names[TL_PRIM_COUNT] = {
#define PRIMITIVE(name, in, out) #name,
#include "schedule/primitives.def"
#undef PRIMITIVE
};

static const char *const call_names[] = {
#define TENSOR(name, c, a, b, ca, aa, ba, m, n, k) #name,
#define GROUP_TENSOR(...)                          /* the same again, and large */
#include "schedule/prim/tensor_shapes.def"
#undef GROUP_TENSOR
#undef TENSOR
};
enum { CALLS = sizeof call_names / sizeof call_names[0] };

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

/* What a primitive wants of the block that it is about; of others it says so, and nothing else of interest. */
enum { REDUCES = 1, ASSIGNS = 2, GIVES = 4, TAKES = 8, GUARDED = 16, UPDATES = 32 };
static const unsigned wants[TL_PRIM_COUNT] = {
    [TL_PRIM_loop_partition] = GUARDED,
    [TL_PRIM_compute_at] = GIVES,
    [TL_PRIM_sample_compute_location] = GIVES,
    [TL_PRIM_reverse_compute_at] = ASSIGNS | TAKES,
    [TL_PRIM_compute_inline] = ASSIGNS | GIVES,
    [TL_PRIM_reverse_compute_inline] = ASSIGNS | TAKES,
    [TL_PRIM_decompose_reduction] = REDUCES,
    [TL_PRIM_rfactor] = REDUCES,
    [TL_PRIM_tensorize] = UPDATES,
    [TL_PRIM_set_scope] = GIVES,
    [TL_PRIM_storage_align] = GIVES,
    [TL_PRIM_swizzle] = GIVES,
    [TL_PRIM_rolling_buffer] = GIVES,
};

static bool takes_local(const tl_expr *e, void *context)
{
    bool *found = context;
    *found = *found || (e->kind == TL_EXPR_LOAD && e->u.buffer->role == TL_ROLE_LOCAL);
    return !*found;
}

static bool suits(const tl_block *block, unsigned what)
{
    bool reduces = block->combiner != TL_COMBINER_NONE, gives = false, takes = false;
    bool assigns = !reduces;
    for (int i = 0; i < block->iter_count; i++)
        assigns = assigns && block->iters[i].kind == TL_ITER_SPATIAL;
    for (int i = 0; i < block->store_count; i++) {
        gives = gives || block->stores[i].buffer->role == TL_ROLE_LOCAL;
        tl_expr_visit(block->stores[i].value, takes_local, &takes);
    }
    return (reduces || !(what & REDUCES)) && (assigns || !(what & ASSIGNS)) &&
           (gives || !(what & GIVES)) && (takes || !(what & TAKES)) &&
           (block->predicate || !(what & GUARDED)) &&
           ((reduces && !block->has_init) || !(what & UPDATES));
}

/* Mostly one that suits the step, and every second time the block of the step before: steps that meet say more than steps
 * far from each other. */
static const tl_block *random_block(random_steps *r, const choices *from)
{
    const tl_block *block = from->blocks[below(r, from->block_count)];
    for (int i = 0; r->last_block && i < from->block_count; i++)
        if (strcmp(from->blocks[i]->name, r->last_block) == 0 && below(r, 2) == 0)
            block = from->blocks[i];
    for (int tries = 0; tries < 6 && !suits(block, wants[r->prim]); tries++)
        block = from->blocks[below(r, from->block_count)];
    r->last_block = block->name;
    return block;
}

static tl_loop_ref random_loop(random_steps *r, const choices *from)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = nest_of(r, random_block(r, from), nest);
    return count > 0 && below(r, 2) ? nest[below(r, count)]
                                    : from->loops[below(r, from->loop_count)];
}

/* Any, or what a block writes. */
static const tl_buffer *random_buffer(random_steps *r, const choices *from)
{
    const tl_block *block = random_block(r, from);
    if (block->store_count > 0 && below(r, 4) > 0)
        return block->stores[below(r, block->store_count)].buffer;
    return from->buffer_count ? from->buffers[below(r, from->buffer_count)] : NULL;
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
    int factor = 2 + (int)below(r, 4), modulus = factor - (below(r, 10) == 0);
    bool is_short = below(r, 10) == 0; /* only the last digit */
    for (int i = 0; i < rank; i++) {
        const char *comma = i ? ", " : "", *name = names[order[i]];
        left = tl_arena_format(arena, "%s%s%s", left, comma, names[i]);
        if (i == split && is_short)
            right = tl_arena_format(arena, "%s%s%s%%%d", right, comma, name, factor);
        else if (i == split)
            right = tl_arena_format(arena, "%s%s%s//%d, %s%%%d", right, comma, name, factor, name,
                                    modulus);
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
    const tl_buffer *buffer = random_buffer(r, from);
    switch (letter) {
    case 'L':
        return loop_arg(random_loop(r, from));
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

/* Factors without _, which cover the loop or miss its last iterations. */
static void fit_factors(random_steps *r, const tl_arg *loop, tl_arg *factors)
{
    const tl_stmt *stmt = tl_schedule_get_loop(r->schedule, loop->loop);
    int64_t extent, *sizes = TL_NEW_ARRAY(tl_schedule_arena(r->schedule), int64_t, 2);
    if (stmt == NULL)
        return;
    extent =
        tl_min64(tl_expr_range(stmt->u.loop.extent).max, 16); /* of a dim's loop: a part of it */
    sizes[1] = 1 + below(r, 5);
    sizes[0] = (extent + sizes[1] - 1) / sizes[1] - (below(r, 4) == 0);
    *factors = (tl_arg){ .kind = TL_ARG_FACTORS, .count = 2, .factors = sizes };
    if (sizes[0] < 1)
        sizes[0] = 1;
}

/* A loop whose body allocates: its iterations have buffers of their own, the first of which it gives. NULL: none. */
static const tl_buffer *fit_loop_of_alloc(random_steps *r, const choices *from, tl_arg *loop)
{
    int start = (int)below(r, from->loop_count);
    for (int i = 0; i < from->loop_count; i++) {
        tl_loop_ref ref = from->loops[(start + i) % from->loop_count];
        const tl_stmt *stmt = tl_schedule_get_loop(r->schedule, ref);
        if (stmt && stmt->u.loop.body->kind == TL_STMT_ALLOC) {
            *loop = loop_arg(ref);
            return stmt->u.loop.body->u.alloc.buffer;
        }
    }
    return NULL;
}

/* A local buffer that a block writes; NULL: the block that was drawn writes none. */
static const char *random_local(random_steps *r, const choices *from)
{
    const tl_block *block = random_block(r, from);
    for (int i = 0; i < block->store_count; i++)
        if (block->stores[i].buffer->role == TL_ROLE_LOCAL)
            return block->stores[i].buffer->name;
    return NULL;
}

/* A loop around one of a buffer's writers, rather an outer one. */
static void fit_loop_of_writer(random_steps *r, const choices *from, const char *buffer,
                               tl_arg *loop)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    for (int i = 0; i < from->block_count; i++) {
        const tl_block *block = from->blocks[i];
        int count = nest_of(r, block, nest);
        for (int k = 0; k < block->store_count; k++)
            if (count > 0 && strcmp(block->stores[k].buffer->name, buffer) == 0)
                *loop = loop_arg(nest[below(r, 1 + below(r, count))]);
    }
}

/* A sum of products of two loads; NULL: there is none. */
static const tl_block *find_product(random_steps *r, const choices *from)
{
    int start = (int)below(r, from->block_count);
    for (int i = 0; i < from->block_count; i++) {
        const tl_block *block = from->blocks[(start + i) % from->block_count];
        const tl_expr *value = block->store_count == 1 ? block->stores[0].value : NULL;
        if (value && block->combiner == TL_COMBINER_SUM && value->kind == TL_EXPR_MUL &&
            value->args[0]->kind == TL_EXPR_LOAD && value->args[1]->kind == TL_EXPR_LOAD)
            return block;
    }
    return NULL;
}

static bool is_in_shared(const tl_expr *e, void *context)
{
    bool *found = context;
    *found = *found || (e->kind == TL_EXPR_LOAD && e->u.buffer->scope == TL_SCOPE_SHARED);
    return !*found;
}

/* The outermost of the own loops of a block that copies to or from shared memory. */
static void fit_copied_box(random_steps *r, const choices *from, tl_arg *loop)
{
    int start = (int)below(r, from->block_count);
    for (int i = 0; i < from->block_count; i++) {
        const tl_block *block = from->blocks[(start + i) % from->block_count];
        tl_loop_ref nest[TL_MAX_ARGS];
        int count = nest_of(r, block, nest);
        bool shared = block->store_count == 1 && block->stores[0].buffer->scope == TL_SCOPE_SHARED;
        if (block->store_count == 1 && !shared)
            tl_expr_visit(block->stores[0].value, is_in_shared, &shared);
        if (shared && count >= block->iter_count && block->iter_count > 0) {
            *loop = loop_arg(nest[count - block->iter_count]);
            return;
        }
    }
}

/* As many as a loop has iterations, or fewer; now and then any. */
static tl_arg random_stages(random_steps *r, tl_loop_ref loop)
{
    const tl_stmt *stmt = tl_schedule_get_loop(r->schedule, loop);
    int64_t extent = stmt ? tl_expr_range(stmt->u.loop.extent).max : 0;
    if (extent < 2 || below(r, 8) == 0)
        return random_int(r, 1, 4);
    return random_int(r, 2, tl_min64(extent, 4));
}

/* Words and numbers that mean something to a primitive, in the place of any. */
static void fit_args(random_steps *r, const choices *from, tl_prim prim, tl_arg *args)
{
    static const char *const axes[] = { "blockIdx.x",  "blockIdx.y",  "threadIdx.x",
                                        "threadIdx.y", "threadIdx.z", "vthread" };
    const char *in = tl_prim_infos[prim].in;
    tl_loop_ref nest[TL_MAX_ARGS];
    if (in[0] == 'B' && in[1] == 'L' && below(r, 4) > 0)
        fit_loop(r, from, prim, tl_schedule_get_block(r->schedule, args[0].block), &args[1]);
    if (prim == TL_PRIM_split && below(r, 6) == 0)
        fit_factors(r, &args[0], &args[1]);
    if (prim == TL_PRIM_software_pipeline && below(r, 4) > 0)
        (void)fit_loop_of_alloc(r, from, &args[0]);
    if (prim == TL_PRIM_software_pipeline)
        args[1] = random_stages(r, args[0].loop);
    const char *local = prim == TL_PRIM_rolling_buffer ? random_local(r, from) : NULL;
    if (local && below(r, 8) > 0)
        args[0].word = local;
    if (prim == TL_PRIM_rolling_buffer && below(r, 4) > 0)
        fit_loop_of_writer(r, from, args[0].word, &args[1]);
    if (prim == TL_PRIM_rolling_buffer && below(r, 4) == 0) {
        const tl_buffer *own = fit_loop_of_alloc(r, from, &args[1]);
        args[0].word = own ? own->name : args[0].word;
    }
    if (prim == TL_PRIM_bind)
        args[1].word = axes[below(r, 6)];
    if (prim == TL_PRIM_storage_align) {
        args[1] = random_int(r, 0, 2);
        args[2] = random_int(r, 1, 8);
        args[3] = random_int(r, 0, 2);
    }
    if (prim == TL_PRIM_swizzle)
        args[1].value = INT64_C(32) << below(r, 3);
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
        int inner = 2 + (int)below(r, 2);
        if (size >= inner)
            args[0].loop = nest[size - inner];
        args[1].word = call_names[below(r, CALLS)];
    }
    const tl_block *product = prim == TL_PRIM_pad_einsum ? find_product(r, from) : NULL;
    if (product && below(r, 8) > 0)
        args[0] = block_arg(r, product);
    if (prim == TL_PRIM_bulk_copy && below(r, 8) > 0)
        fit_copied_box(r, from, &args[0]);
    if (prim == TL_PRIM_cache_read && r->may_bind && below(r, 4) == 0)
        args[2].word = "shared";
    if (prim == TL_PRIM_pad || prim == TL_PRIM_pad_einsum) {
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
    if (count > 1 && below(r, 30) == 0)
        args[0] = args[1];
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
    r->prim = prim;
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

/* The loops that a step was given and that have a kind. */
typedef struct {
    int count;
    const tl_stmt *loops[TL_MAX_ARGS];
} kinds;

static kinds note_kinds(const random_steps *r, const tl_arg *args, int count)
{
    kinds k = { 0 };
    for (int i = 0; i < count; i++) {
        const tl_stmt *loop =
            args[i].kind == TL_ARG_LOOP ? tl_schedule_get_loop(r->schedule, args[i].loop) : NULL;
        if (loop != NULL && loop->u.loop.kind != TL_LOOP_SERIAL)
            k.loops[k.count++] = loop;
    }
    return k;
}

/* What a loop was given by one step no other takes away: to lose it makes no program wrong, only slow. (The parts that
 * loop_partition makes are other loops.) */
static tl_status check_kinds(random_steps *r, const kinds *k)
{
    for (int i = 0; i < k->count; i++) {
        const tl_var *var = k->loops[i]->u.loop.var;
        const tl_stmt *now = tl_program_find_loop(tl_schedule_program(r->schedule), var);
        if (now == NULL || now->u.loop.kind != k->loops[i]->u.loop.kind)
            return tl_fail(&r->diag, TL_INTERNAL, "loop %s is %s no more", var->name,
                           tl_loop_kind_infos[k->loops[i]->u.loop.kind].text);
    }
    return TL_OK;
}

static bool try_step_for(random_steps *r, tl_prim prim, const tl_arg *args, int count, tl_arg *out)
{
    int out_count;
    if (r->status != TL_OK)
        return false;
    kinds k = note_kinds(r, args, prim == TL_PRIM_loop_partition ? 0 : count);
    tl_status status = tl_schedule_apply(r->schedule, prim, args, count, out, &out_count, &r->diag);
    r->tried[prim]++;
    r->applied[prim] += status == TL_OK;
    if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE) {
        r->status = status;
        if (tl_schedule_introduce(r->schedule, random_prim_names[prim], args, count, NULL) == TL_OK)
            tl_schedule_record(r->schedule, prim, args, count, NULL, 0);
    }
    if (status == TL_OK)
        r->status = check_kinds(r, &k);
    return status == TL_OK && r->status == TL_OK;
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
        tl_arg stages[] = { args[1], random_stages(r, args[1].loop) };
        try_step(r, TL_PRIM_software_pipeline, stages, 2);
        return;
    }
    const tl_block *block = tl_schedule_get_block(r->schedule, args[0].block);
    if (block == NULL || block->store_count == 0)
        return;
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = block->stores[0].buffer->name }, args[1] };
    try_step(r, TL_PRIM_rolling_buffer, roll, 2);
}

/* Beginnings that random steps find too rarely: a producer under its consumer's loop, rolled along the loops around or run
 * ahead. */
static void begin_inside(random_steps *r, const tl_block *writer, tl_arg loop)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    tl_arg at[] = { block_arg(r, writer), loop };
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = writer->stores[0].buffer->name }, loop };
    tl_arg pipe[] = { loop, random_stages(r, loop.loop) };
    if (!try_step(r, TL_PRIM_compute_at, at, 2))
        return;
    if (below(r, 2)) {
        try_step(r, TL_PRIM_software_pipeline, pipe, 2);
        return;
    }
    int count = nest_of(r, tl_schedule_get_block(r->schedule, at[0].block), nest);
    for (int i = 0; i < count; i++) {
        roll[1] = loop_arg(nest[i]);
        if (try_step(r, TL_PRIM_rolling_buffer, roll, 2))
            return;
    }
}

/* A consumer that goes to its producer, before its loops are anything else. */
static void begin_reverse(random_steps *r, const tl_block *writer, const tl_block *reader)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = nest_of(r, writer, nest);
    tl_arg inline_args[] = { block_arg(r, reader) };
    tl_arg at[] = { inline_args[0], inline_args[0] };
    if (count > 0 && below(r, 2)) {
        at[1] = loop_arg(nest[below(r, count)]);
        try_step(r, TL_PRIM_reverse_compute_at, at, 2);
    } else {
        try_step(r, TL_PRIM_reverse_compute_inline, inline_args, 1);
    }
}

/* The first loop around a block, from a random one on, that can be on an axis of the threads. */
static void bind_one(random_steps *r, const char *block_name, const char *axis)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    const tl_block *block = tl_program_find_block(tl_schedule_program(r->schedule), block_name);
    int count = block ? nest_of(r, block, nest) : 0;
    int start = count ? (int)below(r, count) : 0;
    for (int i = 0; i < count; i++) {
        tl_arg args[] = { loop_arg(nest[(start + i) % count]),
                          { .kind = TL_ARG_WORD, .word = axis } };
        if (try_step(r, TL_PRIM_bind, args, 2))
            return;
    }
}

/* The same for a GPU: threads hand the elements of a shared buffer, which is the writer's or a copy of it, to each
 * other, perhaps anew in every iteration of a loop around both. */
static void begin_shared(random_steps *r, const tl_block *writer, const tl_block *reader,
                         tl_arg loop)
{
    static const char *const axes[] = { "threadIdx.x", "threadIdx.x", "threadIdx.y" };
    tl_arg out[TL_MAX_ARGS];
    tl_arg buffer = { .kind = TL_ARG_WORD, .word = writer->stores[0].buffer->name };
    tl_arg shared = { .kind = TL_ARG_WORD, .word = "shared" };
    tl_arg copy[] = { block_arg(r, reader), buffer, shared }, scope[] = { buffer, shared };
    const char *producer = writer->name;
    if (below(r, 2) && try_step_for(r, TL_PRIM_cache_read, copy, 3, out))
        producer = tl_schedule_get_block(r->schedule, out[0].block)->name;
    else
        try_step(r, TL_PRIM_set_scope, scope, 2);
    const tl_block *moved = tl_program_find_block(tl_schedule_program(r->schedule), producer);
    tl_arg at[] = { block_arg(r, moved), loop };
    if (below(r, 2))
        try_step(r, TL_PRIM_compute_at, at, 2);
    bind_one(r, reader->name, axes[below(r, 3)]);
    bind_one(r, producer, axes[below(r, 3)]);
}

/* And an intrinsic in the place of inner loops, for what it must not meet. */
static void begin_call(random_steps *r, const tl_block *block)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    int size = nest_of(r, block, nest), inner = 2 + (int)below(r, 2);
    for (int i = 0; i < CALLS && size >= inner; i++) {
        tl_arg args[] = { loop_arg(nest[size - inner]),
                          { .kind = TL_ARG_WORD, .word = call_names[i] } };
        if (try_step(r, TL_PRIM_tensorize, args, 2))
            return;
    }
}

/* Loops that hold parts of two iters: neighbours fused and split where they do not divide, and then perhaps swapped. */
static void begin_mixed(random_steps *r, const tl_block *block)
{
    tl_loop_ref nest[TL_MAX_ARGS];
    tl_arg out[TL_MAX_ARGS], parts[TL_MAX_ARGS];
    int count = nest_of(r, block, nest);
    if (count < 2)
        return;
    int at = (int)below(r, count - 1);
    tl_arg fuse[] = { loop_arg(nest[at]), loop_arg(nest[at + 1]) };
    if (!try_step_for(r, TL_PRIM_fuse, fuse, 2, out))
        return;
    tl_arg split[] = { out[0], random_factors(r) };
    if (!try_step_for(r, TL_PRIM_split, split, 2, parts) || split[1].count < 2)
        return;
    tl_arg swap[] = { parts[1], parts[0] };
    if (below(r, 2))
        try_step(r, TL_PRIM_reorder, swap, 2);
}

static void begin(random_steps *r)
{
    r->prim = TL_PRIM_compute_at;
    choices from = collect_choices(r->schedule);
    const tl_block *writer = random_block(r, &from), *reader = neighbour(r, &from, writer, true);
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = reader ? nest_of(r, reader, nest) : 0;
    if (suits(writer, UPDATES) && below(r, 2)) {
        begin_call(r, writer);
        return;
    }
    if (below(r, 8) == 0) {
        begin_mixed(r, writer);
        return;
    }
    if (count == 0 || writer->store_count == 0 || below(r, 3) == 0)
        return;
    if (r->may_bind && below(r, 2))
        begin_shared(r, writer, reader, loop_arg(nest[below(r, count)]));
    else if (below(r, 3) == 0)
        begin_reverse(r, writer, reader);
    else
        begin_inside(r, writer, loop_arg(nest[below(r, count)]));
}

/* What brings a program to where a primitive's preconditions decide: other steps that make what it takes apart, moves or
 * must not lose. */
enum { MOST_PREPARATIONS = 7 };
#define PREPARE(prim) [TL_PRIM_##prim]
#define BY(prim)      TL_PRIM_##prim
static const tl_prim preparations[TL_PRIM_COUNT][MOST_PREPARATIONS] = {
    PREPARE(split) = { BY(fuse), BY(reorder), BY(vectorize), BY(parallel) },
    PREPARE(fuse) = { BY(split), BY(vectorize), BY(compute_at), BY(cache_read) },
    PREPARE(reorder) = { BY(split), BY(fuse), BY(decompose_reduction), BY(compute_at), BY(parallel),
                         BY(software_pipeline) },
    PREPARE(parallel) = { BY(compute_at), BY(cache_read), BY(cache_write), BY(fuse), BY(split),
                          BY(set_scope) },
    PREPARE(vectorize) = { BY(split), BY(fuse), BY(compute_at), BY(rfactor),
                           BY(decompose_reduction), BY(tensorize) },
    PREPARE(unroll) = { BY(split), BY(vectorize) },
    PREPARE(bind) = { BY(cache_read), BY(cache_write), BY(compute_at), BY(split), BY(set_scope) },
    PREPARE(loop_partition) = { BY(split), BY(fuse), BY(reorder), BY(vectorize), BY(compute_at),
                                BY(decompose_reduction) },
    PREPARE(compute_at) = { BY(split), BY(reorder), BY(cache_read), BY(cache_write), BY(parallel),
                            BY(loop_partition), BY(rolling_buffer) },
    PREPARE(reverse_compute_at) = { BY(split), BY(reorder), BY(fuse), BY(cache_write),
                                    BY(compute_at), BY(vectorize), BY(pad) },
    PREPARE(compute_inline) = { BY(cache_read), BY(compute_at), BY(cache_write), BY(split),
                                BY(transform_layout), BY(rolling_buffer) },
    PREPARE(reverse_compute_inline) = { BY(compute_inline), BY(cache_write), BY(pad), BY(split),
                                        BY(loop_partition), BY(compute_at), BY(cache_read) },
    PREPARE(cache_read) = { BY(cache_write), BY(compute_at), BY(split), BY(loop_partition),
                            BY(fuse), BY(decompose_reduction) },
    PREPARE(cache_write) = { BY(split), BY(fuse), BY(loop_partition), BY(reorder), BY(compute_at),
                             BY(decompose_reduction) },
    PREPARE(decompose_reduction) = { BY(split), BY(reorder), BY(fuse), BY(loop_partition),
                                     BY(compute_at), BY(software_pipeline) },
    PREPARE(transform_layout) = { BY(cache_read), BY(cache_write), BY(storage_align),
                                  BY(transform_layout), BY(pad), BY(tensorize) },
    PREPARE(set_scope) = { BY(cache_read), BY(compute_at), BY(parallel), BY(bind),
                           BY(cache_write) },
    PREPARE(prefetch) = { BY(compute_at), BY(split), BY(vectorize), BY(set_scope) },
    PREPARE(rfactor) = { BY(split), BY(fuse), BY(reorder), BY(loop_partition), BY(compute_at) },
    PREPARE(swizzle) = { BY(cache_read), BY(cache_write), BY(set_scope), BY(bind), BY(compute_at) },
    PREPARE(storage_align) = { BY(cache_read), BY(cache_write), BY(set_scope), BY(compute_at) },
    PREPARE(rolling_buffer) = { BY(compute_at), BY(split), BY(cache_read), BY(reorder),
                                BY(storage_align), BY(parallel), BY(vectorize) },
    PREPARE(pad) = { BY(split), BY(fuse), BY(cache_write), BY(vectorize), BY(reorder) },
    PREPARE(pad_einsum) = { BY(compute_inline), BY(fuse), BY(cache_read), BY(reorder) },
    PREPARE(bulk_copy) = { BY(cache_read), BY(set_scope), BY(cache_read), BY(pad) },
    PREPARE(software_pipeline) = { BY(compute_at), BY(cache_read), BY(split), BY(set_scope),
                                   BY(decompose_reduction), BY(storage_align), BY(parallel) },
    PREPARE(place_barriers) = { BY(set_scope), BY(bind), BY(cache_read), BY(compute_at) },
    PREPARE(tensorize) = { BY(split), BY(decompose_reduction), BY(vectorize), BY(pad),
                           BY(reorder) },
};
#undef PREPARE
#undef BY

/* Most sequences aim at one primitive: it is tried again and again, among what prepares for it. */
static tl_prim random_prim(random_steps *r, tl_prim aim)
{
    int64_t kind = below(r, aim ? 8 : 4);
    int count = 0;
    while (count < MOST_PREPARATIONS && preparations[aim][count])
        count++;
    if (aim == TL_PRIM_loops && kind == 0)
        return TL_PRIM_split;
    if (aim == TL_PRIM_loops || kind < 2 || (kind < 5 && count == 0))
        return (tl_prim)below(r, TL_PRIM_COUNT);
    return kind < 5 ? preparations[aim][below(r, count)] : aim;
}

/* Any primitive, rather one that wants nothing of its block or what a block has. */
static tl_prim random_aim(random_steps *r)
{
    choices from = collect_choices(r->schedule);
    const tl_block *block = random_block(r, &from);
    tl_prim aim = (tl_prim)below(r, TL_PRIM_COUNT);
    for (int tries = 0; tries < 20 && !suits(block, wants[aim]); tries++)
        aim = (tl_prim)below(r, TL_PRIM_COUNT);
    return aim;
}

bool random_steps_apply(random_steps *r, int most)
{
    r->status = TL_OK;
    r->last_block = NULL;
    begin(r);
    tl_prim aim = below(r, 4) ? random_aim(r) : TL_PRIM_loops; /* none */
    int steps = 1 + (int)below(r, most);
    for (int tries = 0, done = 0; done < steps && tries < 12 * steps; tries++) {
        tl_prim prim = random_prim(r, aim);
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
