/* tests/bench/program.h: what programs that measure candidates have in common. */
#ifndef TL_TESTS_PROGRAM_H
#define TL_TESTS_PROGRAM_H
#include "runtime/base/status.h"

/* Ends the program with its name and the sentence unless all is well. */
void bench_must(tl_status status, const tl_diag *diag);
/* The tilth that was built with this program, for workers. */
const char *bench_tilth(void);

#endif
