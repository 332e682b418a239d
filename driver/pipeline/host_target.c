/* driver/pipeline/host_target.c: fills a tl_target from the runtime's probe and LLVM's host detection. */
#include "driver/pipeline/host_target.h"
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/device/cpu.h"
#include "runtime/device/topology.h"

static void add_machine(tl_target *t)
{
    const tl_topology *machine = tl_topology_get();
    t->l1_bytes = machine->l1_bytes > 0 ? machine->l1_bytes : 32 << 10;
    t->l2_bytes = machine->l2_bytes > 0 ? machine->l2_bytes : 256 << 10;
    t->l3_bytes = machine->l3_bytes;
    t->cores = machine->threads;
}

static tl_status host(tl_target *out, tl_diag *diag)
{
    char triple[64], cpu[32], features[2048];
    TL_TRY(tl_codegen_host(triple, cpu, features, diag));
    TL_TRY(tl_target_named(tl_cpu_host_level(), out, diag));
    snprintf(out->triple, sizeof out->triple, "%s", triple);
    snprintf(out->cpu, sizeof out->cpu, "%s", cpu);
    snprintf(out->features, sizeof out->features, "%s", features);
    out->has_vnni = strstr(features, "+avx512vnni") != NULL || strstr(features, "+avxvnni") != NULL;
    out->has_bf16_dot = strstr(features, "+avx512bf16") != NULL;
    add_machine(out);
    return TL_OK;
}

const char tl_target_words[] = "cpu"
#define ISA(name, text, ...) "|" text
#include "ir/program/target.def"
#undef ISA
    ;

tl_status tl_target_any(const char *name, tl_target *out, tl_diag *diag)
{
    if (name == NULL || strcmp(name, "cpu") == 0)
        return host(out, diag);
    TL_TRY(tl_target_named(name, out, diag));
    if (!tl_target_is_gpu(out))
        add_machine(out);
    return TL_OK;
}

bool tl_target_runs_here(const char *name)
{
    tl_cpu_features needed;
    return name == NULL || !tl_cpu_level(name, &needed) || tl_cpu_runs(tl_cpu_host(), &needed);
}

tl_status tl_target_resolve(const char *name, tl_target *out, tl_diag *diag)
{
    TL_TRY(tl_target_any(name, out, diag));
    if (!tl_target_runs_here(name))
        return tl_fail(diag, TL_UNSUPPORTED, "target %s: this processor reaches %s only", name,
                       tl_cpu_host_level());
    return TL_OK;
}
