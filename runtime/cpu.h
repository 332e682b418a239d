/* runtime/cpu.h: which instructions this processor (and its operating system) lets us use, so
 * that code compiled elsewhere is refused with a sentence instead of dying on its first
 * instruction. */
#ifndef TL_RUNTIME_CPU_H
#define TL_RUNTIME_CPU_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"

/* Words of feature bits; a processor runs code made for `a` when it has every bit of it. */
typedef struct {
    char machine[16]; /* "x86_64", "aarch64" */
    uint64_t words[4];
} tl_cpu_features;

const tl_cpu_features *tl_cpu_host(void);
/* Of a level by name: "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"; false:
 * unknown. */
bool tl_cpu_level(const char *name, tl_cpu_features *out);
const char *tl_cpu_host_level(void); /* the highest of those names that the host reaches */
bool tl_cpu_runs(const tl_cpu_features *host, const tl_cpu_features *code);

#endif
