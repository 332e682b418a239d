/* tests/bench/options.c: what the benchmarks of kernels are told, and what they say first. */
#include "tests/bench/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/device/peak.h"
#include "runtime/device/pool.h"
#include "runtime/device/topology.h"

bool bench_options_parse(int argc, char **argv, double seconds, bench_options *out)
{
    *out = (bench_options){ .threads = 1, .seconds = seconds, .numerics = TL_NUMERICS_RELAXED };
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
            continue;
        }
        if (value == NULL)
            return false;
        if (strcmp(argv[i], "--threads") == 0)
            out->threads = atoi(value);
        else if (strcmp(argv[i], "--seconds") == 0)
            out->seconds = atof(value);
        else if (strcmp(argv[i], "--target") == 0)
            out->target = value;
        else if (strcmp(argv[i], "--show") == 0)
            out->show = value;
        else if (strcmp(argv[i], "--numerics") == 0 && strcmp(value, "strict") == 0)
            out->numerics = TL_NUMERICS_STRICT;
        else
            return false;
        i++;
    }
    out->names = argv + i;
    out->name_count = argc - i;
    return out->threads >= 1 && out->threads <= TL_MAX_THREADS;
}

void bench_print_machine(const bench_options *options, const tl_target *target)
{
    const char *cpu = tl_topology_get()->cpu_name, *isa = tl_isa_infos[target->isa].text;
    const char *peak = tl_peak_isa(tl_isa_infos[target->isa].vector_bits);
    if (options->json)
        printf("{\"record\":\"machine\",\"cpu\":\"%s\",\"isa\":\"%s\",\"peak\":\"%s\","
               "\"threads\":%d}\n",
               cpu, isa, peak, options->threads);
    else
        printf("%s, code for %s, %d thread%s; peak: %s multiply-adds in registers\n\n", cpu, isa,
               options->threads, options->threads == 1 ? "" : "s", peak);
}
