/* driver/verify/bisect.h: what makes an output of a model differ: a pass of the graph, the fusion, a lowering, the schedules. */
#ifndef TL_DRIVER_VERIFY_BISECT_H
#define TL_DRIVER_VERIFY_BISECT_H
#include "driver/cli/session.h"

typedef struct {
    const char *model;
    const tl_session_options *session;
    const tl_text_list *given; /* inputs, as for tl_session_bindings */
    const char *data; /* NULL: right is what the model gives without anything it can do without */
    int64_t seed;
    double rtol, ttol;
} tl_bisect_options;

/* Prints what it finds; *differs: whether anything did. */
tl_status tl_bisect(const tl_bisect_options *options, bool *differs, tl_diag *diag);

#endif
