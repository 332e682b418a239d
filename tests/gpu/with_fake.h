/* tests/gpu/with_fake.h: a test's own CUDA driver: the fake one, loaded beside the test, with what FAKE_CUDA says. */
#ifndef TL_TESTS_GPU_WITH_FAKE_H
#define TL_TESTS_GPU_WITH_FAKE_H
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/gpu/fake_cuda.h"

static struct {
    fake_cuda_register_fn *add;
    fake_cuda_reset_fn *reset;
    fake_cuda_alive_fn *alive;
    fake_cuda_counts_fn *counts;
} fake;

/* Which of the two a test takes; the other one executes kernels (emulated_driver.c). */
#ifndef FAKE_LIBRARY
#define FAKE_LIBRARY "libcuda_fake.so"
#endif

/* "DIR/tests/gpu/libcuda_fake.so" of the test's own "DIR/tests/FOLDER/test_X". */
static inline void fake_path(char out[PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", out, PATH_MAX - 64);
    out[size > 0 ? size : 0] = '\0';
    for (int i = 0; i < 2; i++)
        *(strrchr(out, '/') != NULL ? strrchr(out, '/') : out) = '\0';
    strcat(out, "/gpu/" FAKE_LIBRARY);
}

/* The runtime will load it when it is asked for a GPU. */
static inline void fake_say(const char *what)
{
    char path[PATH_MAX];

    fake_path(path);
    setenv("TILTH_CUDA_LIBRARY", path, 1);
    setenv("FAKE_CUDA", what, 1);
    if (fake.reset == NULL) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            abort();
        }
        *(void **)&fake.add = dlsym(library, "fake_cuda_register");
        *(void **)&fake.reset = dlsym(library, "fake_cuda_reset");
        *(void **)&fake.alive = dlsym(library, "fake_cuda_alive");
        *(void **)&fake.counts = dlsym(library, "fake_cuda_counts");
    }
    fake.reset();
}

/* PTX that is an entry of so many addresses, as far as the fake driver reads it. */
static inline const char *fake_ptx(char *out, size_t size, const char *entry, int addresses)
{
    size_t at = (size_t)snprintf(out, size,
                                 ".version 7.0\n.target sm_80\n.address_size 64\n"
                                 ".visible .entry %s(",
                                 entry);
    for (int i = 0; i < addresses; i++)
        at += (size_t)snprintf(out + at, size - at, "%s.param .u64 %s_param_%d", i > 0 ? ", " : "",
                               entry, i);
    snprintf(out + at, size - at, ")\n.maxntid 256, 1, 1\n{\n\tret;\n}\n");
    return out;
}

#endif
