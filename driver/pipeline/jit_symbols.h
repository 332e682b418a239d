/* driver/pipeline/jit_symbols.h: the names of kernels for tools that look at this process from outside. */
#ifndef TL_DRIVER_PIPELINE_JIT_SYMBOLS_H
#define TL_DRIVER_PIPELINE_JIT_SYMBOLS_H
#include "runtime/executable/executable.h"

typedef struct tl_jit_symbols tl_jit_symbols;

/* Tells gdb (through its JIT interface) what the executable's functions are called: each after the first step that uses
 * it. When the environment variable TILTH_PERF is not empty, writes them into /tmp/perf-PID.map for perf, too. NULL when
 * there is nothing to tell or no memory: that is no error. */
tl_jit_symbols *tl_jit_symbols_publish(const tl_executable *executable);
void tl_jit_symbols_withdraw(tl_jit_symbols *symbols); /* before the code goes; NULL is fine */

#endif
