/* driver/pipeline/host_target.c: fills a tl_target from the runtime's probe and LLVM's host detection. */
#include "driver/pipeline/host_target.h"
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/pipeline/device_target.h"
#include "runtime/base/map.h"
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

/* What LLVM says of this machine. */
typedef struct {
    char triple[64], cpu[32], features[2048];
} llvm_host;

static void remembered_key(char out[33])
{
    tl_text text = { 0 };
    tl_digest digest;
    tl_text_format(&text, "host llvm %s\n", tl_codegen_llvm_version());
    tl_cpu_identity(&text);
    tl_digest_start(&digest);
    tl_digest_add(&digest, text.data, text.size);
    tl_digest_text(&digest, out);
    tl_text_free(&text);
}

static bool is_text(const char *bytes, size_t size)
{
    return memchr(bytes, '\0', size) != NULL;
}

static bool recall(tl_cache *cache, const char *key, llvm_host *out)
{
    tl_cached cached;
    if (cache == NULL || !tl_cache_find_note(cache, key, &cached))
        return false;
    bool good = cached.object_size == sizeof *out;
    if (good)
        memcpy(out, cached.object, sizeof *out);
    tl_cached_free(&cached);
    return good && is_text(out->triple, sizeof out->triple) && is_text(out->cpu, sizeof out->cpu) &&
           is_text(out->features, sizeof out->features);
}

static tl_status ask(tl_cache *cache, llvm_host *out, tl_diag *diag)
{
    char key[33];
    remembered_key(key);
    *out = (llvm_host){ 0 };
    if (recall(cache, key, out))
        return TL_OK;
    *out = (llvm_host){ 0 };
    TL_TRY(tl_codegen_host(out->triple, out->cpu, out->features, diag));
    if (cache != NULL)
        tl_cache_store_note(cache, key, out, sizeof *out);
    return TL_OK;
}

static tl_status host(tl_cache *cache, tl_target *out, tl_diag *diag)
{
    llvm_host said;
    TL_TRY(ask(cache, &said, diag));
    TL_TRY(tl_target_named(tl_cpu_host_level(), out, diag));
    snprintf(out->triple, sizeof out->triple, "%s", said.triple);
    snprintf(out->cpu, sizeof out->cpu, "%s", said.cpu);
    snprintf(out->features, sizeof out->features, "%s", said.features);
    out->has_vnni =
        strstr(said.features, "+avx512vnni") != NULL || strstr(said.features, "+avxvnni") != NULL;
    out->has_bf16_dot = strstr(said.features, "+avx512bf16") != NULL;
    add_machine(out);
    return TL_OK;
}

const char tl_target_words[] = "cpu"
#define ISA(name, text, ...) "|" text
#include "ir/program/target.def"
#undef ISA
                               "|cuda[:N][,sm_NN]";

tl_status tl_target_any(const char *name, tl_cache *cache, tl_target *out, tl_diag *diag)
{
    if (name == NULL || strcmp(name, "cpu") == 0)
        return host(cache, out, diag);
    if (tl_target_is_device(name))
        return tl_target_of_name(name, out, diag);
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

tl_status tl_target_check(const char *name, tl_diag *diag)
{
    if (tl_target_runs_here(name))
        return TL_OK;
    return tl_fail(diag, TL_UNSUPPORTED, "target %s: this processor reaches %s only", name,
                   tl_cpu_host_level());
}

tl_status tl_target_resolve(const char *name, tl_target *out, tl_diag *diag)
{
    TL_TRY(tl_target_any(name, NULL, out, diag));
    return tl_target_check(name, diag);
}

tl_status tl_target_find_place(const char *name, const tl_target *target, tl_target_place *out,
                               tl_diag *diag)
{
    *out = (tl_target_place){ .host = *target };
    if (!tl_target_is_gpu(target))
        return TL_OK;
    TL_TRY(tl_target_any(NULL, NULL, &out->host, diag));
    return tl_target_device_name(name, out->device, diag);
}
