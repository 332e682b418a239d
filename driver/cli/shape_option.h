/* driver/cli/shape_option.h: --shape NAME=1,3,224,224. */
#ifndef TL_DRIVER_CLI_SHAPE_OPTION_H
#define TL_DRIVER_CLI_SHAPE_OPTION_H
#include "driver/cli/cli.h"
#include "frontend/frontend.h"

/* The shapes of a list of such options, in the arena, as many as the list has. */
tl_status tl_shape_options_parse(tl_arena *arena, const tl_text_list *list,
                                 const tl_shape_override **out, tl_diag *diag);

#endif
