/* tests/bench/our_kernel.h: a case as we compile it inside a model: images between convolutions in the layout that the
 * frontend gives them, constants packed before the first run, the default schedule. */
#ifndef TL_TESTS_OUR_KERNEL_H
#define TL_TESTS_OUR_KERNEL_H
#include "frontend/frontend.h"
#include "schedule/trace.h"
#include "tests/bench/peer.h"
#include "tests/bench/timed_kernel.h"

typedef struct {
    tl_arena *arena;
    const tl_program *naive; /* of the direct lowering */
    const tl_value *result;
    const char *lowering;
    const tl_trace *trace; /* the default schedule */
    void *result_data;
    timed_kernel kernel;
} our_kernel;

void our_kernel_make(timed_machine *m, const peer_case *c, float *const operands[CASE_OPERANDS],
                     tl_numerics numerics, our_kernel *out);
/* What it computed, as plain as the case has it. */
void our_kernel_read(const our_kernel *k, float *result);
void our_kernel_free(our_kernel *k);

#endif
