/* tests/structural/check.h: a graph compiled in several ways, and compared with the oracle. */
#ifndef TL_TESTS_STRUCTURAL_CHECK_H
#define TL_TESTS_STRUCTURAL_CHECK_H
#include "runtime/device/pool.h"
#include "tests/structural/oracle.h"

/* What is wrong with a graph; of any of these but GRAPH_GOOD the sentence says more. */
typedef enum {
    GRAPH_GOOD,
    GRAPH_REFUSED,
    GRAPH_WRONG,
    GRAPH_CRASHED,
    GRAPH_VERDICTS
} graph_verdict;
extern const char *const graph_verdicts[GRAPH_VERDICTS];

/* A way to compile: a row of variants.def; "family": the C API, for one shape after the other through one loaded model; "text":
 * the graph as text and back. NULL behind the last. */
const char *graph_variant(int index);

enum { GRAPH_CALLS = 3 };

typedef struct {
    int64_t extents
        [GRAPH_CALLS]; /* of open axes: those of the calls of "family", the first one's for all ways */
    const char *variant; /* this one; NULL: `ways` of them, which the seed chooses */
    int ways;
    uint64_t seed;
    tl_pool *pools[3]; /* by their threads; NULL: none yet */
} graph_check;
/* The bytes of a model. `where` gets the name of the variant at work. */
graph_verdict graph_check_model(graph_check *check, const tl_text *file, const char **where,
                                tl_diag *diag);

#endif
