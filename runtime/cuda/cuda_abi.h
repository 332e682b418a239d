/* runtime/cuda/cuda_abi.h: as much of the CUDA Driver API as is used, in our own words: types, numbers, layouts. They are an
 * ABI: nothing here may change. No CUDA header is needed to build, no CUDA library to link. */
#ifndef TL_RUNTIME_CUDA_CUDA_ABI_H
#define TL_RUNTIME_CUDA_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

typedef int cu_result, cu_device;
typedef uint64_t cu_address;
typedef struct cu_context_body *cu_context;
typedef struct cu_module_body *cu_module;
typedef struct cu_function_body *cu_function;
typedef struct cu_stream_body *cu_stream;
typedef struct cu_event_body *cu_event;
typedef struct cu_graph_body *cu_graph;
typedef struct cu_graph_exec_body *cu_graph_exec;
typedef struct cu_link_body *cu_link;

typedef struct {
    unsigned char bytes[16];
} cu_uuid;

typedef struct {
    _Alignas(128) uint64_t opaque[16];
} cu_tensor_map;

typedef struct {
    unsigned id;
    char pad[8 - sizeof(unsigned)];
    union {
        char pad[64];
        unsigned cluster[3];
    } value;
} cu_launch_attribute;

typedef struct {
    unsigned grid[3], block[3], dynamic_shared;
    cu_stream stream;
    cu_launch_attribute *attributes;
    unsigned attribute_count;
} cu_launch_config;

enum { /* cu_result, as far as they are told apart */
       CU_SUCCESS = 0,
       CU_OUT_OF_MEMORY = 2,
       CU_STUB_LIBRARY = 34,
       CU_NO_DEVICE = 100,
       CU_INVALID_IMAGE = 200,
       CU_NO_BINARY_FOR_GPU = 209,
       CU_INVALID_PTX = 218,
       CU_UNSUPPORTED_PTX_VERSION = 222,
       CU_NOT_FOUND = 500,
       CU_NOT_READY = 600,
       CU_ILLEGAL_ADDRESS = 700,
       CU_LAUNCH_OUT_OF_RESOURCES = 701,
       CU_LAUNCH_TIMEOUT = 702,
       CU_HARDWARE_STACK_ERROR = 714, /* the first of those of hardware */
       CU_LAUNCH_FAILED = 719,        /* the last */
};

enum { /* of a device */
       CU_DEVICE_WARP_SIZE = 10,
       CU_DEVICE_CLOCK_KHZ = 13,
       CU_DEVICE_MULTIPROCESSORS = 16,
       CU_DEVICE_MEMORY_KHZ = 36,
       CU_DEVICE_MEMORY_BITS = 37,
       CU_DEVICE_L2_BYTES = 38,
       CU_DEVICE_THREADS_SM = 39,
       CU_DEVICE_MAJOR = 75,
       CU_DEVICE_MINOR = 76,
       CU_DEVICE_SHARED_SM = 81,
       CU_DEVICE_REGISTERS_SM = 82,
       CU_DEVICE_SHARED_BLOCK = 97, /* that a kernel may opt in to */
       CU_DEVICE_BLOCKS_SM = 106,
};

enum { /* of a function */
       CU_FUNCTION_MAX_THREADS = 0,
       CU_FUNCTION_SHARED_BYTES = 1,
       CU_FUNCTION_LOCAL_BYTES = 3,
       CU_FUNCTION_REGISTERS = 4,
       CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
};

enum { /* options of the compiler in the driver */
       CU_JIT_INFO_LOG = 3,
       CU_JIT_INFO_LOG_SIZE = 4,
       CU_JIT_ERROR_LOG = 5,
       CU_JIT_ERROR_LOG_SIZE = 6,
       CU_JIT_OPTIMIZATION_LEVEL = 7,
       CU_JIT_LOG_VERBOSE = 12,
       CU_JIT_INPUT_PTX = 1, /* what a linker is given */
};

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_ATTRIBUTE_CLUSTER = 4,
};

enum { /* of tensor maps */
       CU_MAP_UINT8 = 0,
       CU_MAP_UINT16 = 1,
       CU_MAP_INT32 = 3,
       CU_MAP_FLOAT16 = 6,
       CU_MAP_FLOAT32 = 7,
       CU_MAP_FLOAT64 = 8,
       CU_MAP_BFLOAT16 = 9,
       CU_MAP_NOT_INTERLEAVED = 0,
       CU_MAP_L2_PROMOTION_256 = 3,
       CU_MAP_FILL_ZEROS = 0,
};

#endif
