/* schedule/prim/prim_annotate.c: annotate(loop, key, value)
 *
 *     for i in 0..n          ->       for i in 0..n {key = value}
 *
 * Requires  a loop; a key that it has already gets the new value.
 * Keeps     everything: a remark changes nothing that is computed.
 */
#include <assert.h>
#include <string.h>
#include "schedule/schedule_private.h"

const tl_stmt *tl_loop_with_annotations(tl_arena *arena, const tl_stmt *loop, int count,
                                        const tl_annotation *annotations)
{
    if (loop->u.loop.annotation_count == 0 && count == 0)
        return loop;
    tl_stmt *copy = TL_NEW(arena, tl_stmt);
    *copy = *loop;
    copy->u.loop.annotation_count = count;
    copy->u.loop.annotations = annotations;
    return copy;
}

tl_status tl_apply_annotate(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                            int *out_count, tl_diag *diag)
{
    assert(arg_count == 3 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_WORD &&
           args[2].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, "annotate", args[0].loop, &loop, diag));

    int count = loop->u.loop.annotation_count, at = 0;
    tl_annotation *annotations = TL_NEW_ARRAY(s->arena, tl_annotation, count + 1);
    for (int i = 0; i < count; i++)
        annotations[i] = loop->u.loop.annotations[i];
    while (at < count && strcmp(annotations[at].key, args[1].word) != 0)
        at++;
    annotations[at] = (tl_annotation){ tl_arena_strdup(s->arena, args[1].word), args[2].value };
    if (at == count)
        count++;
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    tl_schedule_replace(s, &path, tl_loop_with_annotations(s->arena, loop, count, annotations));
    return TL_OK;
}
