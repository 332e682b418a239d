/* tuner/transfer/transfer_private.h: what the parts of a transfer share. */
#ifndef TL_TUNER_TRANSFER_TRANSFER_PRIVATE_H
#define TL_TUNER_TRANSFER_TRANSFER_PRIVATE_H
#include "tuner/transfer/transfer.h"

/* What a donor's schedule came to, in an arena of its own. */
typedef struct {
    tl_transfer_route route;
    const char *adapted;
    int lowering;
    const char *trace;
    char program[17];
    const tl_program *scheduled;
    tl_point point; /* by answers; else of none */
} tl_adapted;

/* adapt_donor.c: by the first route that leads anywhere; TL_ILLEGAL_SCHEDULE: none does. */
tl_status tl_transfer_adapt(const tl_space *space, const tl_donor *donor, bool only_trace,
                            tl_arena *arena, tl_adapted *out, tl_diag *diag);

#endif
