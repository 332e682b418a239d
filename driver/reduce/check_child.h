/* driver/reduce/check_child.h: a check of a candidate, in a child of this process with limits of time and memory. */
#ifndef TL_DRIVER_REDUCE_CHECK_CHILD_H
#define TL_DRIVER_REDUCE_CHECK_CHILD_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"

typedef struct {
    const char *const
        *arguments;         /* a program and what it gets, NULL behind the last; NULL: `run` */
    int (*run)(void *user); /* in the child, which exits with what it returns */
    void *user;
    double limit_s, memory_gb; /* 0: none */
    bool (*is_over)(void);     /* asked now and then: true ends the child; NULL: never */
} tl_child;

typedef enum { TL_CHILD_EXITED, TL_CHILD_SIGNALLED, TL_CHILD_LATE, TL_CHILD_STOPPED } tl_child_end;
typedef struct {
    tl_child_end end;
    int code; /* the exit status, or the signal */
} tl_child_result;

/* Waits for the child and ends all that it started. TL_DEVICE: there is none. What it says goes nowhere. */
tl_status tl_child_run(const tl_child *child, tl_child_result *out, tl_diag *diag);

#endif
