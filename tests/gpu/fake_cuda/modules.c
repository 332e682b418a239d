/* tests/gpu/fake_cuda/modules.c: modules, their functions and the linker: PTX is read as far as its version, its target and its
 * entries with their parameters go. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cu_link_body {
    char *ptx;
};

static const char cubin_start[] = "FAKECUBIN\n";

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

    fake.count.loads++;
    if (fake.say.fail_load != 0 && fake.count.loads >= fake.say.fail_load) {
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
    if (sm > fake.say.sm || (is_exact && sm != fake.say.sm))
        return CU_NO_BINARY_FOR_GPU;
    struct cu_module_body *m = fake_own(sizeof *m);
    m->ptx = strdup(ptx);
    for (const char *e = ptx; (e = strstr(e, ".entry ")) != NULL; e++)
        if (m->function_count == MAX_FUNCTIONS || !read_entry(m, e)) {
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

EXPORT(cuModuleLoadDataEx,
       (cu_module * out, const void *image, unsigned n, int *names, void **values))
{
    BEGIN
    result = load_text(image, n, names, values, out);
    fake.alive += result == CU_SUCCESS;
    END;
}

EXPORT(cuModuleUnload, (cu_module module))
{
    BEGIN
    free(module->ptx);
    fake_drop(module);
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
    *out = fake_make(sizeof **out);
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
    fake_drop(link);
    END;
}
