/* driver/cli/shape_option.h: --shape NAME=1,3,224,224, or --shape NAME=1,16..512. */
#ifndef TL_DRIVER_CLI_SHAPE_OPTION_H
#define TL_DRIVER_CLI_SHAPE_OPTION_H
#include "driver/cli/cli.h"
#include "frontend/frontend.h"

/* The shapes of a list of such options, in the arena, as many as the list has. */
tl_status tl_shape_options_parse(tl_arena *arena, const tl_text_list *list,
                                 const tl_shape_override **out, tl_diag *diag);

/* Whether one of them has a range, which a shape has not. */
bool tl_shape_options_have_range(const tl_text_list *list);
/* The same where an extent may be a range, LOW..HIGH: the shapes with the low and with the high ends. */
tl_status tl_shape_ranges_parse(tl_arena *arena, const tl_text_list *list,
                                const tl_shape_override **low, const tl_shape_override **high,
                                tl_diag *diag);

#endif
