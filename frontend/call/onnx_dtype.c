/* frontend/call/onnx_dtype.c: what ONNX calls its data types (onnx.proto, TensorProto.DataType). */
#include "frontend/call/onnx_call.h"

const char *tl_onnx_dtype_text(int onnx)
{
    static const char *const names[] = {
        "undefined",      "float",      "uint8",          "int8",       "uint16",   "int16",
        "int32",          "int64",      "string",         "bool",       "float16",  "double",
        "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
        "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",     "float4e2m1",
        "float8e8m0",     "uint2",      "int2",
    };
    return onnx >= 0 && (size_t)onnx < sizeof names / sizeof names[0] ? names[onnx] : "unknown";
}
