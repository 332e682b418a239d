/* schedule/sketch/sketch_generic.c: sketches that ask for nothing but the form of a block: multi-level tiling and rfactor, as a
 * tuner without expert rules has them (Ansor, Zheng and others 2020, section 4.1).
 *
 *     BLOCK.sketch = expert          other rules schedule it
 *                    tiling          SSRSRS by itself
 *                    tiling_fused_1  under the first part of its epilogue's loops; _2: under the second
 *                    rfactor_outer   a reduction in two; both parts are left to other rules
 *                    rfactor_inner */
#include "schedule/sketch/sketch_private.h"

tl_status tl_sketch_find_epilogue(tl_schedule *s, const tl_block *anchor, tl_block_ref *out,
                                  tl_diag *diag)
{
    const tl_buffer *result = anchor->stores[0].buffer;
    const tl_block **readers;
    int count = tl_readers_of(s->arena, s->program->body, result, &readers);
    if (result->role == TL_ROLE_LOCAL && count == 1 && !tl_block_is_reduction(readers[0]) &&
        readers[0]->store_count == 1) {
        *out = tl_schedule_name_block(s, readers[0]->name);
        return TL_OK;
    }
    return tl_cache_write(s, tl_schedule_name_block(s, anchor->name), "register", out, diag);
}

/* Which of its sketches a block gets. */
typedef enum {
    SKETCH_EXPERT, /* the other rules; in the plain space: as it is written */
    SKETCH_TILING,
    SKETCH_TILING_FUSED_1,
    SKETCH_TILING_FUSED_2,
    SKETCH_RFACTOR_OUTER,
    SKETCH_RFACTOR_INNER,
} sketch;

const char *tl_sketch_name(int64_t option)
{
    static const char *const names[] = {
        [SKETCH_EXPERT] = "expert",
        [SKETCH_TILING] = "tiling",
        [SKETCH_TILING_FUSED_1] = "tiling_fused_1",
        [SKETCH_TILING_FUSED_2] = "tiling_fused_2",
        [SKETCH_RFACTOR_OUTER] = "rfactor_outer",
        [SKETCH_RFACTOR_INNER] = "rfactor_inner",
    };
    return option >= 0 && option < (int64_t)(sizeof names / sizeof *names) ? names[option] : NULL;
}

static tl_status apply_sketch(tl_schedule *s, const tl_block *block, sketch chosen, bool exact,
                              tl_map *done, tl_map *known, tl_diag *diag)
{
    tl_block_ref out = { 0 }, ref = tl_schedule_name_block(s, block->name);
    if (chosen >= SKETCH_RFACTOR_OUTER) {
        TL_TRY(
            tl_sketch_rfactor(s, ref,
                              chosen == SKETCH_RFACTOR_OUTER ? TL_RFACTOR_OUTER : TL_RFACTOR_INNER,
                              &out, diag));
        tl_map_put(known, tl_schedule_get_block(s, out)->name, s);
        return TL_OK;
    }
    if (chosen != SKETCH_TILING)
        TL_TRY(tl_sketch_find_epilogue(s, block, &out, diag));
    if (out.id != 0 && tl_map_has(done, tl_schedule_get_block(s, out)->name))
        return tl_refuse(diag, "tiling", block->name, "has an epilogue that is scheduled");
    TL_TRY(tl_sketch_tiling(s, ref, out, (int)chosen - SKETCH_TILING, exact, diag));
    tl_map_put(done, block->name, s);
    if (out.id != 0)
        tl_map_put(done, tl_schedule_get_block(s, out)->name, s);
    /* what it made on the way stays where it is */
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        if (!tl_map_has(known, blocks[i]->name))
            tl_map_put(done, blocks[i]->name, s);
    return TL_OK;
}

tl_status tl_sketch_generic(tl_schedule *s, bool exact, tl_map *done, tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        int64_t options[8] = { SKETCH_EXPERT };
        int offered = 1;
        if (tl_map_has(done, blocks[i]->name))
            continue;
        for (int k = SKETCH_TILING; k <= SKETCH_TILING_FUSED_2; k++)
            if (tl_sketch_needs_tiling(blocks[i]))
                options[offered++] = k;
        for (int k = SKETCH_RFACTOR_OUTER; k <= SKETCH_RFACTOR_INNER; k++)
            if (tl_sketch_needs_rfactor(s, blocks[i]))
                options[offered++] = k;
        int64_t chosen = tl_decide(s, blocks[i]->name, "sketch", options, offered, SKETCH_EXPERT);
        if (chosen == SKETCH_EXPERT)
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = apply_sketch(s, blocks[i], (sketch)chosen, exact, done, known, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag)); /* or the other rules take it */
    }
    return TL_OK;
}
