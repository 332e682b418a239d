/* runtime/base/pages.h: memory for much data that is walked through again and again. */
#ifndef TL_RUNTIME_BASE_PAGES_H
#define TL_RUNTIME_BASE_PAGES_H
#include <stddef.h>

#define TL_LARGE_PAGE ((size_t)2 << 20) /* bytes */

/* `size` > 0 bytes of zeros, aligned to a page; in large pages, and aligned to these, where they fit and the system has them:
 * a core that reads 5 MB from memory walks through a thousand small ones, and its prefetchers stop at the end of each. NULL:
 * no memory. The caller owns it and gives it back with the same size. */
void *tl_pages_take(size_t size);
void tl_pages_give(void *memory, size_t size); /* NULL: nothing */

/* The whole pages among these bytes of a file's mapping leave memory; they come back when they are read, from the system's
 * cache of the file or from the file (MADV_PAGEOUT would drop them there, too: the next cold load of a ResNet-50 then reads
 * 100 MB from disk). Of other memory this would destroy the contents. */
void tl_pages_rest(const void *data, size_t size);

#endif
