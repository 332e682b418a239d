/* driver/pipeline/device_target.c: targets that are devices. */
#include "driver/pipeline/device_target.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulated_device.h"

static const char real[] = "cuda", emulated[] = "cuda-emulated";

static bool begins_with_device(const char *name, const char *device)
{
    size_t size = strlen(device);
    return strncmp(name, device, size) == 0 &&
           (name[size] == '\0' || name[size] == ':' || name[size] == ',');
}

bool tl_target_is_device(const char *name)
{
    return name != NULL && (begins_with_device(name, real) || begins_with_device(name, emulated));
}

bool tl_target_is_foreign_device(const char *name)
{
    return name != NULL && begins_with_device(name, real) && name[sizeof real - 1] == ',';
}

static const char *arch_of(const char *name)
{
    const char *comma = strchr(name, ',');
    return comma != NULL ? comma + 1 : NULL;
}

tl_status tl_target_device_name(const char *name, char out[32], tl_diag *diag)
{
    if (!tl_target_is_device(name))
        return tl_fail(diag, TL_UNSUPPORTED,
                       "target %.40s: nothing runs there; --target cuda is a GPU of this machine",
                       name);
    size_t size = strcspn(name, ",");
    if (size >= 32)
        return tl_fail(diag, TL_BAD_ARGUMENT, "target %.40s: there is no such device", name);
    memcpy(out, name, size);
    out[size] = '\0';
    return TL_OK;
}

tl_status tl_target_open_device(const char *name, tl_device **out, tl_diag *diag)
{
    char device[32];

    TL_TRY(tl_target_device_name(name, device, diag));
    tl_emulated_device_add();
    return tl_device_open(device, out, diag);
}

tl_status tl_target_of_device(const tl_device *device, const char *arch, tl_target *out,
                              tl_diag *diag)
{
    const tl_device_facts *f = &device->facts;
    int sm = (int)strtol(f->arch + 3, NULL, 10);
    const char *own = tl_target_gpu_arch(sm / 10, sm % 10);
    char name[64];

    if (own == NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "there is no code for %s, which is %s", f->name,
                       f->arch);
    snprintf(name, sizeof name, "%s,%.16s", real, arch != NULL ? arch : own);
    TL_TRY(tl_target_named(name, out, diag));
    if (out->gpu.is_exact ? out->gpu.sm != sm : out->gpu.sm > sm)
        return tl_fail(diag, TL_UNSUPPORTED, "code for %s does not run on %s, which is %s", arch,
                       f->name, f->arch);
    snprintf(out->device, sizeof out->device, "%s", f->fingerprint);
    out->cores = f->multiprocessors;
    out->l1_bytes = f->shared_sm;
    out->l2_bytes = f->l2_bytes;
    out->gpu.threads_sm = f->threads_sm;
    out->gpu.blocks_sm = f->blocks_sm;
    out->gpu.registers_sm = f->registers_sm;
    out->gpu.shared_block = f->shared_block;
    out->gpu.shared_sm = f->shared_sm;
    return TL_OK;
}

tl_status tl_target_of_name(const char *name, tl_target *out, tl_diag *diag)
{
    tl_device *device;

    if (tl_target_is_foreign_device(name))
        return tl_target_named(name, out, diag);
    tl_status status = tl_target_open_device(name, &device, diag);
    if (status != TL_OK) {
        tl_context(diag, "target %s (cuda,sm_90 compiles for a GPU that is elsewhere)", name);
        return status;
    }
    status = tl_target_of_device(device, arch_of(name), out, diag);
    tl_device_close(device);
    return status;
}
