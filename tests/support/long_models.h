/* tests/support/long_models.h: ONNX models of any length: chains, and nodes with many inputs or outputs. What compiles them in
 * time that grows faster than the file is found by them. */
#ifndef TL_TESTS_LONG_MODELS_H
#define TL_TESTS_LONG_MODELS_H
#include "runtime/base/text.h"

/* Names of long_models.def, then "concat" (one value `length` times), "concat_each" (`length` values), "split" (into
 * `length` outputs) and "sum"; NULL beyond the last. */
const char *long_model_name(int index);
/* The model's file; free it with tl_text_free. */
tl_text long_model(const char *name, int length);

#endif
