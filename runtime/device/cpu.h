/* runtime/device/cpu.h: which instructions this processor (and its operating system) lets us use, so
 * that code compiled elsewhere is refused with a sentence instead of dying on its first
 * instruction. */
#ifndef TL_RUNTIME_DEVICE_CPU_H
#define TL_RUNTIME_DEVICE_CPU_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
#define FEATURE(name, leaf, sub, reg, bit, level, state) TL_CPU_##name,
#include "runtime/device/cpu_features.def"
#undef FEATURE
    TL_CPU_FEATURE_COUNT
} tl_cpu_feature;

typedef struct {
    char machine[16]; /* "x86_64", "aarch64" */
    uint64_t bits;    /* 1 << tl_cpu_feature */
} tl_cpu_features;

const tl_cpu_features *tl_cpu_host(void);
/* Of a level by name: "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"; false:
 * unknown. */
bool tl_cpu_level(const char *name, tl_cpu_features *out);
const char *tl_cpu_host_level(void); /* the highest of those names that the host reaches */

static inline bool tl_cpu_has(const tl_cpu_features *cpu, tl_cpu_feature feature)
{
    return (cpu->bits >> feature & 1) != 0;
}
/* Whether `host` runs code made for `code`. */
bool tl_cpu_runs(const tl_cpu_features *host, const tl_cpu_features *code);

/* Lines that differ between processors whose code may differ: what the system says of vendor, model and features. Empty where
 * it says nothing. */
void tl_cpu_identity(tl_text *out);

/* The features as words ("AVX FMA AVX2"), and back; an unknown word is false. */
void tl_cpu_print(const tl_cpu_features *cpu, tl_text *out);
bool tl_cpu_parse(const char *machine, const char *words, tl_cpu_features *out);

#endif
