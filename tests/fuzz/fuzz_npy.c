/* tests/fuzz/fuzz_npy.c: an array of NumPy. */
#include "runtime/tensor/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_tensor tensor = { 0 };
    tl_diag diag = { 0 };
    tl_status status = tl_npy_parse(bytes, size, "fuzz", &tensor, &diag);
    fuzz_check_refusal(status, &diag);
    if (status == TL_OK && tl_tensor_elements(&tensor) > 0)
        tl_tensor_get(&tensor, tl_tensor_elements(&tensor) - 1);
    tl_tensor_free(&tensor);
    return 0;
}
