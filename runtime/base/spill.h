/* runtime/base/spill.h: large memory that lies in a file without a name, so that what is not looked at for a while need not be
 * resident: its pages are dropped, and come back when they are touched. */
#ifndef TL_RUNTIME_BASE_SPILL_H
#define TL_RUNTIME_BASE_SPILL_H
#include <stdbool.h>
#include <stddef.h>

typedef struct tl_spill tl_spill;

/* The file is made in `folder` and is gone with the process, however that ends. NULL where that does not work or gains nothing:
 * no such folder, or one that is itself in memory (tmpfs). Not thread-safe. */
tl_spill *tl_spill_create(const char *folder);
void tl_spill_destroy(tl_spill *spill); /* with all that was taken; NULL is fine */
/* `size` bytes of zeros, aligned to a page. What was taken before it is dropped from memory, and keeps its bytes. NULL: the
 * disk is full. */
void *tl_spill_take(tl_spill *spill, size_t size);
/* Whether all of these bytes lie in it. */
bool tl_spill_has(const tl_spill *spill, const void *data, size_t size);

#endif
