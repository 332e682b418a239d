/* runtime/base/arena.c: a list of chunks, each twice as large as the last, up to a megabyte. */
#include "runtime/base/arena.h"
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t size, used; /* of `bytes` */
    unsigned char bytes[];
} chunk;

struct tl_arena {
    chunk *chunks; /* the newest, which serves, first */
    size_t limit, taken, next_size;
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
    free(arena);
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

size_t tl_arena_used(const tl_arena *arena)
{
    return arena->taken;
}

static _Noreturn void run_out(tl_arena *arena)
{
    if (!arena->guarded)
        abort();
    longjmp(arena->escape, 1);
}

/* A chunk that holds at least `size` bytes at any alignment asked for. */
static chunk *add_chunk(tl_arena *arena, size_t size)
{
    size_t want = size > arena->next_size ? size : arena->next_size;
    if (want > SIZE_MAX - sizeof(chunk) ||
        (arena->limit != 0 && (want > arena->limit || arena->taken > arena->limit - want)))
        run_out(arena);

    chunk *c = malloc(sizeof *c + want);
    if (c == NULL)
        run_out(arena);
    c->size = want;
    c->used = 0;
    arena->taken += want;
    if (arena->next_size < LARGEST_CHUNK)
        arena->next_size *= 2;

    /* a chunk made for one large object must not retire a half-empty serving chunk */
    chunk *serving = arena->chunks;
    if (serving != NULL && want == size && serving->size - serving->used > FIRST_CHUNK) {
        c->next = serving->next;
        serving->next = c;
    } else {
        c->next = serving;
        arena->chunks = c;
    }
    return c;
}

void *tl_arena_alloc(tl_arena *arena, size_t size, size_t align)
{
    assert(align != 0 && (align & (align - 1)) == 0);
    if (arena->fail_in != 0 && --arena->fail_in == 0)
        run_out(arena);
    if (size == 0)
        size = 1;

    chunk *c = arena->chunks;
    for (int tries = 0; tries < 2; tries++) {
        if (c != NULL) {
            uintptr_t start = (uintptr_t)c->bytes + c->used;
            size_t padding = (size_t)(-start & (align - 1));
            if (c->size - c->used >= padding && c->size - c->used - padding >= size) {
                unsigned char *p = c->bytes + c->used + padding;
                c->used += padding + size;
                return memset(p, 0, size);
            }
        }
        if (size > SIZE_MAX - align)
            run_out(arena);
        c = add_chunk(arena, size + align);
    }
    run_out(arena);
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
