/* driver/study/footprint.h: how much memory a program touches at each level of its loops. */
#ifndef TL_DRIVER_STUDY_FOOTPRINT_H
#define TL_DRIVER_STUDY_FOOTPRINT_H
#include "ir/program/program.h"

/* A buffer under a loop: what one execution of the loop, with all loops outside of it standing still, touches. */
typedef struct {
    const tl_buffer *buffer;
    int64_t bytes;
} tl_touch;
typedef struct {
    const tl_stmt *loop; /* NULL: the whole body */
    const char *name;    /* of the loop, as the program's text has it; "all" */
    int depth;           /* of loops */
    int64_t total;       /* over all buffers */
    int count;
    const tl_touch *touches;
} tl_footprint_level;

/* The body's levels in the order of its text; returns how many. */
int tl_footprint(tl_arena *arena, const tl_program *program, const tl_footprint_level **out);

#endif
