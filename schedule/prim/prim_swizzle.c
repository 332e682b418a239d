/* schedule/prim/prim_swizzle.c: swizzle(buffer, bytes)
 *
 *     alloc S: f16[8, 64] shared            ->     alloc S: f16[8, 64] swizzle 128 shared
 *
 *     row 0   0 1 2 3 4 5 6 7                      0 1 2 3 4 5 6 7
 *     row 1   0 1 2 3 4 5 6 7               ->     1 0 3 2 5 4 7 6       where the 16-byte pieces of a row lie
 *     row 2   0 1 2 3 4 5 6 7                      2 3 0 1 6 7 4 5
 *     ...
 *
 * In every 128 bytes of the buffer the pieces of 16 bytes change places by exclusive or with the number of the 128 bytes: the
 * whole of it (bytes = 128), its last two bits (64) or its last one (32). So pieces of one column lie in different banks of a
 * GPU's shared memory, where rows of `bytes` bytes would put them into the same: what tensor cores load at once. It is the
 * order that the tensor memory accelerator writes.
 *
 * Requires  a local buffer in shared memory, without strides; bytes 32, 64 or 128.
 * Keeps     what is computed: indices mean the same elements.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

#define PRIM "swizzle"

tl_status tl_apply_swizzle(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                           int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_WORD && args[1].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const char *name = args[0].word;
    const tl_buffer *from = tl_program_find_buffer(s->program, name);
    if (from == NULL)
        return tl_refuse(diag, PRIM, name, "there is no such buffer in kernel %s",
                         s->program->name);
    if (from->scope != TL_SCOPE_SHARED)
        return tl_refuse(diag, PRIM, name,
                         "it is in scope %s, and only shared memory has banks to be spread over",
                         tl_scope_texts[from->scope]);
    if (from->strides != NULL)
        return tl_refuse(diag, PRIM, name,
                         "it has strides by storage_align, which spreads it over banks, too");
    if (args[1].value != 32 && args[1].value != 64 && args[1].value != 128)
        return tl_refuse(diag, PRIM, name, "%lld bytes are not 32, 64 or 128",
                         (long long)args[1].value);
    tl_buffer *to = TL_NEW(s->arena, tl_buffer);
    *to = *from;
    to->swizzle = (int)args[1].value;
    tl_schedule_swap_local(s, from, to);
    return TL_OK;
}
