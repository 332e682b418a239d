/* runtime/base/varying_text.h: texts that are the same but for whole numbers, as one text for all values of the dims.
 *
 *     Reshape {shape=[1, 17, 64]}    Reshape {shape=[1, 29, 64]}    ->    Reshape {shape=[1, n, 64]}
 *
 * A whole number stands by itself, and may be a float's (17.0, 2e+01): digits of a name (f32, conv_3, %17) and of a fraction
 * (0.5) are text. */
#ifndef TL_BASE_VARYING_TEXT_H
#define TL_BASE_VARYING_TEXT_H
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/varying.h"

/* The number in place of what stands at begin..end of the text. */
typedef struct {
    size_t begin, end;
    tl_varying number;
} tl_varying_hole;

typedef struct {
    const char *text; /* at the first sample */
    int dim_count, hole_count, hole_capacity;
    tl_varying_hole *holes; /* in their order */
} tl_varying_text;

/* texts[i] is that of sample i. TL_UNSUPPORTED shows the first line where they differ otherwise. Lives in the arena. */
tl_status tl_varying_text_join(tl_arena *arena, const char *const *texts, const tl_samples *samples,
                               tl_varying_text *out, tl_diag *diag);
/* Whether `text` is what it is for these dims. */
bool tl_varying_text_is(const tl_varying_text *t, const int64_t *dims, const char *text);

#endif
