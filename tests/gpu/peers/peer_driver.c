/* tests/gpu/peers/peer_driver.c: the driver's own copy, of which memory does no more than it can. */
#include "runtime/cuda/cuda_private.h"
#include "tests/gpu/peers/peer.h"

static const cuda_driver *driver;
static cu_stream stream;
static const peer_memory *memory;
static size_t bytes;

static tl_status start(void *of, tl_text *version, tl_diag *diag)
{
    stream = of;
    TL_TRY(tl_cuda_driver(&driver, diag));
    tl_text_format(version, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    return TL_OK;
}

static tl_status prepare(const peer_case *c, const peer_memory *m, int *ways, tl_diag *diag)
{
    (void)diag;
    memory = m;
    bytes = (size_t)peer_elements(c, 0) * tl_dtype_size(c->dtype);
    *ways = 1;
    return TL_OK;
}

static tl_status run(int way, tl_diag *diag)
{
    (void)way;
    cu_result result =
        driver->copy_within((cu_address)(uintptr_t)memory->result,
                            (cu_address)(uintptr_t)memory->operands[0], bytes, stream);
    return result == CU_SUCCESS ? TL_OK : tl_cuda_failed(driver, result, "cuMemcpyDtoDAsync", diag);
}

static bool is_channels_last(int way)
{
    (void)way;
    return false;
}

static void finish(void)
{
}

const peer_library peer_driver = { "driver", 1 << PEER_COPY,   start, prepare,
                                   run,      is_channels_last, finish };
