/* tuner/search/catalog.c: the programs a search has met. */
#include "tuner/search/catalog.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "tuner/cost/features.h"

/* Open addressing from 64-bit hashes to numbers; what hashes alike is taken for the same. */
typedef struct {
    uint64_t *keys;
    int *values; /* TL_NO_ENTRY is a value, too */
    bool *used;
    size_t count, capacity; /* a power of two, at most half full */
} table;

static size_t slot_of(const table *t, uint64_t key)
{
    assert(t->capacity > 0 && (t->capacity & (t->capacity - 1)) == 0 && t->count < t->capacity);
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (t->capacity - 1);
    while (t->used[at] && t->keys[at] != key)
        at = (at + 1) & (t->capacity - 1);
    return at;
}

static void free_table(table *t)
{
    free(t->keys);
    free(t->values);
    free(t->used);
}

static bool grow_table(table *t)
{
    assert((t->capacity & (t->capacity - 1)) == 0);
    table grown = { .capacity = t->capacity > 0 ? 2 * t->capacity : 1024, .count = t->count };
    grown.keys = calloc(grown.capacity, sizeof *grown.keys);
    grown.values = calloc(grown.capacity, sizeof *grown.values);
    grown.used = calloc(grown.capacity, sizeof *grown.used);
    if (grown.keys == NULL || grown.values == NULL || grown.used == NULL) {
        free_table(&grown);
        return false;
    }
    for (size_t i = 0; i < t->capacity; i++) {
        if (!t->used[i])
            continue;
        size_t at = slot_of(&grown, t->keys[i]);
        grown.used[at] = true;
        grown.keys[at] = t->keys[i];
        grown.values[at] = t->values[i];
    }
    free_table(t);
    *t = grown;
    return true;
}

static bool table_find(const table *t, uint64_t key, int *value)
{
    if (t->capacity == 0)
        return false;
    size_t at = slot_of(t, key);
    if (t->used[at])
        *value = t->values[at];
    return t->used[at];
}

static bool table_put(table *t, uint64_t key, int value)
{
    if (2 * (t->count + 1) > t->capacity && !grow_table(t))
        return false;
    size_t at = slot_of(t, key);
    t->count += !t->used[at];
    t->used[at] = true;
    t->keys[at] = key;
    t->values[at] = value;
    return true;
}

/* What is known of a program before it is met. */
typedef struct {
    tl_entry_state state;
    double score_ns;
} knowledge;

struct tl_catalog {
    const tl_space *space;
    tl_target target; /* with the cores that are used */
    tl_arena *arena;  /* points, and the decisions they share */
    tl_entry *entries;
    int count, capacity;
    table by_point, by_program, by_decision, by_known;
    knowledge *known;
    int known_count, known_capacity;
    const tl_decision **decisions; /* each different one once */
    int decision_count, decision_capacity;
    int64_t builds, row_bytes;
    bool features, failed;
};

tl_catalog *tl_catalog_create(const tl_space *space, bool features)
{
    tl_catalog *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->space = space;
    c->features = features;
    c->target = *tl_space_target(space);
    c->target.cores = tl_space_threads(space);
    c->arena = tl_arena_create(0);
    if (c->arena != NULL)
        return c;
    free(c);
    return NULL;
}

void tl_catalog_destroy(tl_catalog *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->count; i++) {
        free(c->entries[i].rows);
        free(c->entries[i].trace);
    }
    free(c->entries);
    free(c->decisions);
    free(c->known);
    free_table(&c->by_known);
    free_table(&c->by_point);
    free_table(&c->by_program);
    free_table(&c->by_decision);
    tl_arena_destroy(c->arena);
    free(c);
}

int tl_catalog_count(const tl_catalog *c)
{
    return c->count;
}

tl_entry *tl_catalog_at(tl_catalog *c, int entry)
{
    return &c->entries[entry];
}

int tl_catalog_find(const tl_catalog *c, uint64_t program)
{
    int entry;
    return table_find(&c->by_program, program, &entry) ? entry : TL_NO_ENTRY;
}

bool tl_catalog_failed(const tl_catalog *c)
{
    return c->failed;
}

int64_t tl_catalog_builds(const tl_catalog *c)
{
    return c->builds;
}

void tl_catalog_know(tl_catalog *c, uint64_t program, tl_entry_state state, double score_ns)
{
    int at;
    if (!table_find(&c->by_known, program, &at)) {
        at = c->known_count;
        if (!TL_HEAP_ROOM(c->known, c->known_count, c->known_capacity) ||
            !table_put(&c->by_known, program, at)) {
            c->failed = true;
            return;
        }
        c->known[c->known_count++] = (knowledge){ state, score_ns };
    } else if (state == TL_ENTRY_RIGHT &&
               (c->known[at].state != TL_ENTRY_RIGHT || c->known[at].score_ns > score_ns)) {
        c->known[at] = (knowledge){ state, score_ns };
    }
}

/* --- names of points ---------------------------------------------------------------------------------------------- */

static uint64_t hash_answer(uint64_t hash, const char *name, int64_t value)
{
    return tl_hash_bytes(&value, sizeof value, tl_hash_bytes(name, strlen(name), hash));
}

static uint64_t hash_wishes(int lowering, const tl_wish *wishes, int count)
{
    uint64_t hash = (uint64_t)lowering + 1;
    for (int i = 0; i < count; i++)
        hash = hash_answer(hash, wishes[i].name, wishes[i].value);
    return hash;
}

static uint64_t hash_point(const tl_point *point)
{
    assert(point->count >= 0);
    uint64_t hash = (uint64_t)point->lowering + 1;
    for (int i = 0; i < point->count; i++) {
        const tl_decision *d = &point->decisions[i];
        hash = hash_answer(hash, d->name, d->options[d->taken]);
    }
    return hash;
}

static bool same_decision(const tl_decision *a, const tl_decision *b)
{
    return a->count == b->count && a->initial == b->initial && strcmp(a->name, b->name) == 0 &&
           memcmp(a->options, b->options, sizeof *a->options * (size_t)a->count) == 0;
}

/* The name and options of a decision, shared by all points that have it; `taken` is the point's own. */
static const tl_decision *share(tl_catalog *c, const tl_decision *d)
{
    uint64_t hash = hash_answer((uint64_t)d->initial, d->name, d->count);
    hash = tl_hash_bytes(d->options, sizeof *d->options * (size_t)d->count, hash);
    int at;
    if (table_find(&c->by_decision, hash, &at) && same_decision(c->decisions[at], d))
        return c->decisions[at];
    tl_point one = { 0, 1, d };
    const tl_decision *copy = tl_point_copy(c->arena, &one).decisions;
    /* failing costs memory only */
    if (TL_HEAP_ROOM(c->decisions, c->decision_count, c->decision_capacity) &&
        table_put(&c->by_decision, hash, c->decision_count))
        c->decisions[c->decision_count++] = copy;
    return copy;
}

static tl_point keep_point(tl_catalog *c, const tl_point *point)
{
    tl_decision *decisions = TL_NEW_ARRAY(c->arena, tl_decision, point->count);
    for (int i = 0; i < point->count; i++) {
        decisions[i] = *share(c, &point->decisions[i]);
        decisions[i].taken = point->decisions[i].taken;
    }
    return (tl_point){ point->lowering, point->count, decisions };
}

/* --- meeting ------------------------------------------------------------------------------------------------------- */

static size_t size_of_rows(const tl_entry *e)
{
    return sizeof(float) * TL_FEATURE_WIDTH * (size_t)e->row_count;
}

static void keep_rows(tl_catalog *c, tl_entry *e, const tl_variant *v, tl_arena *scratch)
{
    const float *rows;
    e->row_count = tl_features_of(scratch, v->program, &c->target, &rows);
    assert(e->row_count >= 0);
    e->rows = malloc(size_of_rows(e) + 1);
    if (e->rows == NULL) {
        c->failed = true;
        return;
    }
    memcpy(e->rows, rows, size_of_rows(e));
    e->trace = strdup(v->trace);
    c->row_bytes += (int64_t)size_of_rows(e);
}

static int add(tl_catalog *c, const tl_variant *v, uint64_t program)
{
    if (!TL_HEAP_ROOM(c->entries, c->count, c->capacity))
        return TL_NO_ENTRY;
    tl_entry *e = &c->entries[c->count];
    *e = (tl_entry){ .point = keep_point(c, &v->point), .program = program };
    int at;
    if (table_find(&c->by_known, program, &at)) {
        e->state = c->known[at].state;
        e->score_ns = c->known[at].score_ns;
    }
    if (!table_put(&c->by_program, program, c->count))
        return TL_NO_ENTRY;
    return c->count++;
}

static int meet(tl_catalog *c, const tl_variant *v, tl_arena *scratch)
{
    uint64_t program = strtoull(v->hash, NULL, 16);
    int entry = tl_catalog_find(c, program);
    if (entry == TL_NO_ENTRY)
        entry = add(c, v, program);
    if (entry == TL_NO_ENTRY || !table_put(&c->by_point, hash_point(&v->point), entry))
        c->failed = true;
    if (entry != TL_NO_ENTRY && c->features && c->entries[entry].rows == NULL)
        keep_rows(c, &c->entries[entry], v, scratch);
    return entry;
}

/* What is to be built: wishes, or random answers. */
typedef struct {
    int lowering;
    const tl_wish *wishes;
    int wish_count;
    tl_random *random; /* NULL: wishes */
} order;

static int meet_ordered(tl_catalog *c, const order *o, tl_arena *scratch)
{
    tl_variant v;
    tl_status status = o->random != NULL ? tl_space_sample(c->space, scratch, o->random, &v, NULL)
                                         : tl_space_build(c->space, scratch, o->lowering, o->wishes,
                                                          o->wish_count, &v, NULL);
    c->builds++;
    return status == TL_OK ? meet(c, &v, scratch) : TL_NO_ENTRY;
}

static int build(tl_catalog *c, const order *o)
{
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch) || TL_ARENA_GUARD(c->arena)) {
        c->failed = true;
        tl_arena_destroy(scratch);
        return TL_NO_ENTRY;
    }
    int entry = meet_ordered(c, o, scratch);
    tl_arena_destroy(scratch);
    return entry;
}

int tl_catalog_build(tl_catalog *c, int lowering, const tl_wish *wishes, int wish_count)
{
    uint64_t key = hash_wishes(lowering, wishes, wish_count);
    int entry;
    if (table_find(&c->by_point, key, &entry))
        return entry;
    order o = { lowering, wishes, wish_count, NULL };
    entry = build(c, &o);
    if (!table_put(&c->by_point, key, entry))
        c->failed = true;
    return entry;
}

int tl_catalog_sample(tl_catalog *c, tl_random *random)
{
    order o = { .random = random };
    return build(c, &o);
}

enum { MOST_DECISIONS = 256 };

static int wishes_of(const tl_point *point, tl_wish *wishes)
{
    int count = point->count < MOST_DECISIONS ? point->count : MOST_DECISIONS;
    for (int i = 0; i < count; i++) {
        const tl_decision *d = &point->decisions[i];
        wishes[i] = (tl_wish){ d->name, d->options[d->taken] };
    }
    return count;
}

int tl_catalog_build_point(tl_catalog *c, const tl_point *point)
{
    tl_wish wishes[MOST_DECISIONS];
    return tl_catalog_build(c, point->lowering, wishes, wishes_of(point, wishes));
}

bool tl_catalog_met(const tl_catalog *c, const tl_point *point, int *entry)
{
    return table_find(&c->by_point, hash_point(point), entry);
}

int tl_catalog_step(tl_catalog *c, int from, int decision, int64_t value)
{
    tl_wish wishes[MOST_DECISIONS];
    tl_point point = c->entries[from].point;
    int count = wishes_of(&point, wishes);
    if (decision >= count)
        return TL_NO_ENTRY;
    if (decision >= 0)
        wishes[decision].value = value;
    return tl_catalog_build(c, decision < 0 ? (int)value : point.lowering, wishes, count);
}

void tl_catalog_expand(tl_catalog *c, int entry)
{
    tl_point point = c->entries[entry].point;
    if (c->entries[entry].expanded)
        return;
    for (int l = 0; l < tl_space_task(c->space)->lowering_count; l++)
        if (l != point.lowering)
            tl_catalog_step(c, entry, -1, l);
    for (int i = 0; i < point.count; i++)
        for (int o = 0; o < point.decisions[i].count; o++)
            if (o != point.decisions[i].taken)
                tl_catalog_step(c, entry, i, point.decisions[i].options[o]);
    c->entries[entry].expanded = true;
}

bool tl_catalog_rows(tl_catalog *c, int entry)
{
    tl_wish wishes[MOST_DECISIONS];
    if (c->entries[entry].rows == NULL && c->features) {
        const tl_point *point = &c->entries[entry].point;
        order o = { point->lowering, wishes, wishes_of(point, wishes), NULL };
        build(c, &o);
    }
    return c->entries[entry].rows != NULL;
}

void tl_catalog_forget(tl_catalog *c, int64_t bytes)
{
    for (int i = 0; i < c->count && c->row_bytes > bytes; i++) {
        tl_entry *e = &c->entries[i];
        if (e->state != TL_ENTRY_NEW || e->rows == NULL)
            continue;
        c->row_bytes -= (int64_t)size_of_rows(e);
        free(e->rows);
        free(e->trace);
        e->rows = NULL;
        e->trace = NULL;
    }
}

tl_status tl_catalog_trace(tl_catalog *c, int entry, tl_arena *arena, const char **trace,
                           tl_diag *diag)
{
    tl_wish wishes[MOST_DECISIONS];
    const tl_point *point = &c->entries[entry].point;
    int count = wishes_of(point, wishes);
    if (c->entries[entry].trace != NULL) {
        *trace = tl_arena_strdup(arena, c->entries[entry].trace);
        return TL_OK;
    }
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(scratch);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_variant v;
    tl_status status = tl_space_build(c->space, scratch, point->lowering, wishes, count, &v, diag);
    if (status == TL_OK)
        *trace = tl_arena_strdup(arena, v.trace);
    tl_arena_destroy(scratch);
    return status;
}
