/* tests/gpu/emulated_driver.c: the driver without a GPU (fake_cuda.h), which executes kernels: by the LLVM module that stands
 * behind their PTX (TILTH_PTX_WITH_IR=1), in the emulator of a GPU (codegen/emulate). A library like the fake driver's,
 * build/VARIANT/tests/gpu/libcuda_emulated.so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate.h"
#include "runtime/device/cpu.h"
#include "tests/gpu/fake_cuda.h"

void fake_cuda_register(const char *name, fake_kernel *kernel);

enum { MODULES = 64, PARAMETERS = 512, FAILED = 719, UNKNOWN = 801 };

/* Modules that were loaded, by a digest of their text: a model launches the same kernels again and again. */
static struct {
    uint64_t key;
    tl_emulated *module;
} modules[MODULES];
static int next_module;

static uint64_t digest(const char *text)
{
    uint64_t key = 1469598103934665603u;
    for (; *text != '\0'; text++)
        key = (key ^ (unsigned char)*text) * 1099511628211u;
    return key;
}

/* What PTX without a module (made without TILTH_PTX_WITH_IR=1) does is not known. */
static int complain(const fake_launch *l, const char *what)
{
    fprintf(stderr, "emulated GPU: %s: %s\n", l->name, what);
    return FAILED;
}

static tl_status host_target(tl_target *out, tl_diag *diag)
{
    TL_TRY(tl_target_named(tl_cpu_host_level(), out, diag));
    return tl_codegen_host(out->triple, out->cpu, out->features, diag);
}

static tl_status load(const char *ptx, tl_emulated **out, tl_diag *diag)
{
    tl_text ir = { 0 };
    tl_target host;
    uint64_t key = digest(ptx);

    for (int i = 0; i < MODULES; i++)
        if (modules[i].module != NULL && modules[i].key == key) {
            *out = modules[i].module;
            return TL_OK;
        }
    for (const char *line = strstr(ptx, "\n//ir "); line != NULL; line = strstr(line, "\n//ir ")) {
        line += strlen("\n//ir ");
        tl_text_format(&ir, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
    tl_status status = host_target(&host, diag);
    if (status == TL_OK)
        status = tl_emulated_load(&host, ir.data, ir.size, out, diag);
    tl_text_free(&ir);
    if (status != TL_OK)
        return status;
    tl_emulated_unload(modules[next_module].module);
    modules[next_module].module = *out;
    modules[next_module].key = key;
    next_module = (next_module + 1) % MODULES;
    return TL_OK;
}

/* By the driver's number of an element type. */
static uint8_t element_bytes(int type)
{
    static const uint8_t bytes[] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2 };
    return type >= 0 && type < (int)sizeof bytes ? bytes[type] : 0;
}

static tl_emulated_map convert(const fake_map *from)
{
    tl_emulated_map map = { .magic = TL_TENSOR_MAP_MAGIC,
                            .rank = (uint8_t)from->rank,
                            .element_bytes = element_bytes(from->type),
                            .swizzle_bytes =
                                (uint8_t)(from->swizzle == 0 ? 0 : 16 << from->swizzle),
                            .base = from->base };
    for (int i = 0; i < from->rank; i++) {
        map.extents[i] = from->extents[i];
        map.box[i] = from->box[i];
        if (i > 0)
            map.strides[i - 1] = from->strides[i];
    }
    return map;
}

static int execute(const fake_launch *l)
{
    tl_emulated *module;
    tl_diag diag = { 0 };
    void *arguments[PARAMETERS];
    tl_emulated_map maps[16];
    int map_count = 0;

    if (strstr(l->ptx, "\n//ir ") == NULL)
        return UNKNOWN;
    if (load(l->ptx, &module, &diag) != TL_OK)
        return complain(l, diag.text);
    tl_emulated_buffer *buffers = calloc((size_t)l->buffer_count + 1, sizeof *buffers);
    for (int i = 0; i < l->buffer_count; i++)
        buffers[i] = (tl_emulated_buffer){ l->buffers[i].base, (int64_t)l->buffers[i].size, true };
    for (int i = 0; i < l->parameter_count; i++) {
        arguments[i] = l->parameters[i];
        if (l->sizes[i] == 128 && map_count < 16) {
            maps[map_count] = convert(l->parameters[i]);
            arguments[i] = &maps[map_count++];
        }
    }
    tl_emulated_launch launch = { .shared_bytes = l->dynamic_shared,
                                  .arguments = arguments,
                                  .argument_count = l->parameter_count,
                                  .buffers = buffers,
                                  .buffer_count = l->buffer_count };
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = (int)l->grid[i];
        launch.block[i] = (int)l->block[i];
        launch.cluster[i] = (int)l->cluster[i];
    }
    int kernel = tl_emulated_find(module, l->name);
    tl_status status = kernel < 0 ? tl_fail(&diag, TL_BAD_ARGUMENT, "the module has no such kernel")
                                  : tl_emulated_run(module, kernel, &launch, &diag);
    free(buffers);
    return status == TL_OK ? 0 : complain(l, diag.text);
}

__attribute__((constructor)) static void start(void)
{
    fake_cuda_register("", execute);
}
