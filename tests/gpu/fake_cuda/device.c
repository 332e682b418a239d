/* tests/gpu/fake_cuda/device.c: starting, the devices that there are, their contexts, and the names of errors. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdio.h>

enum { MAX_DEVICES = 4 };

struct cu_context_body {
    int device, users;
};
static struct cu_context_body contexts[MAX_DEVICES];
static _Thread_local cu_context current;

cu_result fake_begin(void)
{
    if (!fake.started)
        return NOT_INITIALIZED;
    if (fake.lost != 0)
        return fake.lost;
    return current != NULL && current->users > 0 ? CU_SUCCESS : INVALID_CONTEXT;
}

EXPORT(cuInit, (unsigned flags))
{
    (void)flags;
    fake_read_settings();
    fake.started = fake.say.fail_init == 0 && !fake.say.no_device;
    return fake.say.no_device ? CU_NO_DEVICE : fake.say.fail_init;
}

EXPORT(cuDriverGetVersion, (int *out))
{
    *out = fake.say.version;
    return CU_SUCCESS;
}

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
    { 0, "CUDA_SUCCESS", "no error" },
    { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available" },
    { 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver" },
    { 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when capturing" },
};

EXPORT(cuGetErrorName, (cu_result which, const char **out))
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == which)
            return *out = errors[i].name, CU_SUCCESS;
    return *out = NULL, INVALID_VALUE;
}

EXPORT(cuGetErrorString, (cu_result which, const char **out))
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == which)
            return *out = errors[i].text, CU_SUCCESS;
    return *out = NULL, INVALID_VALUE;
}

EXPORT(cuDeviceGetCount, (int *out))
{
    *out = fake.say.devices < MAX_DEVICES ? fake.say.devices : MAX_DEVICES;
    return fake.started ? CU_SUCCESS : NOT_INITIALIZED;
}

EXPORT(cuDeviceGet, (cu_device * out, int number))
{
    *out = number;
    return number >= 0 && number < fake.say.devices ? CU_SUCCESS : 101;
}

EXPORT(cuDeviceGetName, (char *out, int size, cu_device device))
{
    snprintf(out, (size_t)size, "Fake GPU %d", device);
    return CU_SUCCESS;
}

EXPORT(cuDeviceTotalMem_v2, (size_t * out, cu_device device))
{
    (void)device;
    *out = (size_t)fake.say.memory;
    return CU_SUCCESS;
}

EXPORT(cuDeviceGetUuid_v2, (cu_uuid * out, cu_device device))
{
    for (int i = 0; i < 16; i++)
        out->bytes[i] = (unsigned char)(16 * device + i);
    return CU_SUCCESS;
}

EXPORT(cuDeviceGetAttribute, (int *out, int which, cu_device device))
{
    static const struct {
        int which, value;
    } values[] = { { CU_DEVICE_WARP_SIZE, 32 },        { CU_DEVICE_CLOCK_KHZ, 1980000 },
                   { CU_DEVICE_MULTIPROCESSORS, 132 }, { CU_DEVICE_MEMORY_KHZ, 3201000 },
                   { CU_DEVICE_MEMORY_BITS, 6144 },    { CU_DEVICE_L2_BYTES, 1 << 20 },
                   { CU_DEVICE_THREADS_SM, 2048 },     { CU_DEVICE_SHARED_SM, 233472 },
                   { CU_DEVICE_REGISTERS_SM, 65536 },  { CU_DEVICE_SHARED_BLOCK, 232448 },
                   { CU_DEVICE_BLOCKS_SM, 32 } };
    (void)device;
    if (which == CU_DEVICE_MAJOR || which == CU_DEVICE_MINOR) {
        *out = which == CU_DEVICE_MAJOR ? fake.say.sm / 10 : fake.say.sm % 10;
        return CU_SUCCESS;
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].which == which)
            return *out = values[i].value, CU_SUCCESS;
    return INVALID_VALUE;
}

EXPORT(cuDevicePrimaryCtxRetain, (cu_context * out, cu_device device))
{
    if (!fake.started)
        return NOT_INITIALIZED;
    contexts[device].device = device;
    contexts[device].users++;
    *out = &contexts[device];
    return CU_SUCCESS;
}

EXPORT(cuDevicePrimaryCtxRelease_v2, (cu_device device))
{
    contexts[device].users--;
    return CU_SUCCESS;
}

EXPORT(cuCtxGetCurrent, (cu_context * out))
{
    *out = current;
    return CU_SUCCESS;
}

EXPORT(cuCtxSetCurrent, (cu_context context))
{
    current = context;
    return CU_SUCCESS;
}
