/* codegen/emulate/call_tensor.c: copies of boxes of tensors (TMA) and of runs of bytes, which no thread makes.
 *
 * A load ends when no thread can go on without it, and announces its bytes to an mbarrier; until then its destination
 * holds NaNs. A store ends when its group is waited for. In shared memory the box is packed, axis 0 innermost; a swizzle
 * exchanges the chunks of 16 bytes of a row of 32, 64 or 128 by the number of the row. */
#include <inttypes.h>
#include <string.h>
#include "runtime/base/array.h"
#include "codegen/emulate/emulate_private.h"

enum { PIECE = 16 };

static tl_emulated_map read_map(tl_gpu_thread *t, int64_t address, int rank)
{
    tl_emulated_map map;
    memcpy(&map, (const void *)(uintptr_t)address, sizeof map);
    if (map.magic != TL_TENSOR_MAP_MAGIC)
        tl_gpu_fail(t, TL_BAD_IR, "its tensor map is none");
    if (map.rank != rank)
        tl_gpu_fail(t, TL_BAD_IR, "the tensor map has %d axes, not %d", map.rank, rank);
    int64_t row = (int64_t)map.box[0] * map.element_bytes;
    if (map.swizzle_bytes != 0 && row > map.swizzle_bytes)
        tl_gpu_fail(t, TL_BAD_IR, "a row of %" PRId64 " bytes is longer than its swizzle of %d",
                    row, map.swizzle_bytes);
    if (row % PIECE != 0)
        tl_gpu_fail(t, TL_BAD_IR, "a row of %" PRId64 " bytes is no multiple of 16", row);
    if ((uintptr_t)map.base % PIECE != 0)
        tl_gpu_fail(t, TL_BAD_IR, "a tensor at %p does not begin at a multiple of 16 bytes",
                    (void *)map.base);
    for (int a = 1; a < rank; a++)
        if (map.strides[a - 1] % PIECE != 0)
            tl_gpu_fail(t, TL_BAD_IR, "a stride of %" PRIu64 " bytes is no multiple of 16",
                        map.strides[a - 1]);
    return map;
}

/* Where a box begins. Along rows that is at a multiple of 16 bytes: to hardware all else is an illegal instruction. */
static void read_place(tl_gpu_thread *t, const tl_emulated_map *map, const int64_t *in, int32_t *at)
{
    for (int a = 0; a < map->rank; a++)
        at[a] = (int32_t)in[a];
    if (at[0] * (int64_t)map->element_bytes % PIECE != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "a box begins at element %d of %d bytes along a row, which is no multiple of "
                    "16 bytes",
                    at[0], (int)map->element_bytes);
}

static int64_t box_bytes(const tl_emulated_map *map)
{
    int64_t bytes = map->element_bytes;
    for (int a = 0; a < map->rank; a++)
        bytes *= map->box[a];
    return bytes;
}

/* The whole tensor lies in one buffer. */
static void check_tensor(tl_gpu_thread *t, const tl_emulated_map *map, bool writes)
{
    int64_t bytes = (int64_t)map->extents[0] * map->element_bytes;
    for (int a = 1; a < map->rank; a++)
        bytes += (int64_t)(map->extents[a] - 1) * (int64_t)map->strides[a - 1];
    tl_gpu_global(t, map->base, bytes, writes);
}

static uint32_t swizzle(uint32_t offset, int swizzle_bytes)
{
    uint32_t mask = swizzle_bytes == 128  ? 7
                    : swizzle_bytes == 64 ? 3
                    : swizzle_bytes == 32 ? 1
                                          : 0;
    return offset ^ (offset >> 7 & mask) << 4;
}

/* The element of the tensor that element `i` of the box is; NULL: it is outside. */
static char *tensor_element(const tl_emulated_map *map, const int32_t *at, int64_t i)
{
    char *place = map->base;
    for (int a = 0; a < map->rank; a++) {
        int64_t index = at[a] + i % map->box[a];
        i /= map->box[a];
        if (index < 0 || index >= (int64_t)map->extents[a])
            return NULL;
        place += index * (a == 0 ? map->element_bytes : (int64_t)map->strides[a - 1]);
    }
    return place;
}

static uint32_t check_place(tl_gpu_thread *t, int64_t address, int64_t bytes, int swizzle_bytes)
{
    uint32_t to;
    int align = swizzle_bytes == 0 ? 128 : 8 * swizzle_bytes;
    if (tl_gpu_shared(t, address, bytes, align, &to) != t->block)
        tl_gpu_fail(t, TL_BAD_IR, "the place in shared memory is another block's");
    return to;
}

/* Under way from here on. */
static void begin_load(tl_gpu_thread *t, tl_tensor_copy copy)
{
    tl_gpu_team *team = t->block->team;
    if (!TL_HEAP_ROOM(team->copies, team->copy_count, team->copy_capacity))
        tl_gpu_out_of_memory(t);
    for (int k = 0; k < team->block_count; k++)
        if (copy.blocks >> k & 1) {
            tl_gpu_touch(t, &team->blocks[k], copy.to, (uint32_t)copy.bytes, TL_TOUCH_OPEN_WRITE);
            memset(team->blocks[k].shared + copy.to, 0xff, (size_t)copy.bytes);
        }
    team->copies[team->copy_count++] = copy;
}

void tl_call_tensor_load(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)out;
    int rank = call->tags[0];
    tl_gpu_team *team = t->block->team;
    tl_gpu_block *waiting;
    tl_tensor_copy copy = { .map = read_map(t, in[1], rank), .blocks = 1U << t->block->rank };
    copy.bytes = box_bytes(&copy.map);
    copy.to = check_place(t, in[0], copy.bytes, copy.map.swizzle_bytes);
    read_place(t, &copy.map, in + 2, copy.at);
    copy.mbarrier = tl_gpu_mbarrier(t, in[2 + rank], &waiting)->at;
    if (call->tags[1]) {
        copy.blocks = (uint32_t)in[3 + rank] & 0xffff;
        if (copy.blocks == 0 || copy.blocks >> team->block_count != 0)
            tl_gpu_fail(t, TL_BAD_IR, "sends to blocks 0x%x of a cluster of %d", copy.blocks,
                        team->block_count);
    }
    check_tensor(t, &copy.map, false);
    copy.block = waiting;
    begin_load(t, copy);
}

void tl_call_bulk_load(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_block *waiting;
    tl_tensor_copy copy = { .blocks = 1U << t->block->rank, .bytes = (int32_t)in[2] };
    if (copy.bytes <= 0 || copy.bytes % 16 != 0 || in[1] % 16 != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "copies %" PRId64 " bytes: they and their place are multiples of 16",
                    copy.bytes);
    uint32_t to;
    if (tl_gpu_shared(t, in[0], copy.bytes, 16, &to) != t->block)
        tl_gpu_fail(t, TL_BAD_IR, "copies into another block");
    copy.to = to;
    copy.map.base = tl_gpu_global(t, (const void *)(uintptr_t)in[1], copy.bytes, false);
    copy.mbarrier = tl_gpu_mbarrier(t, in[3], &waiting)->at;
    copy.block = waiting;
    begin_load(t, copy);
}

static void fill_box(const tl_tensor_copy *c, char *shared)
{
    if (c->map.rank == 0) {
        memcpy(shared + c->to, c->map.base, (size_t)c->bytes);
        return;
    }
    size_t size = c->map.element_bytes;
    for (int64_t i = 0; i * (int64_t)size < c->bytes; i++) {
        const char *from = tensor_element(&c->map, c->at, i);
        char *to = shared + swizzle(c->to + (uint32_t)i * (uint32_t)size, c->map.swizzle_bytes);
        if (from != NULL)
            memcpy(to, from, size);
        else
            memset(to, c->map.fills_nan ? 0xff : 0, size);
    }
}

bool tl_gpu_finish_tensor_copy(tl_gpu_team *team)
{
    if (team->copy_count == 0)
        return false;
    tl_tensor_copy c = team->copies[0];
    memmove(team->copies, team->copies + 1, (size_t)--team->copy_count * sizeof c);
    for (int k = 0; k < team->block_count; k++)
        if (c.blocks >> k & 1) {
            tl_gpu_block *b = &team->blocks[k];
            fill_box(&c, b->shared);
            tl_gpu_stamp_async(b, c.to, (uint32_t)c.bytes);
            /* each block hears of its own part, at the same place as the one that asked */
            tl_gpu_arrive_bytes(c.blocks == 1U << k ? c.block : b, c.mbarrier, c.bytes);
        }
    return true;
}

/* ---- stores ---- */

void tl_call_tensor_store(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                          int64_t *out)
{
    (void)out;
    tl_emulated_map map = read_map(t, in[0], call->tags[0]);
    int32_t at[TL_TENSOR_MAP_AXES] = { 0 };
    read_place(t, &map, in + 2, at);
    uint32_t from = check_place(t, in[1], box_bytes(&map), map.swizzle_bytes),
             size = map.element_bytes;
    check_tensor(t, &map, true);
    for (int64_t i = 0; i * size < box_bytes(&map); i++)
        tl_gpu_open_read(t, true, swizzle(from + (uint32_t)i * size, map.swizzle_bytes), size,
                         tensor_element(&map, at, i));
}

void tl_call_bulk_commit(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    t->bulk_group++;
}

void tl_call_bulk_wait(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_end_reads(t, true, (int)in[0]);
}
