/* driver/reduce/reduce.h: the smallest model that is still bad.
 *
 *     MODEL --tl_onnx_embed--> best --edit of a pass--> candidate --check, in a child--> is bad: the new best
 *
 * A pass (driver/reduce/edits.def) edits a list of parts: all of them at once, then halves, then halves of what could not be
 * edited, down to single parts. The passes go round until none of them gets anywhere. */
#ifndef TL_DRIVER_REDUCE_REDUCE_H
#define TL_DRIVER_REDUCE_REDUCE_H
#include <stdint.h>
#include "driver/cli/session.h"

typedef struct {
    int nodes, inputs, outputs, weights; /* of the graph itself */
    int64_t bytes;                       /* of the file */
} tl_reduce_size;

/* A pass is through. */
typedef struct {
    const char *pass;
    int round, checks; /* in all */
    tl_reduce_size size;
} tl_reduce_step;

typedef struct {
    const char *model, *output;
    /* "wrong", "crash", or a command of the shell that gets the candidate's path */
    const char *check;
    const tl_session_options *session;
    int64_t seed;              /* of the inputs that a candidate is run with */
    double limit_s, memory_gb; /* of one check; 0: none */
    double seconds;            /* of all; 0: until nothing more can be taken away */
    void (*progress)(const tl_reduce_step *step, void *user); /* while it goes on; NULL: none */
    void (*passed)(const tl_reduce_step *step, void *user);   /* behind a pass that got somewhere */
    void *user;
} tl_reduce_options;

typedef struct {
    tl_reduce_size before, after;
    int checks, rounds;
    /* nothing more could be taken away; else the time was over, or it was interrupted */
    bool is_complete;
    bool is_interrupted;
    double seconds;
    char how[128]; /* the model is bad: "exit status 1" */
} tl_reduce_result;

/* Writes the reduced model. TL_BAD_ARGUMENT: the model is not bad to begin with, or the output is the model. */
tl_status tl_reduce(const tl_reduce_options *options, tl_reduce_result *out, tl_diag *diag);

#endif
