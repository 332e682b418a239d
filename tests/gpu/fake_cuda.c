/* tests/gpu/fake_cuda.c: a CUDA driver without a GPU (fake_cuda.h). */
#include "tests/gpu/fake_cuda.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif
#include <unistd.h>
#include "runtime/cuda/cuda_abi.h"

/* Declared and defined, for the linker knows them by name only. */
#define EXPORT(name, arguments)                                      \
    __attribute__((visibility("default"))) cu_result name arguments; \
    cu_result name arguments

enum {
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    CAPTURE_UNSUPPORTED = 900,
    NOT_SUPPORTED = 801,
};

/* Addresses of the device are the host's with bits that no host address has. */
#define TAG (UINT64_C(0x5a) << 48)

enum { MAX_PARAMETERS = 512, MAX_KERNELS = 256, MAX_DEVICES = 4, PHASES = 64 };

/* ---- what FAKE_CUDA says ---- */

static struct {
    int no_device, devices, version, sm, fail_init, fail_alloc, fail_load, lose_launch,
        wrong_launch, hang_launch, slow_launch, nothing;
    long long memory;
} say;

static struct {
    int allocations, loads, launches, graph_launches, copies_in, copies_out;
    long long memory;
} count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over everything below */
static int lost, alive;
static bool started;

static long long setting(const char *name, long long otherwise)
{
    const char *text = getenv("FAKE_CUDA");
    size_t size = strlen(name);

    for (; text != NULL && *text != '\0'; text += strcspn(text, ",") + (strchr(text, ',') != NULL))
        if (strncmp(text, name, size) == 0 &&
            (text[size] == '=' || text[size] == ',' || text[size] == '\0'))
            return text[size] == '=' ? atoll(text + size + 1) : 1;
    return otherwise;
}

static void read_settings(void)
{
    say.no_device = (int)setting("no-device", 0);
    say.devices = (int)setting("devices", 1);
    say.version = (int)setting("version", 12080);
    say.sm = (int)setting("sm", 90);
    say.memory = setting("memory", 1LL << 30);
    say.fail_init = (int)setting("fail-init", 0);
    say.fail_alloc = (int)setting("fail-alloc", 0);
    say.fail_load = (int)setting("fail-load", 0);
    say.lose_launch = (int)setting("lose-launch", 0);
    say.wrong_launch = (int)setting("wrong-launch", 0);
    say.hang_launch = (int)setting("hang-launch", 0);
    say.slow_launch = (int)setting("slow-launch", 0);
    say.nothing = (int)setting("nothing", 0);
}

/* ---- contexts and memory ---- */

struct cu_context_body {
    int device, users;
};
static struct cu_context_body contexts[MAX_DEVICES];
static _Thread_local cu_context current;

typedef struct allocation {
    struct allocation *next;
    unsigned char *host;
    size_t size;
    bool is_pinned; /* memory of the host */
} allocation;
static allocation *allocations;

static bool is_device(uint64_t address)
{
    return (address & (UINT64_C(0xff) << 48)) == TAG;
}

/* The host's address of `size` bytes of the device; NULL: they are not all allocated. */
static unsigned char *reach(uint64_t address, size_t size)
{
    if (!is_device(address))
        return NULL;
    uint64_t host = address ^ TAG;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (!a->is_pinned && host >= (uintptr_t)a->host && host - (uintptr_t)a->host <= a->size &&
            size <= a->size - (host - (uintptr_t)a->host))
            return (unsigned char *)(uintptr_t)host;
    return NULL;
}

static bool is_pinned(const void *address)
{
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (a->is_pinned && (uintptr_t)address >= (uintptr_t)a->host &&
            (uintptr_t)address < (uintptr_t)a->host + a->size)
            return true;
    return false;
}

/* What the driver has of an object. A lost device gives nothing back until its process ends, so that only `alive` counts who
 * forgets to. */
static void *own(size_t size)
{
    void *object = calloc(1, size);
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(object);
#endif
    return object;
}

static cu_result add_allocation(size_t size, bool pinned, unsigned char **out)
{
    allocation *a = own(sizeof *a);
    a->host = aligned_alloc(512, (size + 511) / 512 * 512);
    a->size = size;
    a->is_pinned = pinned;
    a->next = allocations;
    memset(a->host, 0xff, size); /* a NaN, so that what is read before it is written is seen */
    allocations = a;
    alive++;
    *out = a->host;
    return CU_SUCCESS;
}

static cu_result remove_allocation(const void *host, bool pinned)
{
    for (allocation **at = &allocations; *at != NULL; at = &(*at)->next)
        if ((*at)->host == host && (*at)->is_pinned == pinned) {
            allocation *a = *at;
            *at = a->next;
            if (!pinned)
                count.memory -= (long long)a->size;
            free(a->host);
            free(a);
            alive--;
            return CU_SUCCESS;
        }
    return INVALID_VALUE;
}

/* What every call that needs a context begins with. */
static cu_result begin(void)
{
    if (!started)
        return NOT_INITIALIZED;
    if (lost != 0)
        return lost;
    return current != NULL && current->users > 0 ? CU_SUCCESS : INVALID_CONTEXT;
}

#define BEGIN                   \
    pthread_mutex_lock(&lock);  \
    cu_result result = begin(); \
    if (result != CU_SUCCESS)   \
        goto end;
#define END                      \
    end:                         \
    pthread_mutex_unlock(&lock); \
    return result

/* ---- modules ---- */

struct cu_function_body {
    struct cu_module_body *module;
    char name[256];
    int parameter_count;
    size_t sizes[MAX_PARAMETERS];
    unsigned threads; /* .maxntid */
    int dynamic_shared;
};

struct cu_module_body {
    char *ptx;
    int function_count;
    struct cu_function_body functions[PHASES];
};

struct cu_link_body {
    char *ptx;
};

static const char cubin_start[] = "FAKECUBIN\n";

static struct {
    char name[256];
    fake_kernel *kernel;
} kernels[MAX_KERNELS];
static int kernel_count;

static fake_kernel *find_kernel(const char *name)
{
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].kernel;
    return NULL;
}

/* The size of one parameter's declaration: ".param .u64 .ptr .global x" or ".param .align 64 .b8 x[128]". */
static size_t parameter_size(const char *text, size_t length)
{
    static const struct {
        const char *type;
        size_t size;
    } types[] = { { ".u64", 8 }, { ".b64", 8 }, { ".s64", 8 }, { ".f64", 8 },
                  { ".u32", 4 }, { ".b32", 4 }, { ".s32", 4 }, { ".f32", 4 },
                  { ".u16", 2 }, { ".b16", 2 }, { ".u8", 1 },  { ".b8", 1 } };
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    const char *bracket = strchr(copy, '[');
    size_t many = bracket != NULL ? (size_t)atoll(bracket + 1) : 1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(copy, types[i].type) != NULL)
            return types[i].size * many;
    return 0;
}

/* The product of a ".maxntid 32, 4, 1". */
static unsigned read_threads(const char *directive)
{
    unsigned axes[3] = { 1, 1, 1 };
    sscanf(directive, ".maxntid %u, %u, %u", &axes[0], &axes[1], &axes[2]);
    return axes[0] * axes[1] * axes[2];
}

static bool read_entry(struct cu_module_body *m, const char *text)
{
    struct cu_function_body *f = &m->functions[m->function_count++];
    const char *open = strchr(text, '('), *close = open != NULL ? strchr(open, ')') : NULL;

    f->module = m;
    f->threads = 1024;
    if (sscanf(text, ".entry %255[A-Za-z0-9_$.]", f->name) != 1 || close == NULL)
        return false;
    for (const char *p = open + 1; p < close;) {
        size_t length = strcspn(p, ",)");
        if (memmem(p, length, ".param", 6) != NULL && f->parameter_count < MAX_PARAMETERS) {
            f->sizes[f->parameter_count] = parameter_size(p, length);
            if (f->sizes[f->parameter_count++] == 0)
                return false;
        }
        p += length + 1;
    }
    const char *body = strchr(close, '{'), *most = strstr(close, ".maxntid");
    if (most != NULL && body != NULL && most < body)
        f->threads = read_threads(most);
    return body != NULL;
}

/* ptxas, as far as it is needed. */
static cu_result compile(const char *ptx, char *log, size_t log_size, struct cu_module_body **out)
{
    const char *version = strstr(ptx, ".version"), *target = strstr(ptx, ".target sm_");

    count.loads++;
    if (say.fail_load != 0 && count.loads >= say.fail_load) {
        snprintf(log, log_size,
                 "ptxas application ptx input, line 12; error   : Arguments mismatch for "
                 "instruction 'mov'\nptxas fatal   : Ptx assembly aborted due to errors\n");
        return CU_INVALID_PTX;
    }
    if (version == NULL || target == NULL) {
        snprintf(log, log_size,
                 "ptxas application ptx input, line 1; fatal   : Missing .version directive\n");
        return CU_INVALID_PTX;
    }
    int sm = atoi(target + strlen(".target sm_"));
    bool is_exact =
        target[strlen(".target sm_") + strspn(target + strlen(".target sm_"), "0123456789")] == 'a';
    if (sm > say.sm || (is_exact && sm != say.sm))
        return CU_NO_BINARY_FOR_GPU;
    struct cu_module_body *m = own(sizeof *m);
    m->ptx = strdup(ptx);
    for (const char *e = ptx; (e = strstr(e, ".entry ")) != NULL; e++)
        if (m->function_count == PHASES || !read_entry(m, e)) {
            snprintf(log, log_size, "ptxas fatal   : an entry does not read\n");
            free(m->ptx);
            free(m);
            return CU_INVALID_PTX;
        }
    *out = m;
    return CU_SUCCESS;
}

/* Where the options say that errors are written. */
static char *error_log(unsigned n, const int *names, void **values, size_t *size)
{
    char *log = NULL;
    *size = 0;
    for (unsigned i = 0; i < n; i++) {
        if (names[i] == CU_JIT_ERROR_LOG)
            log = values[i];
        if (names[i] == CU_JIT_ERROR_LOG_SIZE)
            *size = (size_t)(uintptr_t)values[i];
    }
    return log;
}

static cu_result load_text(const char *image, unsigned n, int *names, void **values,
                           struct cu_module_body **out)
{
    char none[1];
    size_t size;
    char *log = error_log(n, names, values, &size);
    if (strncmp(image, cubin_start, sizeof cubin_start - 1) == 0)
        image += sizeof cubin_start - 1;
    return compile(image, log != NULL ? log : none, log != NULL ? size : 1, out);
}

/* ---- streams ---- */

typedef struct operation {
    struct operation *next;
    enum { COPY, FILL, LAUNCH, RECORD } kind;
    uint64_t to, from;       /* COPY, FILL */
    unsigned char *snapshot; /* COPY: what a pageable source was */
    size_t size;
    unsigned char byte;
    cu_function function; /* LAUNCH */
    unsigned grid[3], block[3], cluster[3], dynamic_shared;
    unsigned char *values; /* of its parameters, one behind the other, 128 bytes each */
    cu_event event;        /* RECORD */
} operation;

typedef struct {
    operation *first, **last;
} work;

struct cu_stream_body {
    work work;
    bool is_capturing;
    double ns; /* by the clock of the device */
};

struct cu_event_body {
    double ns;
    bool is_recorded;
};

struct cu_graph_body {
    work work;
};

struct cu_graph_exec_body {
    work work;
};

static void add(work *w, operation o)
{
    operation *copy = malloc(sizeof *copy);
    if (w->first == NULL)
        w->last = &w->first;
    *copy = o;
    copy->next = NULL;
    *w->last = copy;
    w->last = &copy->next;
}

static void forget(work *w)
{
    for (operation *o = w->first, *next; o != NULL; o = next) {
        next = o->next;
        free(o->snapshot);
        free(o->values);
        free(o);
    }
    w->first = NULL;
}

static void append_copy(work *to, const work *from)
{
    for (const operation *o = from->first; o != NULL; o = o->next) {
        operation copy = *o;
        if (o->values != NULL) {
            size_t size = (size_t)o->function->parameter_count * 128;
            copy.values = malloc(size + 1);
            memcpy(copy.values, o->values, size);
        }
        add(to, copy);
    }
}

static cu_result lose(int why)
{
    return lost = why;
}

static fake_buffer *list_buffers(int *many)
{
    *many = 0;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        *many += !a->is_pinned;
    fake_buffer *buffers = calloc((size_t)*many + 1, sizeof *buffers);
    *many = 0;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (!a->is_pinned)
            buffers[(*many)++] = (fake_buffer){ a->host, a->size };
    return buffers;
}

/* What a kernel is told: addresses of the device become those of the host. */
static cu_result execute_launch(cu_stream s, const operation *o)
{
    cu_function f = o->function;
    void *parameters[MAX_PARAMETERS];
    fake_kernel *kernel = find_kernel(f->name);
    uint64_t last = 0;
    int buffer_count;

    count.launches++;
    s->ns += 2000 +
             (double)o->grid[0] * o->grid[1] * o->grid[2] * o->block[0] * o->block[1] *
                 o->block[2] * 0.05 +
             say.slow_launch * 1e6;
    if (count.launches == say.lose_launch)
        return lose(CU_ILLEGAL_ADDRESS);
    while (count.launches == say.hang_launch)
        pause();
    _Static_assert(sizeof(fake_map) <= sizeof(cu_tensor_map), "a map is a parameter of that size");
    fake_buffer *buffers = list_buffers(&buffer_count);
    for (int i = 0; i < f->parameter_count; i++) {
        uint64_t value;
        parameters[i] = o->values + (size_t)i * 128;
        memcpy(&value, parameters[i], sizeof value);
        bool is_map = f->sizes[i] == sizeof(cu_tensor_map);
        if ((f->sizes[i] != 8 && !is_map) || !is_device(value))
            continue;
        if (reach(value, 0) == NULL) {
            free(buffers);
            return lose(CU_ILLEGAL_ADDRESS);
        }
        last = is_map ? last : value;
        value ^= TAG;
        memcpy(parameters[i], &value, sizeof value);
    }
    const fake_launch launch = { .ptx = f->module->ptx,
                                 .name = f->name,
                                 .grid = { o->grid[0], o->grid[1], o->grid[2] },
                                 .block = { o->block[0], o->block[1], o->block[2] },
                                 .cluster = { o->cluster[0], o->cluster[1], o->cluster[2] },
                                 .dynamic_shared = o->dynamic_shared,
                                 .parameter_count = f->parameter_count,
                                 .parameters = parameters,
                                 .sizes = f->sizes,
                                 .buffer_count = buffer_count,
                                 .buffers = buffers };
    if (kernel == NULL)
        kernel = find_kernel("");
    int failed = kernel != NULL ? kernel(&launch) : say.nothing ? CU_SUCCESS : NOT_SUPPORTED;
    free(buffers);
    if (failed == NOT_SUPPORTED || kernel == NULL)
        return failed; /* the kernel is not known: nothing happened to the device */
    if (failed != 0)
        return lose(failed);
    if (say.wrong_launch != 0 && count.launches >= say.wrong_launch && last != 0)
        memset(reach(last, 4), 0x41, 4); /* the first number of what comes last is 12.08 */
    return CU_SUCCESS;
}

static cu_result execute(cu_stream s, const operation *o)
{
    unsigned char *to, *from;

    switch (o->kind) {
    case COPY:
        to = is_device(o->to) ? reach(o->to, o->size) : (unsigned char *)(uintptr_t)o->to;
        from = o->snapshot != NULL  ? o->snapshot
               : is_device(o->from) ? reach(o->from, o->size)
                                    : (unsigned char *)(uintptr_t)o->from;
        s->ns += 1000 + (double)o->size / 20;
        if (to == NULL || from == NULL)
            return lose(CU_ILLEGAL_ADDRESS);
        memmove(to, from, o->size);
        return CU_SUCCESS;
    case FILL:
        to = reach(o->to, o->size);
        s->ns += 500 + (double)o->size / 1000;
        if (to == NULL)
            return lose(CU_ILLEGAL_ADDRESS);
        memset(to, o->byte, o->size);
        return CU_SUCCESS;
    case LAUNCH:
        return execute_launch(s, o);
    case RECORD:
        o->event->ns = s->ns;
        o->event->is_recorded = true;
        return CU_SUCCESS;
    }
    return INVALID_VALUE;
}

static cu_result run(cu_stream s)
{
    cu_result result = CU_SUCCESS;
    for (const operation *o = s->work.first; o != NULL && result == CU_SUCCESS; o = o->next)
        result = execute(s, o);
    forget(&s->work);
    return result;
}

/* ---- the entry points: starting ---- */

EXPORT(cuInit, (unsigned flags))
{
    (void)flags;
    read_settings();
    started = say.fail_init == 0 && !say.no_device;
    return say.no_device ? CU_NO_DEVICE : say.fail_init;
}

EXPORT(cuDriverGetVersion, (int *out))
{
    *out = say.version;
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
    *out = say.devices < MAX_DEVICES ? say.devices : MAX_DEVICES;
    return started ? CU_SUCCESS : NOT_INITIALIZED;
}

EXPORT(cuDeviceGet, (cu_device * out, int number))
{
    *out = number;
    return number >= 0 && number < say.devices ? CU_SUCCESS : 101;
}

EXPORT(cuDeviceGetName, (char *out, int size, cu_device device))
{
    snprintf(out, (size_t)size, "Fake GPU %d", device);
    return CU_SUCCESS;
}

EXPORT(cuDeviceTotalMem_v2, (size_t * out, cu_device device))
{
    (void)device;
    *out = (size_t)say.memory;
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
        *out = which == CU_DEVICE_MAJOR ? say.sm / 10 : say.sm % 10;
        return CU_SUCCESS;
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].which == which)
            return *out = values[i].value, CU_SUCCESS;
    return INVALID_VALUE;
}

EXPORT(cuDevicePrimaryCtxRetain, (cu_context * out, cu_device device))
{
    if (!started)
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

/* ---- code ---- */

EXPORT(cuModuleLoadDataEx,
       (cu_module * out, const void *image, unsigned n, int *names, void **values))
{
    BEGIN
    result = load_text(image, n, names, values, out);
    alive += result == CU_SUCCESS;
    END;
}

EXPORT(cuModuleUnload, (cu_module module))
{
    BEGIN
    free(module->ptx);
    free(module);
    alive--;
    END;
}

EXPORT(cuModuleGetFunction, (cu_function * out, cu_module module, const char *name))
{
    BEGIN
    result = CU_NOT_FOUND;
    for (int i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i].name, name) == 0) {
            *out = &module->functions[i];
            result = CU_SUCCESS;
        }
    END;
}

EXPORT(cuFuncGetAttribute, (int *out, int which, cu_function f))
{
    BEGIN
    *out = which == CU_FUNCTION_MAX_THREADS ? (int)f->threads
           : which == CU_FUNCTION_REGISTERS ? 40
                                            : 0;
    END;
}

EXPORT(cuFuncSetAttribute, (cu_function f, int which, int value))
{
    BEGIN
    if (which == CU_FUNCTION_MAX_DYNAMIC_SHARED && value >= 0 && value <= 232448)
        f->dynamic_shared = value;
    else
        result = INVALID_VALUE;
    END;
}

EXPORT(cuLinkCreate_v2, (unsigned n, int *names, void **values, cu_link *out))
{
    BEGIN
        /* the log is the caller's until the link is complete, as the real one's */
        (void) n,
        (void)names, (void)values;
    *out = own(sizeof **out);
    alive++;
    END;
}

EXPORT(cuLinkAddData_v2, (cu_link link, int kind, void *data, size_t size, const char *name,
                          unsigned n, int *names, void **values))
{
    BEGIN
    struct cu_module_body *module;
    (void)name;
    result = kind == CU_JIT_INPUT_PTX && ((const char *)data)[size - 1] == '\0'
                 ? load_text(data, n, names, values, &module)
                 : INVALID_VALUE;
    if (result == CU_SUCCESS) {
        free(link->ptx);
        link->ptx = malloc(sizeof cubin_start + strlen(module->ptx));
        sprintf(link->ptx, "%s%s", cubin_start, module->ptx);
        free(module->ptx);
        free(module);
    }
    END;
}

EXPORT(cuLinkComplete, (cu_link link, void **out, size_t *size))
{
    BEGIN
    if (link->ptx == NULL)
        result = INVALID_VALUE;
    *out = link->ptx;
    *size = link->ptx != NULL ? strlen(link->ptx) : 0;
    END;
}

EXPORT(cuLinkDestroy, (cu_link link))
{
    BEGIN
    free(link->ptx);
    free(link);
    alive--;
    END;
}

/* ---- memory ---- */

EXPORT(cuMemAlloc_v2, (cu_address * out, size_t size))
{
    unsigned char *host;
    BEGIN
    count.allocations++;
    if ((say.fail_alloc != 0 && count.allocations >= say.fail_alloc) ||
        count.memory + (long long)size > say.memory) {
        result = CU_OUT_OF_MEMORY;
        goto end;
    }
    result = add_allocation(size, false, &host);
    count.memory += (long long)size;
    *out = (uintptr_t)host ^ TAG;
    END;
}

EXPORT(cuMemFree_v2, (cu_address address))
{
    BEGIN
    result = is_device(address) ? remove_allocation((void *)(uintptr_t)(address ^ TAG), false)
                                : INVALID_VALUE;
    END;
}

EXPORT(cuMemGetInfo_v2, (size_t * available, size_t *total))
{
    BEGIN
    *total = (size_t)say.memory;
    *available = (size_t)(say.memory - count.memory);
    END;
}

EXPORT(cuMemHostAlloc, (void **out, size_t size, unsigned flags))
{
    unsigned char *host;
    (void)flags;
    BEGIN
    result = add_allocation(size, true, &host);
    *out = host;
    END;
}

EXPORT(cuMemFreeHost, (void *address))
{
    BEGIN
    result = remove_allocation(address, true);
    END;
}

/* ---- streams ---- */

EXPORT(cuStreamCreate, (cu_stream * out, unsigned flags))
{
    (void)flags;
    BEGIN
    *out = own(sizeof **out);
    alive++;
    END;
}

EXPORT(cuStreamDestroy_v2, (cu_stream s))
{
    BEGIN
    result = run(s);
    free(s);
    alive--;
    END;
}

EXPORT(cuStreamSynchronize, (cu_stream s))
{
    BEGIN
    result = s->is_capturing ? CAPTURE_UNSUPPORTED : run(s);
    END;
}

/* Of memory that the system may move, a copy has read its source before the call returns, and has written its target. */
EXPORT(cuMemcpyHtoDAsync_v2, (cu_address to, const void *from, size_t size, cu_stream s))
{
    BEGIN
    operation o = { .kind = COPY, .to = to, .from = (uintptr_t)from, .size = size };
    count.copies_in++;
    if (reach(to, size) == NULL || is_device((uintptr_t)from)) {
        result = INVALID_VALUE;
        goto end;
    }
    if (!is_pinned(from)) {
        if (s->is_capturing) {
            result = CAPTURE_UNSUPPORTED;
            goto end;
        }
        o.snapshot = malloc(size + 1);
        memcpy(o.snapshot, from, size);
    }
    add(&s->work, o);
    END;
}

EXPORT(cuMemcpyDtoHAsync_v2, (void *to, cu_address from, size_t size, cu_stream s))
{
    BEGIN
    count.copies_out++;
    if (reach(from, size) == NULL || is_device((uintptr_t)to)) {
        result = INVALID_VALUE;
        goto end;
    }
    if (s->is_capturing && !is_pinned(to)) {
        result = CAPTURE_UNSUPPORTED;
        goto end;
    }
    add(&s->work, (operation){ .kind = COPY, .to = (uintptr_t)to, .from = from, .size = size });
    if (!is_pinned(to))
        result = run(s);
    END;
}

EXPORT(cuMemcpyDtoDAsync_v2, (cu_address to, cu_address from, size_t size, cu_stream s))
{
    BEGIN
    if (reach(from, size) == NULL || reach(to, size) == NULL)
        result = INVALID_VALUE;
    else
        add(&s->work, (operation){ .kind = COPY, .to = to, .from = from, .size = size });
    END;
}

EXPORT(cuMemsetD8Async, (cu_address to, unsigned char byte, size_t size, cu_stream s))
{
    BEGIN
    if (reach(to, size) == NULL)
        result = INVALID_VALUE;
    else
        add(&s->work, (operation){ .kind = FILL, .to = to, .byte = byte, .size = size });
    END;
}

static cu_result put_launch(cu_function f, operation o, cu_stream s, void **parameters)
{
    uint64_t threads = (uint64_t)o.block[0] * o.block[1] * o.block[2];
    bool has_blocks = o.grid[0] > 0 && o.grid[1] > 0 && o.grid[2] > 0;

    if (threads == 0 || threads > 1024 || !has_blocks || o.grid[1] > 65535 || o.grid[2] > 65535)
        return INVALID_VALUE;
    if (threads > f->threads ||
        (int)o.dynamic_shared > (f->dynamic_shared > 49152 ? f->dynamic_shared : 49152))
        return CU_LAUNCH_OUT_OF_RESOURCES;
    for (int i = 0; i < 3; i++)
        if (o.cluster[i] > 0 && o.grid[i] % o.cluster[i] != 0)
            return INVALID_VALUE;
    o.kind = LAUNCH;
    o.function = f;
    o.values = calloc((size_t)f->parameter_count + 1, 128);
    for (int i = 0; i < f->parameter_count; i++)
        memcpy(o.values + (size_t)i * 128, parameters[i], f->sizes[i]);
    add(&s->work, o);
    return CU_SUCCESS;
}

EXPORT(cuLaunchKernel,
       (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, cu_stream s, void **parameters, void **extra))
{
    (void)extra;
    BEGIN
    result = put_launch(f,
                        (operation){ .grid = { gx, gy, gz },
                                     .block = { bx, by, bz },
                                     .cluster = { 1, 1, 1 },
                                     .dynamic_shared = shared },
                        s, parameters);
    END;
}

EXPORT(cuLaunchKernelEx,
       (const cu_launch_config *c, cu_function f, void **parameters, void **extra))
{
    (void)extra;
    BEGIN
    operation o = { .dynamic_shared = c->dynamic_shared, .cluster = { 1, 1, 1 } };
    memcpy(o.grid, c->grid, sizeof o.grid);
    memcpy(o.block, c->block, sizeof o.block);
    for (unsigned i = 0; i < c->attribute_count; i++)
        if (c->attributes[i].id == CU_ATTRIBUTE_CLUSTER)
            memcpy(o.cluster, c->attributes[i].value.cluster, sizeof o.cluster);
    result = put_launch(f, o, c->stream, parameters);
    END;
}

EXPORT(cuEventCreate, (cu_event * out, unsigned flags))
{
    (void)flags;
    BEGIN
    *out = own(sizeof **out);
    alive++;
    END;
}

EXPORT(cuEventDestroy_v2, (cu_event event))
{
    BEGIN
    free(event);
    alive--;
    END;
}

EXPORT(cuEventRecord, (cu_event event, cu_stream s))
{
    BEGIN
    event->is_recorded = false;
    add(&s->work, (operation){ .kind = RECORD, .event = event });
    END;
}

EXPORT(cuEventElapsedTime, (float *ms, cu_event first, cu_event last))
{
    BEGIN
    if (!first->is_recorded || !last->is_recorded)
        result = CU_NOT_READY;
    *ms = (float)((last->ns - first->ns) * 1e-6);
    END;
}

/* ---- graphs ---- */

EXPORT(cuStreamBeginCapture_v2, (cu_stream s, int mode))
{
    (void)mode;
    BEGIN
    result = s->is_capturing ? INVALID_VALUE : run(s);
    s->is_capturing = result == CU_SUCCESS;
    END;
}

EXPORT(cuStreamEndCapture, (cu_stream s, cu_graph *out))
{
    BEGIN
    if (!s->is_capturing) {
        result = INVALID_VALUE;
        goto end;
    }
    s->is_capturing = false;
    *out = own(sizeof **out);
    alive++;
    append_copy(&(*out)->work, &s->work);
    forget(&s->work);
    END;
}

EXPORT(cuGraphInstantiateWithFlags, (cu_graph_exec * out, cu_graph graph, unsigned long long flags))
{
    (void)flags;
    BEGIN
    *out = own(sizeof **out);
    alive++;
    append_copy(&(*out)->work, &graph->work);
    END;
}

EXPORT(cuGraphLaunch, (cu_graph_exec exec, cu_stream s))
{
    BEGIN
    count.graph_launches++;
    append_copy(&s->work, &exec->work);
    END;
}

EXPORT(cuGraphExecDestroy, (cu_graph_exec exec))
{
    BEGIN
    forget(&exec->work);
    free(exec);
    alive--;
    END;
}

EXPORT(cuGraphDestroy, (cu_graph graph))
{
    BEGIN
    forget(&graph->work);
    free(graph);
    alive--;
    END;
}

/* A map that says what it is of: its address first, so that a kernel can follow it. */
EXPORT(cuTensorMapEncodeTiled,
       (cu_tensor_map * out, int type, unsigned rank, void *address, const uint64_t *extents,
        const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
        int swizzle, int promotion, int fill))
{
    (void)steps, (void)interleave, (void)promotion, (void)fill;
    if (rank < 1 || rank > 5 || ((uintptr_t)address & 15) != 0)
        return INVALID_VALUE;
    fake_map map = { .base = address, .type = type, .rank = (int)rank, .swizzle = swizzle };
    for (unsigned i = 0; i < rank; i++) {
        if (i > 0 && strides[i - 1] % 16 != 0)
            return INVALID_VALUE;
        map.extents[i] = extents[i];
        map.strides[i] = i > 0 ? strides[i - 1] : 0;
        map.box[i] = (unsigned short)box[i];
    }
    memset(out, 0, sizeof *out);
    memcpy(out, &map, sizeof map);
    return CU_SUCCESS;
}

/* ---- what tests ask ---- */

__attribute__((visibility("default"))) void fake_cuda_register(const char *name,
                                                               fake_kernel *kernel);
void fake_cuda_register(const char *name, fake_kernel *kernel)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < kernel_count && strcmp(kernels[i].name, name) != 0)
        i++;
    if (i < MAX_KERNELS) {
        snprintf(kernels[i].name, sizeof kernels[i].name, "%s", name);
        kernels[i].kernel = kernel;
        kernel_count += i == kernel_count;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) void fake_cuda_reset(void);
void fake_cuda_reset(void)
{
    pthread_mutex_lock(&lock);
    read_settings();
    lost = alive = 0;
    memset(&count, 0, sizeof count);
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int fake_cuda_alive(void);
int fake_cuda_alive(void)
{
    return alive;
}

__attribute__((visibility("default"))) void fake_cuda_counts(int *launches, int *graph_launches,
                                                             int *copies_in, int *copies_out);
void fake_cuda_counts(int *launches, int *graph_launches, int *copies_in, int *copies_out)
{
    *launches = count.launches;
    *graph_launches = count.graph_launches;
    *copies_in = count.copies_in;
    *copies_out = count.copies_out;
}
