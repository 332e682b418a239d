/* tests/structural/oracle.h: what a graph has to give: its nodes one after the other, each through its naive program and the
 * interpreter, without any pass that it can do without; and how far from that other results may be.
 *
 * How far is found out and not estimated: the graph is evaluated again with every rounded result moved by random amounts up to
 * the error bound of its node's lowerings, and what the outputs move by, four times, is what they may differ by. Where nothing
 * rounds (copies, integers, sums of small whole numbers) nothing moves, and the same numbers have to come. */
#ifndef TL_TESTS_STRUCTURAL_ORACLE_H
#define TL_TESTS_STRUCTURAL_ORACLE_H
#include "frontend/frontend.h"
#include "runtime/tensor/tensor.h"

typedef struct {
    const char *name;
    tl_tensor value;
    double allowed;    /* 0: the same numbers */
    const bool *loose; /* elements of which nothing is known: a rounding decides what they are */
} oracle_output;
typedef struct {
    int input_count, output_count;
    tl_tensor *inputs; /* in the order of the file */
    const tl_shape_override *shapes;
    oracle_output *outputs;
} oracle;

/* The inputs as their names say (operands.h), open axes of `extent`. Everything lives in the arena. */
tl_status oracle_make(tl_arena *arena, const tl_text *file, int64_t extent, oracle *out,
                      tl_diag *diag);
/* TL_WRONG_RESULT names the output, the element and the numbers. */
tl_status oracle_compare(const oracle *o, int index, const tl_tensor *actual, tl_diag *diag);

#endif
