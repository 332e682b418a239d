/* tests/fuzz/fuzz_onnx.c: the bytes of a model. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_onnx_signature signature;
    tl_onnx *model = NULL;
    tl_graph *g;
    if (TL_ARENA_GUARD(arena) == 0) {
        tl_status status = tl_onnx_read_signature_memory(arena, bytes, size, &signature, &diag);
        fuzz_check_refusal(status, &diag);
        status = tl_onnx_read_memory(arena, bytes, size, NULL, NULL, 0, &model, &g, &diag);
        fuzz_check_refusal(status, &diag);
        if (status == TL_OK)
            fuzz_graph(arena, g);
    }
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    return 0;
}
