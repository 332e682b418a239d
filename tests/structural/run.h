/* tests/structural/run.h: many random graphs in worker processes. */
#ifndef TL_TESTS_STRUCTURAL_RUN_H
#define TL_TESTS_STRUCTURAL_RUN_H
#include <stdint.h>
#include "tests/structural/check.h"

typedef struct {
    uint64_t first;
    int64_t count;
    int jobs;            /* processes at once; 0: one */
    double limit_s;      /* for one graph */
    const char *family;  /* of its nodes mainly; NULL: of all */
    const char *program; /* for a failure's command, and to reduce it; NULL: nothing is reduced */
    const char *folder;  /* where failures go */
    int ways;            /* graph_check */
    int64_t most;        /* failures before it ends; 0: any number */
    bool tells;          /* says how far it is, on stderr */
} graph_run;
typedef struct {
    int64_t graphs, nodes, open, verdicts[GRAPH_VERDICTS];
    double seconds;
} graph_totals;

/* Gives the number of failures, each of which is printed and written down. */
int64_t graph_run_all(const graph_run *run, graph_totals *out);
/* How often each operator of the reader's table was drawn; NULL behind the last. */
const char *graph_operator(int index, int64_t *count);
/* The model of a seed, and what it is checked with. Free `file`. */
void graph_make(tl_arena *arena, uint64_t seed, const char *family, tl_text *file,
                const char **text, graph_check *check);

#endif
