/* runtime/cuda/cuda_code.c: kernels for a GPU: PTX that the driver compiles, or what it made of it before (a cubin).
 *
 * What code is for is checked before the driver sees it, so that the sentence says what is needed; what the driver's
 * compiler says of code that it refuses is in the sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cuda/cuda_private.h"

enum { LOG_SIZE = 4096 };

/* The options of the driver's compiler, and where it writes. */
typedef struct {
    char error[LOG_SIZE], info[LOG_SIZE];
    int names[6];
    void *values[6];
} jit_options;

static unsigned set_options(jit_options *o)
{
    const int names[6] = { CU_JIT_ERROR_LOG,     CU_JIT_ERROR_LOG_SIZE, CU_JIT_INFO_LOG,
                           CU_JIT_INFO_LOG_SIZE, CU_JIT_LOG_VERBOSE,    CU_JIT_OPTIMIZATION_LEVEL };
    void *const values[6] = { o->error,
                              (void *)(uintptr_t)sizeof o->error,
                              o->info,
                              (void *)(uintptr_t)sizeof o->info,
                              (void *)(uintptr_t)1,
                              (void *)(uintptr_t)4 };
    o->error[0] = o->info[0] = '\0';
    memcpy(o->names, names, sizeof names);
    memcpy(o->values, values, sizeof values);
    return 6;
}

/* The first line that says something. */
static void first_line(char *log)
{
    size_t blank = strspn(log, " \n\t");
    memmove(log, log + blank, strlen(log + blank) + 1);
    log[strcspn(log, "\n")] = '\0';
}

static tl_status refused(const cuda_device *d, const char *name, cu_result result, const char *call,
                         jit_options *o, tl_diag *diag)
{
    o->error[LOG_SIZE - 1] = '\0';
    first_line(o->error);
    if (result == CU_UNSUPPORTED_PTX_VERSION)
        return tl_fail(diag, TL_DEVICE, "kernel %s: the driver (%s) is too old for its PTX: %.300s",
                       name, d->base.facts.driver, o->error);
    if (result == CU_INVALID_PTX || result == CU_INVALID_IMAGE || result == CU_NO_BINARY_FOR_GPU)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "kernel %s: the driver (%s) does not take its code (%d): %.500s", name,
                       d->base.facts.driver, result,
                       o->error[0] != '\0' ? o->error : "it does not say why");
    return tl_cuda_failed(d->driver, result, call, diag);
}

/* Whether the device runs code of that form for `arch`. */
static tl_status check_arch(const cuda_device *d, const tl_descriptor *k, tl_diag *diag)
{
    int sm = atoi(k->arch + 3), own = 10 * d->major + d->minor;
    bool is_exact = strchr(k->arch + 3, 'a') != NULL;
    bool runs = is_exact                   ? sm == own
                : k->form == TL_FORM_CUBIN ? sm / 10 == d->major && sm <= own
                                           : sm <= own;

    if (tl_descriptor_is_gpu(k) && runs)
        return TL_OK;
    return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: %s for %s does not run on %s, which is %s",
                   k->name, tl_form_infos[k->form].text, k->arch, d->base.facts.name,
                   d->base.facts.arch);
}

static tl_status check_limits(const cuda_device *d, const tl_descriptor *k, tl_diag *diag)
{
    for (int i = 0; i < k->phase_count; i++) {
        const tl_launch *l = &k->launches[i];
        if (l->shared_bytes + l->dynamic_shared_bytes > d->base.facts.shared_block)
            return tl_fail(diag, TL_UNSUPPORTED,
                           "kernel %s: a block needs %lld bytes of shared memory, one of %s has "
                           "%lld",
                           k->name, (long long)(l->shared_bytes + l->dynamic_shared_bytes),
                           d->base.facts.name, (long long)d->base.facts.shared_block);
        if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1 && !d->base.facts.has_clusters)
            return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: %s has no clusters of blocks", k->name,
                           d->base.facts.name);
    }
    if (k->map_count > 0 && !d->base.facts.has_tensor_maps)
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: %s has no tensor memory accelerator",
                       k->name, d->base.facts.name);
    return tl_cuda_check_parameters(k, diag);
}

/* PTX has to end with a NUL. */
static char *terminated(const void *code, size_t size)
{
    char *text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, code, size);
        text[size] = '\0';
    }
    return text;
}

/* The driver's compiler as a linker of one piece; its result lives as long as `link`. */
static cu_result link_piece(const cuda_device *d, const char *name, char *ptx, size_t size,
                            jit_options *o, cu_link *link, tl_text *out)
{
    void *cubin = NULL;
    size_t cubin_size = 0;
    cu_result result = d->driver->link_create(set_options(o), o->names, o->values, link);

    if (result == CU_SUCCESS)
        result = d->driver->link_add(*link, CU_JIT_INPUT_PTX, ptx, size + 1, name, 0, NULL, NULL);
    if (result == CU_SUCCESS)
        result = d->driver->link_complete(*link, &cubin, &cubin_size);
    if (result == CU_SUCCESS)
        tl_text_add_bytes(out, cubin, cubin_size);
    return result;
}

tl_status tl_cuda_compile(tl_device *device, const tl_descriptor *k, const void *code, size_t size,
                          tl_text *out, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;
    cu_context before;
    cu_link link = NULL;

    TL_TRY(check_arch(d, k, diag));
    TL_TRY(tl_cuda_enter(d, &before, diag));
    char *ptx = terminated(code, size);
    jit_options *o = calloc(1, sizeof *o);
    cu_result result = CU_OUT_OF_MEMORY;
    tl_status status = TL_OK;
    if (ptx != NULL && o != NULL) {
        result = link_piece(d, k->name, ptx, size, o, &link, out);
        if (result != CU_SUCCESS)
            status = refused(d, k->name, result, "cuLinkComplete", o, diag);
    }
    if (link != NULL)
        d->driver->link_destroy(link);
    if (ptx == NULL || o == NULL || out->failed)
        status = tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", k->name);
    free(ptx);
    free(o);
    tl_status left =
        tl_cuda_leave(d, before, status == TL_OK ? CU_SUCCESS : result, "cuLinkComplete", NULL);
    return status != TL_OK ? status : left;
}

static tl_status load_module(cuda_device *d, cuda_kernel *k, const void *code, size_t size,
                             tl_diag *diag)
{
    const char *name = k->base.descriptor.name;
    char *image = terminated(code, size);
    jit_options *o = calloc(1, sizeof *o);
    tl_status status = TL_OK;

    if (image == NULL || o == NULL) {
        status = tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", name);
    } else {
        unsigned count = set_options(o);
        cu_result result = d->driver->module_load(&k->module, image, count, o->names, o->values);
        if (result != CU_SUCCESS) {
            k->module = NULL;
            status = refused(d, name, result, "cuModuleLoadDataEx", o, diag);
        }
    }
    free(image);
    free(o);
    return status;
}

static int function_attribute(const cuda_device *d, cu_function f, int which)
{
    int value = -1;
    return d->driver->function_attribute(&value, which, f) == CU_SUCCESS ? value : -1;
}

/* Finds the entry of a phase, asks what it needs, and lets it have as much shared memory as it says. */
static tl_status find_phase(const cuda_device *d, cuda_kernel *k, int phase, tl_diag *diag)
{
    tl_descriptor *of = &k->base.descriptor;
    tl_launch *l = (tl_launch *)&of->launches[phase]; /* ours: a copy */
    tl_function_name name = tl_descriptor_function(of, phase);
    cu_function *f = &k->functions[phase];
    cu_result result = d->driver->module_function(f, k->module, name.text);

    if (result == CU_NOT_FOUND)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s: its code has no entry %s", of->name,
                       name.text);
    if (result != CU_SUCCESS)
        return tl_cuda_failed(d->driver, result, "cuModuleGetFunction", diag);
    l->registers = function_attribute(d, *f, CU_FUNCTION_REGISTERS);
    l->spill_bytes = function_attribute(d, *f, CU_FUNCTION_LOCAL_BYTES);
    int most = function_attribute(d, *f, CU_FUNCTION_MAX_THREADS);
    int threads = l->block[0] * l->block[1] * l->block[2];
    if (most >= 0 && threads > most)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "kernel %s: a block of %d threads with %d registers each is more than the "
                       "%d threads that %s starts of it",
                       of->name, threads, l->registers, most, d->base.facts.name);
    if (l->dynamic_shared_bytes == 0)
        return TL_OK;
    result =
        d->driver->function_set(*f, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)l->dynamic_shared_bytes);
    return result == CU_SUCCESS ? TL_OK
                                : tl_cuda_failed(d->driver, result, "cuFuncSetAttribute", diag);
}

static tl_status copy_descriptor(cuda_kernel *k, const tl_descriptor *from, tl_diag *diag)
{
    k->arena = tl_arena_create(0);
    if (k->arena == NULL || TL_ARENA_GUARD(k->arena))
        return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", from->name);
    tl_descriptor_copy(k->arena, from, &k->base.descriptor);
    k->functions = TL_NEW_ARRAY(k->arena, cu_function, from->phase_count);
    return TL_OK;
}

static tl_status load(cuda_device *d, cuda_kernel *k, const tl_descriptor *from, const void *code,
                      size_t size, tl_diag *diag)
{
    cu_context before;

    if (!tl_descriptor_is_gpu(from))
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: a GPU does not run the code of a CPU",
                       from->name);
    TL_TRY(check_arch(d, from, diag));
    TL_TRY(check_limits(d, from, diag));
    TL_TRY(copy_descriptor(k, from, diag));
    TL_TRY(tl_cuda_enter(d, &before, diag));
    tl_status status = load_module(d, k, code, size, diag);
    for (int i = 0; status == TL_OK && i < from->phase_count; i++)
        status = find_phase(d, k, i, diag);
    tl_status left = tl_cuda_leave(d, before, CU_SUCCESS, "cuModuleLoadDataEx", diag);
    return status != TL_OK ? status : left;
}

tl_status tl_cuda_load(tl_device *device, const tl_descriptor *descriptor, const void *code,
                       size_t size, tl_device_kernel **out, tl_diag *diag)
{
    cuda_kernel *k = calloc(1, sizeof *k);

    if (k == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", descriptor->name);
    k->base.device = device;
    tl_status status = load((cuda_device *)device, k, descriptor, code, size, diag);
    if (status != TL_OK) {
        tl_cuda_unload(&k->base);
        return status;
    }
    *out = &k->base;
    return TL_OK;
}

void tl_cuda_unload(tl_device_kernel *kernel)
{
    cuda_kernel *k = (cuda_kernel *)kernel;
    cu_context before;

    if (k == NULL)
        return;
    cuda_device *d = (cuda_device *)k->base.device;
    if (k->module != NULL && tl_cuda_enter(d, &before, NULL) == TL_OK)
        tl_cuda_leave(d, before, d->driver->module_unload(k->module), "cuModuleUnload", NULL);
    tl_arena_destroy(k->arena);
    free(k);
}
