/* tests/frontend/lower_helpers.h: graph texts to kernels to numbers, for the tests of this folder. */
#ifndef TESTS_FRONTEND_LOWER_HELPERS_H
#define TESTS_FRONTEND_LOWER_HELPERS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "frontend/frontend.h"
#include "frontend/graph/graph_passes.h"
#include "frontend/lower/lower.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"

typedef struct {
    const tl_value *value;
    void *data; /* logical, row-major */
} bound_value;

static inline int arena_setup(void **state)
{
    *state = tl_arena_create(0);
    return *state == NULL;
}

static inline int arena_teardown(void **state)
{
    tl_arena_destroy(*state);
    return 0;
}

static inline tl_graph *parse_graph(tl_arena *arena, const char *text)
{
    tl_graph *g;
    tl_diag diag = { { 0 } };
    if (tl_graph_parse(arena, text, "test", &g, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    return g;
}

/* Elements of a value in memory, halo and blocks included. */
static inline int64_t physical_elements(const tl_value *v)
{
    int64_t extents[2 * TL_MAX_RANK], count = 1;
    int rank = tl_layout_physical(&v->layout, &v->shape, extents);
    for (int i = 0; i < rank; i++)
        count *= extents[i];
    return count;
}

/* Where the logical element `index` lies. */
static inline int64_t physical_offset(const tl_value *v, const int64_t *index)
{
    const tl_layout *y = &v->layout;
    int64_t extents[2 * TL_MAX_RANK], offset = 0;
    int rank = tl_layout_physical(y, &v->shape, extents), at = 0;
    for (int i = 0; i < v->shape.rank; i++, at++) {
        int axis = y->plain ? i : y->order[i];
        int64_t e = y->plain ? index[axis] : (index[axis] + y->halo_before[axis]) / y->block[axis];
        offset = offset * extents[at] + e;
    }
    for (int i = 0; !y->plain && i < v->shape.rank; i++) {
        int axis = y->order[i];
        if (y->block[axis] != 1)
            offset = offset * extents[at++] + index[axis] % y->block[axis];
    }
    assert_int_equal(at, rank);
    return offset;
}

/* Copies between the logical order and memory, element by element. */
static inline void copy_layout(const tl_value *v, void *logical, void *physical, bool to_memory)
{
    size_t size = tl_dtype_size(v->dtype);
    int64_t count = tl_shape_elements(&v->shape);
    for (int64_t e = 0; e < count; e++) {
        int64_t index[TL_MAX_RANK], rest = e;
        for (int i = v->shape.rank - 1; i >= 0; i--) {
            index[i] = rest % v->shape.dims[i].extent;
            rest /= v->shape.dims[i].extent;
        }
        char *a = (char *)logical + (size_t)e * size;
        char *b = (char *)physical + (size_t)physical_offset(v, index) * size;
        memcpy(to_memory ? b : a, to_memory ? a : b, size);
    }
}

/* The value's memory, made when it is not there yet; that of a window lies in its whole's. */
static inline void *memory_of(tl_arena *arena, const tl_value *v, void **memory)
{
    size_t size = (size_t)physical_elements(v) * tl_dtype_size(v->dtype);
    if (v->whole != NULL) {
        size_t start = (size_t)v->whole_start * tl_dtype_size(v->dtype);
        assert_true(start % 64 == 0 && v->whole->whole == NULL);
        assert_true(start + size <= (size_t)physical_elements(v->whole) * tl_dtype_size(v->dtype));
        return (char *)memory_of(arena, v->whole, memory) + start;
    }
    if (memory[v->index] == NULL) {
        memory[v->index] = tl_arena_alloc(arena, size, 64);
        memset(memory[v->index], 0x7f, size); /* halo must be written, not found */
    }
    return memory[v->index];
}

/* Runs one kernel: finds or makes the data of its values in `memory` (by value->index). */
static inline void run_kernel(tl_arena *arena, const tl_kernel *kernel, void **memory)
{
    tl_diag diag = { { 0 } };
    tl_program *program;
    if (tl_kernel_program(arena, kernel, NULL, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("kernel %s: %s", kernel->name, diag.text);
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, program->param_count);
    for (int i = 0; i < program->param_count; i++) {
        const tl_value *v = i < kernel->input_count ? kernel->inputs[i] : kernel->outputs[0];
        if (memory[v->index] == NULL && v->data != NULL)
            memory[v->index] = (void *)(uintptr_t)v->data;
        arguments[i] = (tl_argument){ program->params[i], memory_of(arena, v, memory) };
    }
    if (tl_interpret(program, arguments, program->param_count, NULL, NULL, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, tl_program_text(arena, program));
}

/* Partitions and interprets a graph on logical inputs; the logical data of output `which`. */
static inline void *run_graph(tl_arena *arena, tl_graph *g, void *const *inputs, int which)
{
    tl_diag diag = { { 0 } };
    tl_partition partition;
    if (tl_partition_graph(arena, g, &partition, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    void **memory = TL_NEW_ARRAY(arena, void *, g->value_count);
    for (int i = 0; i < g->input_count; i++)
        memory[g->inputs[i]->index] = inputs[i];
    for (int i = 0; i < partition.count; i++)
        run_kernel(arena, &partition.kernels[i], memory);
    tl_value *y = g->outputs[which];
    void *out =
        tl_arena_alloc(arena, (size_t)tl_shape_elements(&y->shape) * tl_dtype_size(y->dtype), 64);
    copy_layout(y, out, memory[y->index], false);
    return out;
}

static inline float *random_floats(tl_arena *arena, int64_t count, uint64_t seed)
{
    tl_random r = tl_random_make(seed);
    float *data = TL_NEW_ARRAY(arena, float, count);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)tl_random_normal(&r);
    return data;
}

static inline tl_graph *prepared_graph(tl_arena *arena, const char *text, const char *target_name)
{
    tl_diag diag = { { 0 } };
    tl_graph *g = parse_graph(arena, text);
    tl_target target;
    if (tl_infer_shapes(g, &diag) != TL_OK ||
        tl_target_named(target_name, &target, &diag) != TL_OK ||
        tl_assign_layouts(g, &target, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    return g;
}

static inline void assert_close(const float *got, const float *want, int64_t count,
                                const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f + 1e-5f * fabsf(want[i])))
            fail_msg("%s: element %lld is %g, should be %g", what, (long long)i, (double)got[i],
                     (double)want[i]);
}

/* The graph's one kernel by that lowering, interpreted; `inputs` in the order of its parameters, the f32 output is last. */
static inline float *run_lowering(tl_arena *arena, tl_graph *g, const char *lowering,
                                  void *const *inputs)
{
    tl_diag diag = { { 0 } };
    tl_partition partition;
    tl_program *program;
    if (tl_partition_graph(arena, g, &partition, &diag) != TL_OK ||
        tl_kernel_program(arena, &partition.kernels[0], lowering, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    float *y = TL_NEW_ARRAY(arena, float, tl_shape_elements(&g->outputs[0]->shape));
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, program->param_count);
    for (int i = 0; i < program->param_count; i++)
        arguments[i] =
            (tl_argument){ program->params[i], i + 1 < program->param_count ? inputs[i] : y };
    if (tl_interpret(program, arguments, program->param_count, NULL, NULL, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, tl_program_text(arena, program));
    return y;
}

#endif
