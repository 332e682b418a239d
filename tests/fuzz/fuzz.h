/* tests/fuzz/fuzz.h: what the targets share. A target is one file, fuzz_NAME.c: it gives bytes to one reader, which may
 * refuse them with a sentence, and what it takes has to be good. A target that finds it is not calls fuzz_fail. */
#ifndef TL_TESTS_FUZZ_H
#define TL_TESTS_FUZZ_H
#include <stddef.h>
#include <stdint.h>
#include "frontend/frontend.h"

/* What libFuzzer and replay.c call for each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Ends the program with the sentence. */
_Noreturn void fuzz_fail(const char *what, const tl_diag *diag);
/* A status other than TL_OK has a sentence. */
void fuzz_check_refusal(tl_status status, const tl_diag *diag);
/* The bytes as a text: up to their first zero byte. */
const char *fuzz_text(tl_arena *arena, const uint8_t *bytes, size_t size);
/* All that is done to a graph between a model and its naive programs, which are verified; each step may refuse it. */
void fuzz_graph(tl_arena *arena, tl_graph *g);

#endif
