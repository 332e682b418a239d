/* tests/fuzz/fuzz_tensor.c: a file that holds one tensor of ONNX. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

static char path[] = "/tmp/tilth_fuzz_tensor_XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

/* The bytes as a file that is written again and again. */
static void write_file(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    if (file < 0) {
        file = mkstemp(path);
        atexit(remove_file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_dtype dtype;
    tl_shape shape;
    const void *data;
    write_file(bytes, size);
    if (TL_ARENA_GUARD(arena) == 0)
        fuzz_check_refusal(tl_onnx_read_tensor_file(arena, path, &dtype, &shape, &data, &diag),
                           &diag);
    tl_arena_destroy(arena);
    return 0;
}
