/* runtime/base/arena.h: memory that lives exactly as long as one compile.
 *
 * Running out (of memory, or of the arena's own limit) does not travel as a status through
 * every constructor: the arena jumps back to the entry point that guards it, which destroys it
 * and returns TL_NO_MEMORY:
 *
 *     tl_arena *arena = tl_arena_create(limit);
 *     if (arena == NULL || TL_ARENA_GUARD(arena)) {
 *         tl_arena_destroy(arena);
 *         return tl_fail(diag, TL_NO_MEMORY, "...");
 *     }
 *
 * Between guard and jump nothing but the arena may need releasing, and arena calls never happen
 * under an LLVM or CUDA callback. An arena belongs to one thread at a time. Allocating from an
 * arena without a guard that runs out aborts: only tests may leave it unguarded. */
#ifndef TL_RUNTIME_BASE_ARENA_H
#define TL_RUNTIME_BASE_ARENA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tl_arena tl_arena;

/* `limit` bytes at most, 0 for no limit. NULL when not even the arena itself can be had. */
tl_arena *tl_arena_create(size_t limit);
void tl_arena_destroy(tl_arena *arena); /* frees every node at once; NULL is fine */

/* Zeroed, never NULL, `align` a power of two. Size 0 gives a valid distinct address. */
void *tl_arena_alloc(tl_arena *arena, size_t size, size_t align);
void *tl_arena_copy(tl_arena *arena, const void *bytes, size_t size, size_t align);
char *tl_arena_strdup(tl_arena *arena, const char *text);
char *tl_arena_strndup(tl_arena *arena, const char *text, size_t size);
char *tl_arena_format(tl_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *tl_arena_vformat(tl_arena *arena, const char *format, va_list args);

/* Makes the n-th allocation from now fail (n >= 1), for tests of what happens then; 0 turns it off. */
void tl_arena_fail_at(tl_arena *arena, size_t n);

/* What it may still give before its limit; SIZE_MAX: it has none. And how much it was asked for when it could not: 0, never. */
size_t tl_arena_room(const tl_arena *arena);
size_t tl_arena_refused(const tl_arena *arena);

/* From now on allocations of a megabyte and more lie in a file in `folder` where that can be (runtime/base/spill.h): until
 * they are looked at again, they are not resident. */
enum { TL_ARENA_SPILLED = 1 << 20 };
void tl_arena_spill_into(tl_arena *arena, const char *folder);
/* Whether these bytes lie there, so that their pages may rest. */
bool tl_arena_is_spilled(const tl_arena *arena, const void *data, size_t size);

/* The nesting of guards: the jump goes to the latest; TL_ARENA_GUARD is 0 on the way in, 1 after a jump. */
jmp_buf *tl_arena_escape(tl_arena *arena);
#define TL_ARENA_GUARD(arena) setjmp(*tl_arena_escape(arena))

/* A guard inside a guard, for a function that holds more than the arena (a file, a mapping): save the outer one,
 * set its own, and restore the outer one on every way out. */
typedef struct {
    jmp_buf escape;
    bool guarded;
} tl_arena_guard;
void tl_arena_guard_save(const tl_arena *arena, tl_arena_guard *out);
void tl_arena_guard_restore(tl_arena *arena, const tl_arena_guard *saved);

#define TL_NEW(arena, type) ((type *)tl_arena_alloc((arena), sizeof(type), _Alignof(type)))
#define TL_NEW_ARRAY(arena, type, count) \
    ((type *)tl_arena_alloc_array((arena), sizeof(type), (size_t)(count), _Alignof(type)))
void *tl_arena_alloc_array(tl_arena *arena, size_t size, size_t count, size_t align); /* checked */

#endif
