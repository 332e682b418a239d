/* tuner/measure/worker_message.h: messages between the tuner and its workers: a kind, a size, and packed values. Both
 * ends are the same program on the same machine, but a worker may have been scribbled over by a wrong kernel:
 * everything is checked. */
#ifndef TL_TUNER_MEASURE_WORKER_MESSAGE_H
#define TL_TUNER_MEASURE_WORKER_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/text.h"

typedef enum {
    TL_FRAME_CONFIG = 1, /* to a worker, once: limits and the target */
    TL_FRAME_PREPARE,    /* to a runner: the task from now on; answered by READY */
    TL_FRAME_START,      /* to a worker: fork a child that takes jobs */
    TL_FRAME_QUIT,       /* to the child: end, the next frame is for the worker */
    TL_FRAME_BUILD,      /* to a builder's child; answered by BUILT */
    TL_FRAME_RUN,        /* to a runner's child; answered by RAN */
    TL_FRAME_READY,
    TL_FRAME_BUILT,
    TL_FRAME_RAN,
    TL_FRAME_DIED, /* from a worker: its child died in the job it had */
} tl_frame_kind;

/* False: the other end is gone (or never was one of ours). Receiving replaces `body`. */
bool tl_frame_send(int fd, tl_frame_kind kind, const tl_text *body);
bool tl_frame_receive(int fd, tl_frame_kind *kind, tl_text *body);

void tl_pack_int(tl_text *out, int64_t value);
void tl_pack_real(tl_text *out, double value);
void tl_pack_bytes(tl_text *out, const void *bytes, size_t size);
void tl_pack_text(tl_text *out, const char *text); /* NULL comes out as "" */

/* After a failure everything reads as 0 and ""; look at `failed` at the end. */
typedef struct {
    const char *data;
    size_t size, at;
    bool failed;
} tl_unpacker;
tl_unpacker tl_unpack(const tl_text *body);
int64_t tl_unpack_int(tl_unpacker *u);
double tl_unpack_real(tl_unpacker *u);
const void *tl_unpack_bytes(tl_unpacker *u, size_t *size); /* in the body */
const char *tl_unpack_text(tl_unpacker *u);                /* in the body, NUL-terminated */

#endif
