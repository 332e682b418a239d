/* tuner/model/sieve.h: which of some things, wrong all together, go together. */
#ifndef TL_TUNER_MODEL_SIEVE_H
#define TL_TUNER_MODEL_SIEVE_H
#include <stdbool.h>
#include "runtime/base/status.h"

typedef struct {
    /* Whether the members (in ascending order) are right together. */
    tl_status (*judge)(void *user, const int *members, int count, bool *right, tl_diag *diag);
    bool (*is_over)(void *user); /* what was not judged by then is no member */
    void *user;
    int *members; /* room for all */
    int member_count;
} tl_sieve;

/* Of the things 0, ..., count - 1, which are wrong together: k wrong ones of n are found in at most about 2 k log2 n
 * judgements. */
tl_status tl_sieve_sift(tl_sieve *sieve, int count, tl_diag *diag);

#endif
