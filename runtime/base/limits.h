/* runtime/base/limits.h: what a process may take, and what it took. */
#ifndef TL_RUNTIME_BASE_LIMITS_H
#define TL_RUNTIME_BASE_LIMITS_H
#include <stdint.h>

/* Limits the process's address space to `bytes` beyond what it has already: in a sanitized build that is terabytes. Where
 * that cannot be told, or `bytes` is not above 0, nothing is limited. */
void tl_limit_memory(int64_t bytes);

/* The most that this process ever had resident, in bytes; 0 where that cannot be told. */
int64_t tl_peak_memory(void);

#endif
