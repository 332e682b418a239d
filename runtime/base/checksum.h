/* runtime/base/checksum.h: a fast 64-bit checksum (about memory speed) for what we wrote ourselves
 * and read back: it finds damage, it does not resist an attacker. Keys use tl_digest
 * (runtime/base/map.h). */
#ifndef TL_RUNTIME_BASE_CHECKSUM_H
#define TL_RUNTIME_BASE_CHECKSUM_H
#include <stddef.h>
#include <stdint.h>

uint64_t tl_checksum(const void *bytes, size_t size);
/* The same of a file's mapping, whose pages leave memory once they were read (tl_pages_rest). */
uint64_t tl_checksum_mapped(const void *bytes, size_t size);

#endif
