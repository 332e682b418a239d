/* ir/program/structure.c: what a Program is apart from its names: a hash for caches, and the text of its class.
 *
 * Variables and buffers are numbered in the order in which they are declared. The order of canonical
 * sums depends on names, so their addends are combined without order. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/program.h"
#include "runtime/base/map.h"

/* ---- numbers for variables and buffers ---- */

typedef struct {
    const void *key;
    int number;
} slot;

typedef struct {
    tl_arena *arena;
    int count, capacity; /* capacity: a power of two, at least twice the count */
    slot *slots;
} numbering;

static slot *find_slot(const numbering *n, const void *key)
{
    assert(n->capacity > 0 && (n->capacity & (n->capacity - 1)) == 0 && n->count < n->capacity);
    size_t mask = (size_t)n->capacity - 1;
    size_t at = ((uintptr_t)key >> 4) * (uintptr_t)0x9E3779B97F4A7C15u >> 20 & mask;
    while (n->slots[at].key != NULL && n->slots[at].key != key)
        at = (at + 1) & mask;
    return &n->slots[at];
}

static void grow(numbering *n)
{
    slot *old = n->slots;
    int capacity = n->capacity;
    n->capacity = capacity == 0 ? 64 : 2 * capacity;
    n->slots = TL_NEW_ARRAY(n->arena, slot, n->capacity);
    for (int i = 0; i < capacity; i++)
        if (old[i].key != NULL)
            *find_slot(n, old[i].key) = old[i];
}

static int number_of(numbering *n, const void *key)
{
    if (2 * (n->count + 1) > n->capacity)
        grow(n);
    slot *s = find_slot(n, key);
    if (s->key == NULL)
        *s = (slot){ key, n->count++ };
    return s->number;
}

/* A new number, also when copied blocks or loops share the variable: each declares its own. */
static void declare(numbering *n, const void *key)
{
    number_of(n, key);
    assert(find_slot(n, key)->key == key);
    find_slot(n, key)->number = ++n->count;
}

/* ---- hash ---- */

typedef struct {
    numbering numbers;
    uint64_t hash;
} hasher;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t hash_expr(hasher *h, const tl_expr *e);

/* Operands of a chain of one kind, whatever their order. */
static uint64_t hash_chain(hasher *h, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_MUL);
    tl_expr_kind kind = e->kind;
    uint64_t sum = 0;
    for (; e->kind == kind; e = e->args[0])
        sum += mix(1, hash_expr(h, e->args[1]));
    return mix(sum + mix(1, hash_expr(h, e)), (uint64_t)kind);
}

static uint64_t hash_expr(hasher *h, const tl_expr *e)
{
    uint64_t hash = mix((uint64_t)e->kind, (uint64_t)e->dtype), bits;
    if (e->dtype == TL_I64 && (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_MUL))
        return hash_chain(h, e);
    switch (tl_expr_infos[e->kind].payload) {
    case TL_PAYLOAD_VALUE:
        return mix(hash, (uint64_t)e->u.value);
    case TL_PAYLOAD_NUMBER:
        memcpy(&bits, &e->u.number, sizeof bits);
        return mix(hash, bits);
    case TL_PAYLOAD_VAR:
        return mix(hash, (uint64_t)number_of(&h->numbers, e->u.var));
    case TL_PAYLOAD_BUFFER:
        hash = mix(hash, (uint64_t)number_of(&h->numbers, e->u.buffer));
        break;
    case TL_PAYLOAD_FUNCTION:
        hash = mix(hash, (uint64_t)e->u.function);
        break;
    case TL_PAYLOAD_NONE:
        break;
    }
    bool unordered = e->arg_count == 2 && tl_expr_infos[e->kind].commutes &&
                     e->args[0]->dtype == TL_I64; /* ordered by name */
    if (unordered)
        return mix(hash, mix(1, hash_expr(h, e->args[0])) + mix(1, hash_expr(h, e->args[1])));
    for (int i = 0; i < e->arg_count; i++)
        hash = mix(hash, hash_expr(h, e->args[i]));
    return hash;
}

static void add(hasher *h, uint64_t word)
{
    h->hash = mix(h->hash, word);
}

static void add_buffer(hasher *h, const tl_buffer *b)
{
    add(h, (uint64_t)number_of(&h->numbers, b));
    add(h, (uint64_t)b->dtype << 32 | (uint64_t)b->scope << 16 | (uint64_t)b->role << 8 |
               (uint64_t)b->rank);
    if (b->swizzle != 0)
        add(h, (uint64_t)b->swizzle);
    for (int i = 0; i < b->rank; i++) {
        add(h, hash_expr(h, b->shape[i]));
        if (b->strides != NULL)
            add(h, (uint64_t)b->strides[i]);
    }
}

static void add_exprs(hasher *h, const tl_expr *const *exprs, int count)
{
    for (int i = 0; i < count; i++)
        add(h, hash_expr(h, exprs[i]));
}

static void add_store(hasher *h, const tl_store *store)
{
    add(h, (uint64_t)number_of(&h->numbers, store->buffer));
    add_exprs(h, store->indices, store->buffer->rank);
    add(h, hash_expr(h, store->value));
}

static void add_regions(hasher *h, const tl_region *regions, int count)
{
    add(h, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        add(h, (uint64_t)number_of(&h->numbers, regions[i].buffer));
        add_exprs(h, regions[i].begin, regions[i].buffer->rank);
        add_exprs(h, regions[i].extent, regions[i].buffer->rank);
    }
}

static void add_call(hasher *h, const tl_intrinsic_call *call)
{
    add(h, tl_hash_bytes(call->name, strlen(call->name), 0));
    add_regions(h, call->reads, call->read_count);
    add_regions(h, call->writes, call->write_count);
    add_exprs(h, call->scalars, call->scalar_count);
}

static void add_block(hasher *h, const tl_block *b)
{
    add(h, (uint64_t)b->iter_count << 32 | (uint64_t)b->store_count << 16 |
               (uint64_t)b->combiner << 8 | (uint64_t)b->has_init << 1 | (b->init != NULL));
    for (int i = 0; i < b->iter_count; i++) {
        add(h, (uint64_t)b->iters[i].kind);
        add(h, hash_expr(h, b->iters[i].extent));
        add(h, hash_expr(h, b->iters[i].binding));
        declare(&h->numbers, b->iters[i].var);
    }
    if (b->predicate != NULL) /* an iter and the loop that it is bound to are one in the text */
        add(h, hash_expr(h, tl_block_bind(h->numbers.arena, b, b->predicate)));
    if (b->init != NULL)
        add_exprs(h, b->init, b->store_count);
    for (int i = 0; i < b->store_count; i++)
        add_store(h, &b->stores[i]);
    if (b->call != NULL)
        add_call(h, b->call);
}

static void add_stmt(hasher *h, const tl_stmt *s)
{
    add(h, (uint64_t)s->kind);
    switch (s->kind) {
    case TL_STMT_LOOP:
        add(h, (uint64_t)s->u.loop.kind);
        add(h, hash_expr(h, s->u.loop.extent));
        declare(&h->numbers, s->u.loop.var);
        for (int i = 0; i < s->u.loop.annotation_count; i++) {
            const tl_annotation *a = &s->u.loop.annotations[i];
            add(h, tl_hash_bytes(a->key, strlen(a->key), (uint64_t)a->value));
        }
        add_stmt(h, s->u.loop.body);
        return;
    case TL_STMT_SEQ:
        add(h, (uint64_t)s->u.seq.count);
        for (int i = 0; i < s->u.seq.count; i++)
            add_stmt(h, s->u.seq.items[i]);
        return;
    case TL_STMT_BLOCK:
        add_block(h, s->u.block);
        return;
    case TL_STMT_ALLOC:
        declare(&h->numbers, s->u.alloc.buffer);
        add_buffer(h, s->u.alloc.buffer);
        add_stmt(h, s->u.alloc.body);
        return;
    case TL_STMT_BARRIER:
        return;
    case TL_STMT_PREFETCH:
        add(h, (uint64_t)number_of(&h->numbers, s->u.prefetch.buffer));
        add(h, (uint64_t)s->u.prefetch.level);
        add_exprs(h, s->u.prefetch.indices, s->u.prefetch.buffer->rank);
        return;
    case TL_STMT_IF:
        add(h, hash_expr(h, s->u.branch.condition));
        add_stmt(h, s->u.branch.then);
        add(h, s->u.branch.otherwise != NULL);
        if (s->u.branch.otherwise != NULL)
            add_stmt(h, s->u.branch.otherwise);
        return;
    case TL_STMT_STORE:
        add_store(h, &s->u.store);
        return;
    case TL_STMT_CALL:
        add_call(h, s->u.call);
        return;
    case TL_STMT_KIND_COUNT:
        return;
    }
}

static void add_program(hasher *h, const tl_program *program)
{
    if (program->strict)
        add(h, 1);
    if (program->tf32)
        add(h, 2);
    for (int i = 0; i < program->dim_count; i++) {
        number_of(&h->numbers, program->dims[i]);
        add(h, (uint64_t)program->dims[i]->min);
        add(h, (uint64_t)program->dims[i]->max);
    }
    for (int i = 0; i < program->param_count; i++)
        add_buffer(h, program->params[i]);
    for (int i = 0; i < program->prepared_count; i++)
        add_buffer(h, program->prepared[i]);
    if (program->prepare != NULL)
        add_stmt(h, program->prepare);
    add(h, program->prepare != NULL);
    add_stmt(h, program->body);
}

uint64_t tl_program_hash(const tl_program *program)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return 0;
    }
    hasher h = { .numbers = { .arena = arena } };
    add_program(&h, program);
    tl_arena_destroy(arena);
    return h.hash;
}
