/* ir/interpret/interpret_memory.c: storage, and the checks of every access in checked mode: bounds, uninitialised reads,
 * conflicts with earlier accesses (ir/interpret/race.c says which conflict). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/checked.h"

tl_interp_storage *tl_storage_make(tl_machine *m, int index, void *data, bool watched)
{
    assert(index >= 0 && index < m->memory_count);
    const tl_memory *memory = &m->memories[index];
    tl_interp_storage *storage = TL_NEW(m->arena, tl_interp_storage);
    size_t size = tl_dtype_size(memory->buffer->dtype);
    storage->count = memory->count;
    storage->data =
        data != NULL ? data : tl_arena_alloc_array(m->arena, size, (size_t)memory->count, 64);
    if (m->check && watched)
        storage->cells = TL_NEW_ARRAY(m->arena, tl_interp_cell, memory->count);
    return storage;
}

tl_interp_storage *tl_storage_take(tl_frame *f, int memory)
{
    assert(memory >= 0 && memory < f->machine->memory_count);
    tl_machine *m = f->machine;
    tl_interp_storage *storage = m->memories[memory].free;
    if (storage != NULL)
        m->memories[memory].free = storage->next;
    else
        storage = tl_storage_make(m, memory, NULL, true);
    storage->birth = tl_machine_tick(m);
    f->storages[memory] = storage;
    return storage;
}

void tl_storage_release(tl_frame *f, int memory)
{
    tl_memory *of = &f->machine->memories[memory];
    f->storages[memory]->next = of->free;
    of->free = f->storages[memory];
    f->storages[memory] = NULL;
}

/* ---- bounds ---- */

static void fail_bounds(const tl_interp_access *access, tl_frame *f, int axis)
{
    assert(axis >= 0 && axis < access->rank);
    const tl_memory *memory = &f->machine->memories[access->memory];
    char text[256];
    int used = snprintf(text, sizeof text, "%s[", memory->buffer->name);
    for (int i = 0; i < access->rank && used < (int)sizeof text - 32; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%" PRId64, i ? ", " : "",
                         tl_sum_value(&access->axes[i], f));
    snprintf(text + used, sizeof text - (size_t)used, "]");
    tl_machine_fail(f, TL_BAD_IR, "%s is out of bounds: axis %d has extent %" PRId64, text, axis,
                    memory->shape[axis]);
}

int64_t tl_access_locate(const tl_interp_access *access, tl_frame *f)
{
    const tl_memory *memory = &f->machine->memories[access->memory];
    int64_t offset = 0;
    for (int i = 0; i < access->rank; i++) {
        int64_t index = tl_sum_value(&access->axes[i], f);
        if ((uint64_t)index >= (uint64_t)memory->shape[i])
            fail_bounds(access, f, i);
        offset += index * memory->strides[i];
    }
    return offset;
}

void tl_memory_element_text(const tl_memory *memory, int64_t offset, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s[", memory->buffer->name);
    for (int i = 0; i < memory->buffer->rank && used + 24 < size; i++) {
        int64_t index = memory->strides[i] != 0 ? offset / memory->strides[i] : 0;
        offset -= index * memory->strides[i];
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, i ? ", " : "", index);
    }
    if (used + 1 < size)
        snprintf(out + used, size - used, "]");
}

/* ---- what was done to the element before ---- */

static void fail_uninitialised(tl_frame *f, int memory, int64_t offset)
{
    char element[256];
    tl_memory_element_text(&f->machine->memories[memory], offset, element, sizeof element);
    tl_machine_fail(f, TL_BAD_IR, "%s is read before anything was written to it", element);
}

void tl_check_read(tl_frame *f, int memory, int64_t offset)
{
    assert(memory >= 0 && memory < f->machine->memory_count && offset >= 0);
    tl_interp_storage *storage = f->storages[memory];
    if (storage->cells == NULL)
        return;
    tl_interp_cell *cell = &storage->cells[offset];
    if (cell->write < storage->birth) {
        if (f->machine->reads_unwritten)
            return;
        fail_uninitialised(f, memory, offset);
    }
    if (cell->write < f->own && tl_race_conflicts(f, memory, cell->write, cell->write_thread, NULL))
        tl_race_fail(f, memory, offset, TL_ACCESS_WRITE, cell->write, cell->write_thread,
                     TL_ACCESS_READ);

    /* One read is enough to remember: of two that are concurrent the earlier one, for what is concurrent with
     * the later is concurrent with it too; of two in order the later one. */
    bool keeps = cell->read >= storage->birth && cell->read < f->own &&
                 tl_race_conflicts(f, memory, cell->read, cell->read_thread, NULL);
    if (!keeps) {
        cell->read = f->stamp;
        cell->read_thread = f->thread;
    }
}

void tl_check_write(tl_frame *f, int memory, int64_t offset, const tl_block_code *reduction)
{
    assert(memory >= 0 && memory < f->machine->memory_count && offset >= 0);
    tl_interp_storage *storage = f->storages[memory];
    if (storage->cells == NULL)
        return;
    tl_interp_cell *cell = &storage->cells[offset];
    if (cell->write >= storage->birth && cell->write < f->own &&
        tl_race_conflicts(f, memory, cell->write, cell->write_thread, reduction))
        tl_race_fail(f, memory, offset, TL_ACCESS_WRITE, cell->write, cell->write_thread,
                     TL_ACCESS_WRITE);
    if (cell->read >= storage->birth && cell->read < f->own &&
        tl_race_conflicts(f, memory, cell->read, cell->read_thread, NULL))
        tl_race_fail(f, memory, offset, TL_ACCESS_READ, cell->read, cell->read_thread,
                     TL_ACCESS_WRITE);
    cell->write = f->stamp;
    cell->write_thread = f->thread;
}

/* ---- elements ----
 * memcpy, as the numbers' own loads do it: the buffer may be a weight in its mapped file, at any address. */

double tl_memory_number(tl_dtype dtype, const char *data, int64_t offset)
{
    if (dtype == TL_F32) {
        float value;
        memcpy(&value, data + (size_t)offset * sizeof value, sizeof value);
        return value;
    }
    return tl_number_load(dtype, data, (size_t)offset).f;
}

int64_t tl_memory_integer(tl_dtype dtype, const char *data, int64_t offset)
{
    if (dtype == TL_I64) {
        int64_t value;
        memcpy(&value, data + (size_t)offset * sizeof value, sizeof value);
        return value;
    }
    return tl_number_load(dtype, data, (size_t)offset).i;
}

void tl_memory_put_number(tl_dtype dtype, char *data, int64_t offset, double value)
{
    if (dtype == TL_F32) {
        float narrow = (float)value;
        memcpy(data + (size_t)offset * sizeof narrow, &narrow, sizeof narrow);
    } else
        tl_number_store(dtype, data, (size_t)offset, (tl_number){ .f = value });
}

void tl_memory_put_integer(tl_dtype dtype, char *data, int64_t offset, int64_t value)
{
    if (dtype == TL_I64)
        memcpy(data + (size_t)offset * sizeof value, &value, sizeof value);
    else
        tl_number_store(dtype, data, (size_t)offset, (tl_number){ .i = value });
}
