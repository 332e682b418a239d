/* driver/reduce/check_model.h: whether a model is bad. */
#ifndef TL_DRIVER_REDUCE_CHECK_MODEL_H
#define TL_DRIVER_REDUCE_CHECK_MODEL_H
#include "driver/reduce/check_child.h"
#include "driver/reduce/reduce.h"

typedef struct tl_check tl_check;
/* In the arena; it and `path`, where the model to be checked will lie, outlive the check. */
tl_check *tl_check_create(tl_arena *arena, const tl_reduce_options *options, const char *path,
                          bool (*is_over)(void));
/* The first model that is checked says how it is bad; the next ones have to be bad in the same way. */
tl_status tl_check_model(tl_check *check, bool *is_bad, tl_diag *diag);
/* How the latest check ended: "exit status 1". */
void tl_check_text(const tl_check *check, char *out, size_t size);

#endif
