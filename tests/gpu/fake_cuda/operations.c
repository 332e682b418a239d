/* tests/gpu/fake_cuda/operations.c: what waits in a stream or a graph, and what each of it does when it is executed. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fake_add(fake_work *w, fake_operation o)
{
    fake_operation *copy = malloc(sizeof *copy);
    if (w->first == NULL)
        w->last = &w->first;
    *copy = o;
    copy->next = NULL;
    *w->last = copy;
    w->last = &copy->next;
}

void fake_forget(fake_work *w)
{
    for (fake_operation *o = w->first, *next; o != NULL; o = next) {
        next = o->next;
        free(o->snapshot);
        free(o->values);
        free(o);
    }
    w->first = NULL;
}

void fake_append_copy(fake_work *to, const fake_work *from)
{
    for (const fake_operation *o = from->first; o != NULL; o = o->next) {
        fake_operation copy = *o;
        if (o->values != NULL) {
            size_t size = (size_t)o->function->parameter_count * PARAMETER_BYTES;
            copy.values = malloc(size + 1);
            memcpy(copy.values, o->values, size);
        }
        fake_add(to, copy);
    }
}

enum { MAX_KERNELS = 256 };

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

__attribute__((visibility("default"))) void fake_cuda_register(const char *name,
                                                               fake_kernel *kernel);
void fake_cuda_register(const char *name, fake_kernel *kernel)
{
    pthread_mutex_lock(&fake.lock);
    int i = 0;
    while (i < kernel_count && strcmp(kernels[i].name, name) != 0)
        i++;
    if (i < MAX_KERNELS) {
        snprintf(kernels[i].name, sizeof kernels[i].name, "%s", name);
        kernels[i].kernel = kernel;
        kernel_count += i == kernel_count;
    }
    pthread_mutex_unlock(&fake.lock);
}

static cu_result lose(int why)
{
    return fake.lost = why;
}

/* What a kernel is told: addresses of the device become those of the host. */
static cu_result execute_launch(cu_stream s, const fake_operation *o)
{
    cu_function f = o->function;
    void *parameters[MAX_PARAMETERS];
    fake_kernel *kernel = find_kernel(f->name);
    uint64_t last = 0;
    int buffer_count;

    fake.count.launches++;
    s->ns += 2000 +
             (double)o->grid[0] * o->grid[1] * o->grid[2] * o->block[0] * o->block[1] *
                 o->block[2] * 0.05 +
             fake.say.slow_launch * 1e6;
    if (fake.count.launches == fake.say.lose_launch)
        return lose(CU_ILLEGAL_ADDRESS);
    while (fake.count.launches == fake.say.hang_launch)
        pause();
    _Static_assert(sizeof(fake_map) <= sizeof(cu_tensor_map), "a map is a parameter of that size");
    fake_buffer *buffers = fake_list_buffers(&buffer_count);
    for (int i = 0; i < f->parameter_count; i++) {
        uint64_t value;
        parameters[i] = o->values + (size_t)i * PARAMETER_BYTES;
        memcpy(&value, parameters[i], sizeof value);
        bool is_map = f->sizes[i] == sizeof(cu_tensor_map);
        if ((f->sizes[i] != 8 && !is_map) || !fake_is_device(value))
            continue;
        if (fake_reach(value, 0) == NULL) {
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
    int failed = kernel != NULL ? kernel(&launch) : fake.say.nothing ? CU_SUCCESS : NOT_SUPPORTED;
    free(buffers);
    if (failed == NOT_SUPPORTED || kernel == NULL)
        return failed; /* the kernel is not known: nothing happened to the device */
    if (failed != 0)
        return lose(failed);
    if (fake.say.wrong_launch != 0 && fake.count.launches >= fake.say.wrong_launch && last != 0)
        memset(fake_reach(last, 4), 0x41, 4); /* the first number of what comes last is 12.08 */
    return CU_SUCCESS;
}

static cu_result execute(cu_stream s, const fake_operation *o)
{
    unsigned char *to, *from;

    switch (o->kind) {
    case COPY:
        to = fake_is_device(o->to) ? fake_reach(o->to, o->size) : (unsigned char *)(uintptr_t)o->to;
        from = o->snapshot != NULL       ? o->snapshot
               : fake_is_device(o->from) ? fake_reach(o->from, o->size)
                                         : (unsigned char *)(uintptr_t)o->from;
        s->ns += 1000 + (double)o->size / 20;
        if (to == NULL || from == NULL)
            return lose(CU_ILLEGAL_ADDRESS);
        memmove(to, from, o->size);
        return CU_SUCCESS;
    case FILL:
        to = fake_reach(o->to, o->size);
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

cu_result fake_run(cu_stream s)
{
    cu_result result = CU_SUCCESS;
    for (const fake_operation *o = s->work.first; o != NULL && result == CU_SUCCESS; o = o->next)
        result = execute(s, o);
    fake_forget(&s->work);
    return result;
}
