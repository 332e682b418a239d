/* tests/codegen/compiled.h: compiles a program for this machine (or another ISA of it) and runs it as the executor would:
 * phase by phase, each phase's iterations shared out among threads. */
#ifndef TL_TESTS_COMPILED_H
#define TL_TESTS_COMPILED_H
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"

#define COMPILED_THREADS 3

/* The host, or the host restricted to a named ISA ("x86-64-v3"). */
static inline tl_status compiled_target(const char *isa, tl_target *out, tl_diag *diag)
{
    char triple[64], cpu[32], features[2048];
    TL_TRY(tl_codegen_host(triple, cpu, features, diag));
    const char *name = isa;
    if (isa == NULL) {
        bool is_512 =
            strstr(features, "+avx512bw") != NULL && strstr(features, "+avx512vl") != NULL;
        name = strncmp(triple, "aarch64", 7) == 0  ? "aarch64"
               : is_512                            ? "x86-64-v4"
               : strstr(features, "+avx2") != NULL ? "x86-64-v3"
                                                   : "x86-64";
    }
    TL_TRY(tl_target_named(name, out, diag));
    memcpy(out->triple, triple, sizeof triple);
    if (isa == NULL) {
        memcpy(out->cpu, cpu, sizeof cpu);
        memcpy(out->features, features, sizeof features);
        out->has_vnni = strstr(features, "+avx512vnni") != NULL;
    }
    return TL_OK;
}

/* Whether this machine can run code of the ISA. */
static inline bool compiled_runs_here(const char *isa)
{
    char triple[64], cpu[32], features[2048];
    if (tl_codegen_host(triple, cpu, features, NULL) != TL_OK)
        return false;
    if (strcmp(isa, "x86-64-v4") == 0)
        return strstr(features, "+avx512bw") != NULL && strstr(features, "+avx512vl") != NULL;
    if (strcmp(isa, "x86-64-v3") == 0)
        return strstr(features, "+avx2") != NULL && strstr(features, "+fma") != NULL;
    return strncmp(triple, "x86_64", 6) == 0;
}

typedef struct {
    tl_jit *jit;
    tl_jit_kernel *kernel;
    tl_descriptor descriptor;
} compiled;

static inline tl_status compiled_make(tl_arena *arena, const tl_program *program, bool prepare,
                                      const tl_target *target, compiled *out, tl_diag *diag)
{
    tl_text object = { 0 };
    *out = (compiled){ 0 };
    tl_status status = tl_codegen_compile(arena, program, prepare, target, TL_EMIT_OBJECT, &object,
                                          &out->descriptor, diag);
    if (status == TL_OK)
        status = tl_jit_create(target, &out->jit, diag);
    if (status == TL_OK)
        status =
            tl_jit_add(out->jit, object.data, object.size, &out->descriptor, &out->kernel, diag);
    tl_text_free(&object);
    return status;
}

static inline void compiled_free(compiled *c)
{
    tl_jit_remove(c->kernel);
    tl_jit_destroy(c->jit);
}

typedef struct {
    tl_phase_fn *phase;
    const tl_kernel_args *args;
    int64_t begin, end;
    int thread;
} compiled_share;

static inline void *compiled_run_share(void *context)
{
    const compiled_share *share = context;
    share->phase(share->args, share->begin, share->end, share->thread);
    return NULL;
}

/* `buffers`: params, then prepared ones. */
static inline void compiled_run(const compiled *c, void *const *buffers, const int64_t *dims,
                                int threads)
{
    const tl_descriptor *d = &c->descriptor;
    int64_t scratch = d->scratch_bytes, thread_scratch = d->thread_scratch_bytes;
    int64_t *extents = calloc((size_t)d->phase_count + 1, sizeof *extents);
    for (int p = 0; p < d->phase_count && !d->has_sizes; p++)
        extents[p] = d->extents[p];
    if (d->has_sizes)
        tl_jit_sizes(c->kernel)(dims, extents, &scratch, &thread_scratch);
    thread_scratch = (thread_scratch + 63) / 64 * 64;
    unsigned char *shared = aligned_alloc(64, (size_t)(scratch + 127) / 64 * 64);
    unsigned char *own = aligned_alloc(64, (size_t)(thread_scratch * threads + 64));
    memset(shared, 0xA5, (size_t)scratch);
    memset(own, 0x5A, (size_t)(thread_scratch * threads));
    tl_kernel_args args = { buffers, dims, shared, own, thread_scratch };
    for (int p = 0; p < d->phase_count; p++) {
        pthread_t ids[COMPILED_THREADS];
        compiled_share shares[COMPILED_THREADS];
        for (int t = 0; t < threads; t++) {
            shares[t] =
                (compiled_share){ tl_jit_phase(c->kernel, p), &args, extents[p] * t / threads,
                                  extents[p] * (t + 1) / threads, t };
            if (extents[p] == 1) { /* all of it on the first */
                shares[t].begin = t == 0 ? 0 : 1;
                shares[t].end = 1;
            }
        }
        for (int t = 0; t < threads; t++)
            if (shares[t].begin < shares[t].end)
                pthread_create(&ids[t], NULL, compiled_run_share, &shares[t]);
        for (int t = 0; t < threads; t++)
            if (shares[t].begin < shares[t].end)
                pthread_join(ids[t], NULL);
    }
    free(extents);
    free(shared);
    free(own);
}

#endif
