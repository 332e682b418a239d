/* runtime/device/cpu.c: asks the processor (cpuid) and what the operating system saves of it (XCR0). */
#include "runtime/device/cpu.h"
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef struct {
    const char *text;
    unsigned leaf, sub;
    int reg, bit, level;
    uint64_t state;
} feature_info;

static const feature_info infos[TL_CPU_FEATURE_COUNT] = {
#define FEATURE(name, leaf, sub, reg, bit, level, state) \
    [TL_CPU_##name] = { #name, leaf, sub, reg, bit, level, state },
#include "runtime/device/cpu_features.def"
#undef FEATURE
};
_Static_assert(TL_CPU_FEATURE_COUNT <= 64, "one bit a feature");

static const char *const level_names[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

#if defined(__x86_64__)
static uint64_t saved_state(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c >> 27 & 1) == 0) /* OSXSAVE */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (uint64_t)d << 32 | a;
}

static uint64_t detect(void)
{
    uint64_t bits = 0, state = saved_state();

    for (int i = 0; i < TL_CPU_FEATURE_COUNT; i++) {
        unsigned r[4] = { 0 };
        if (!__get_cpuid_count(infos[i].leaf, infos[i].sub, &r[0], &r[1], &r[2], &r[3]))
            continue;
        if ((r[infos[i].reg] >> infos[i].bit & 1) != 0 &&
            (state & infos[i].state) == infos[i].state)
            bits |= UINT64_C(1) << i;
    }
    return bits;
}
static const char machine[] = "x86_64";
#else
static uint64_t detect(void)
{
    return 0;
}
#if defined(__aarch64__)
static const char machine[] = "aarch64";
#else
static const char machine[] = "other";
#endif
#endif

static tl_cpu_features host;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void probe(void)
{
    strcpy(host.machine, machine);
    host.bits = detect();
}

const tl_cpu_features *tl_cpu_host(void)
{
    pthread_once(&once, probe);
    return &host;
}

bool tl_cpu_level(const char *name, tl_cpu_features *out)
{
    tl_cpu_features found = { "aarch64", 0 };

    if (strcmp(name, "aarch64") == 0) {
        *out = found;
        return true;
    }
    for (int level = 0; level < LEVELS; level++) {
        if (strcmp(name, level_names[level]) != 0)
            continue;
        strcpy(found.machine, "x86_64");
        for (int i = 0; i < TL_CPU_FEATURE_COUNT; i++)
            if (infos[i].level != 0 && infos[i].level <= level + 1)
                found.bits |= UINT64_C(1) << i;
        *out = found;
        return true;
    }
    return false;
}

const char *tl_cpu_host_level(void)
{
    tl_cpu_features level;

    for (int i = LEVELS - 1; i >= 0; i--)
        if (tl_cpu_level(level_names[i], &level) && tl_cpu_runs(tl_cpu_host(), &level))
            return level_names[i];
    return tl_cpu_host()->machine;
}

bool tl_cpu_runs(const tl_cpu_features *cpu, const tl_cpu_features *code)
{
    return strcmp(cpu->machine, code->machine) == 0 && (code->bits & ~cpu->bits) == 0;
}

void tl_cpu_print(const tl_cpu_features *cpu, tl_text *out)
{
    const char *space = "";

    for (int i = 0; i < TL_CPU_FEATURE_COUNT; i++) {
        if (!tl_cpu_has(cpu, (tl_cpu_feature)i))
            continue;
        tl_text_format(out, "%s%s", space, infos[i].text);
        space = " ";
    }
}

static bool find_feature(const char *word, size_t size, int *out)
{
    for (int i = 0; i < TL_CPU_FEATURE_COUNT; i++)
        if (strlen(infos[i].text) == size && memcmp(infos[i].text, word, size) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool tl_cpu_parse(const char *machine_name, const char *words, tl_cpu_features *out)
{
    tl_cpu_features found = { .bits = 0 };

    if (strlen(machine_name) >= sizeof found.machine)
        return false;
    strcpy(found.machine, machine_name);
    for (const char *at = words + strspn(words, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        int feature;
        if (!find_feature(at, size, &feature))
            return false;
        found.bits |= UINT64_C(1) << feature;
        at += size;
    }
    *out = found;
    return true;
}

/* The first processor's part of /proc/cpuinfo, without what changes from hour to hour. */
void tl_cpu_identity(tl_text *out)
{
    static const char *const told[] = { "vendor_id", "cpu family", "model\t", "stepping",
                                        "flags",     "CPU ",       "Features" };
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return;
    while (getline(&line, &capacity, file) > 1) /* an empty line ends it */
        for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
            if (strncmp(line, told[i], strlen(told[i])) == 0)
                tl_text_add(out, line);
    free(line);
    fclose(file);
}
