/* runtime/base/arena.c: a list of chunks, each twice as large as the last, up to a megabyte. */
#include "runtime/base/arena.h"
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/spill.h"

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20, CLEAN_STEP = 2048 };

typedef struct chunk {
    struct chunk *next;
    unsigned char bytes[];
} chunk;

struct tl_arena {
    /* of the chunk that serves: what is free, of which the bytes up to `clean` are zero already */
    unsigned char *free, *clean, *end;
    chunk *chunks;
    tl_spill *spill; /* where large objects lie; NULL: in chunks of their own */
    size_t limit, taken, next_size;
    size_t refused; /* what was asked for beyond the limit */
    size_t fail_in; /* allocations until the one that fails; 0: never */
    bool guarded;
    jmp_buf escape;
};

tl_arena *tl_arena_create(size_t limit)
{
    tl_arena *arena = calloc(1, sizeof *arena);
    if (arena != NULL) {
        arena->limit = limit;
        arena->next_size = FIRST_CHUNK;
    }
    return arena;
}

void tl_arena_destroy(tl_arena *arena)
{
    if (arena == NULL)
        return;
    for (chunk *c = arena->chunks; c != NULL;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    tl_spill_destroy(arena->spill);
    free(arena);
}

void tl_arena_spill_into(tl_arena *arena, const char *folder)
{
    if (arena->spill == NULL)
        arena->spill = tl_spill_create(folder);
}

size_t tl_arena_room(const tl_arena *arena)
{
    return arena->limit == 0 ? SIZE_MAX : arena->limit - arena->taken;
}

size_t tl_arena_refused(const tl_arena *arena)
{
    return arena->refused;
}

bool tl_arena_is_spilled(const tl_arena *arena, const void *data, size_t size)
{
    return tl_spill_has(arena->spill, data, size);
}

jmp_buf *tl_arena_escape(tl_arena *arena)
{
    arena->guarded = true;
    return &arena->escape;
}

void tl_arena_guard_save(const tl_arena *arena, tl_arena_guard *out)
{
    memcpy(&out->escape, &arena->escape, sizeof out->escape);
    out->guarded = arena->guarded;
}

void tl_arena_guard_restore(tl_arena *arena, const tl_arena_guard *saved)
{
    memcpy(&arena->escape, &saved->escape, sizeof arena->escape);
    arena->guarded = saved->guarded;
}

void tl_arena_fail_at(tl_arena *arena, size_t n)
{
    arena->fail_in = n;
}

static _Noreturn void run_out(tl_arena *arena)
{
    if (!arena->guarded)
        abort();
    longjmp(arena->escape, 1);
}

static void check_limit(tl_arena *arena, size_t size)
{
    assert(arena->limit == 0 || arena->taken <= arena->limit);
    if (arena->limit != 0 && (size > arena->limit || arena->taken > arena->limit - size)) {
        arena->refused = size;
        run_out(arena);
    }
}

static chunk *add_chunk(tl_arena *arena, size_t size)
{
    check_limit(arena, size);
    if (size > SIZE_MAX - sizeof(chunk))
        run_out(arena);
    chunk *c = malloc(sizeof *c + size);
    if (c == NULL)
        run_out(arena);
    arena->taken += size;
    if (arena->next_size < LARGEST_CHUNK)
        arena->next_size *= 2;
    c->next = arena->chunks;
    arena->chunks = c;
    return c;
}

static unsigned char *aligned(unsigned char *p, size_t align)
{
    return p + (-(uintptr_t)p & (align - 1));
}

/* NULL: it has to lie in a chunk. */
static void *alloc_spilled(tl_arena *arena, size_t size, size_t align)
{
    enum { PAGE = 4096 }; /* at least */
    if (arena->spill == NULL || size < TL_ARENA_SPILLED || align > PAGE)
        return NULL;
    check_limit(arena, size);
    void *p = tl_spill_take(arena->spill, size);
    if (p != NULL)
        arena->taken += size;
    return p;
}

/* Beyond what is clean, or in a chunk yet to come. */
static void *alloc_slowly(tl_arena *arena, size_t size, size_t align)
{
    assert(arena->free <= arena->clean && arena->clean <= arena->end);
    if (size > SIZE_MAX - align)
        run_out(arena);
    void *spilled = alloc_spilled(arena, size, align);
    if (spilled != NULL)
        return spilled;
    size_t room = (size_t)(arena->end - arena->free);
    if (room < size + align && size + align > arena->next_size && room > FIRST_CHUNK)
        /* one large object must not retire a half-empty chunk */
        return memset(aligned(add_chunk(arena, size + align)->bytes, align), 0, size);
    if (room < size + align) {
        size_t want = size + align > arena->next_size ? size + align : arena->next_size;
        chunk *c = add_chunk(arena, want);
        arena->free = arena->clean = c->bytes;
        arena->end = c->bytes + want;
    }
    unsigned char *p = aligned(arena->free, align), *next = p + size;
    if (next > arena->clean) {
        size_t ahead = (size_t)(arena->end - next);
        unsigned char *clean = next + (ahead < CLEAN_STEP ? ahead : CLEAN_STEP);
        memset(arena->clean, 0, (size_t)(clean - arena->clean));
        arena->clean = clean;
    }
    arena->free = next;
    return p;
}

void *tl_arena_alloc(tl_arena *arena, size_t size, size_t align)
{
    assert(align != 0 && (align & (align - 1)) == 0);
    if (arena->fail_in != 0 && --arena->fail_in == 0)
        run_out(arena);
    size += size == 0;
    size_t padding = (size_t)(-(uintptr_t)arena->free & (align - 1));
    size_t clean = (size_t)(arena->clean - arena->free);
    if (clean < padding || clean - padding < size)
        return alloc_slowly(arena, size, align);
    unsigned char *p = arena->free + padding;
    arena->free = p + size;
    return p;
}

void *tl_arena_alloc_array(tl_arena *arena, size_t size, size_t count, size_t align)
{
    size_t total;
    if (__builtin_mul_overflow(size, count, &total))
        run_out(arena);
    return tl_arena_alloc(arena, total, align);
}

void *tl_arena_copy(tl_arena *arena, const void *bytes, size_t size, size_t align)
{
    void *p = tl_arena_alloc(arena, size, align);
    return size == 0 ? p : memcpy(p, bytes, size);
}

char *tl_arena_strndup(tl_arena *arena, const char *text, size_t size)
{
    assert(text != NULL);
    char *p = tl_arena_alloc(arena, size + 1, 1);
    memcpy(p, text, size);
    return p;
}

char *tl_arena_strdup(tl_arena *arena, const char *text)
{
    return tl_arena_strndup(arena, text, strlen(text));
}

char *tl_arena_vformat(tl_arena *arena, const char *format, va_list args)
{
    char most[256]; /* what fits is formatted once */
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(most, sizeof most, format, args);
    assert(size >= 0);
    char *p = tl_arena_alloc(arena, (size_t)size + 1, 1);
    if ((size_t)size < sizeof most)
        memcpy(p, most, (size_t)size + 1);
    else
        vsnprintf(p, (size_t)size + 1, format, again);
    va_end(again);
    return p;
}

char *tl_arena_format(tl_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *p = tl_arena_vformat(arena, format, args);
    va_end(args);
    return p;
}
