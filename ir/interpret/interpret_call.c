/* ir/interpret/interpret_call.c: calls of intrinsics: the declared regions are gathered into packed operands, the
 * reference function runs on them, the written ones are scattered back. It never sees more than was declared. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/checked.h"

#define MAX_OPERANDS 8
#define MAX_SCALARS  8

/* A region with its numbers. */
typedef struct {
    const tl_memory *memory;
    int index;
    int64_t *begins, *extents; /* rank of each, in one block of memory */
    int64_t count;
} box;

static void fail_box(tl_frame *f, const box *b, int axis)
{
    tl_machine_fail(f, TL_BAD_IR,
                    "region %" PRId64 "..%" PRId64 " on axis %d of %s is out of bounds: the axis "
                    "has extent %" PRId64,
                    b->begins[axis], b->begins[axis] + b->extents[axis], axis,
                    b->memory->buffer->name, b->memory->shape[axis]);
}

static void measure(tl_frame *f, const tl_region_code *region, bool goes_outside, box *b,
                    int64_t *room)
{
    b->index = region->memory;
    b->memory = &f->machine->memories[region->memory];
    int rank = b->memory->buffer->rank;
    assert(rank >= 0);
    b->begins = room;
    b->extents = room + rank;
    b->count = 1;
    for (int i = 0; i < rank; i++) {
        b->begins[i] = tl_code_integer(region->begins[i], f);
        b->extents[i] = tl_code_integer(region->extents[i], f);
        int64_t end;
        bool fits = b->extents[i] >= 0 && !tl_add_overflows(b->begins[i], b->extents[i], &end);
        if (!fits || (!goes_outside && (b->begins[i] < 0 || end > b->memory->shape[i])))
            fail_box(f, b, i);
        b->count *= b->extents[i];
    }
}

/* Offset in the buffer of element `at` of the box; -1: it lies outside. */
static int64_t element_offset(const box *b, int64_t at)
{
    assert(at >= 0 && at < b->count);
    int64_t offset = 0;
    for (int i = b->memory->buffer->rank - 1; i >= 0; i--) {
        int64_t index = b->begins[i] + at % b->extents[i];
        if (index < 0 || index >= b->memory->shape[i])
            return -1;
        offset += index * b->memory->strides[i];
        at /= b->extents[i];
    }
    return offset;
}

/* tl_interpret_points has no memory: it knows single elements. */
static void gather_demanded(tl_frame *f, const box *b, char *to)
{
    for (int64_t i = 0; i < b->count; i++) {
        int64_t offset = element_offset(b, i);
        tl_number value = { 0 };
        if (offset >= 0)
            value = f->machine->demand(f, b->index, offset);
        tl_number_store(b->memory->buffer->dtype, to, (size_t)i, value);
    }
}

static void gather(tl_frame *f, const box *b, char *to)
{
    size_t size = tl_dtype_size(b->memory->buffer->dtype);
    const char *data = f->storages[b->index]->data;
    for (int64_t i = 0; i < b->count; i++) {
        int64_t offset = element_offset(b, i);
        if (offset < 0) {
            memset(to + (size_t)i * size, 0, size);
            continue;
        }
        if (f->machine->check)
            tl_check_read(f, b->index, offset);
        memcpy(to + (size_t)i * size, data + (size_t)offset * size, size);
    }
}

static void scatter_demanded(tl_frame *f, const box *b, const char *from)
{
    for (int64_t i = 0; i < b->count; i++) {
        int64_t offset = element_offset(b, i);
        if (offset >= 0)
            f->machine->supply(f, b->index, offset,
                               tl_number_load(b->memory->buffer->dtype, from, (size_t)i));
    }
}

static void scatter(tl_frame *f, const box *b, const char *from)
{
    size_t size = tl_dtype_size(b->memory->buffer->dtype);
    char *data = f->storages[b->index]->data;
    for (int64_t i = 0; i < b->count; i++) {
        int64_t offset = element_offset(b, i);
        if (offset < 0)
            continue;
        if (f->machine->check)
            tl_check_write(f, b->index, offset, NULL);
        memcpy(data + (size_t)offset * size, from + (size_t)i * size, size);
    }
}

/* A piece of memory for the call that runs, which gives back the pieces by scratch_used. */
static void *take_scratch(tl_machine *m, size_t size, int64_t count)
{
    int piece = m->scratch_used++;
    assert(piece < TL_SCRATCH_PIECES);
    size_t wanted = size * (size_t)count; /* fits: it is part of a buffer */
    if (m->scratch[piece].data == NULL || m->scratch[piece].size < wanted) {
        m->scratch[piece].data = tl_arena_alloc(m->arena, wanted, 64);
        m->scratch[piece].size = wanted;
    }
    return m->scratch[piece].data;
}

static tl_operand operand(tl_machine *m, const box *b)
{
    tl_dtype dtype = b->memory->buffer->dtype;
    tl_operand op = { dtype, b->memory->buffer->rank, b->extents, NULL };
    op.data = take_scratch(m, tl_dtype_size(dtype), b->count);
    return op;
}

void tl_call_run(tl_frame *f, const tl_call_code *call)
{
    tl_machine *m = f->machine;
    const tl_intrinsic_info *info = &tl_intrinsic_infos[call->intrinsic];
    box reads[MAX_OPERANDS], writes[MAX_OPERANDS];
    tl_operand inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
    int64_t scalars[MAX_SCALARS];
    bool goes_outside = tl_intrinsic_goes_outside(call->intrinsic);

    int outer = m->scratch_used; /* of the call that demands an element of this one */
    if (outer + 2 * (info->read_count + info->write_count) > TL_SCRATCH_PIECES)
        tl_machine_fail(f, TL_UNSUPPORTED, "calls of %s demand each other", info->name);
    for (int i = 0; i < info->read_count; i++) {
        int rank = m->memories[call->reads[i].memory].buffer->rank;
        measure(f, &call->reads[i], goes_outside, &reads[i],
                take_scratch(m, sizeof(int64_t), 2 * (int64_t)rank));
        inputs[i] = operand(m, &reads[i]);
        (m->demand != NULL ? gather_demanded : gather)(f, &reads[i], inputs[i].data);
    }
    for (int i = 0; i < info->write_count; i++) {
        int rank = m->memories[call->writes[i].memory].buffer->rank;
        measure(f, &call->writes[i], goes_outside, &writes[i],
                take_scratch(m, sizeof(int64_t), 2 * (int64_t)rank));
        outputs[i] = operand(m, &writes[i]);
    }
    for (int i = 0; i < info->scalar_count; i++)
        scalars[i] = tl_code_integer(call->scalars[i], f);

    tl_diag said = { "" };
    tl_status status = info->run(inputs, outputs, scalars, &said);
    if (status != TL_OK)
        tl_machine_fail(f, status, "%s", said.text);
    for (int i = 0; i < info->write_count; i++)
        (m->demand != NULL ? scatter_demanded : scatter)(f, &writes[i], outputs[i].data);
    m->scratch_used = outer;
}
