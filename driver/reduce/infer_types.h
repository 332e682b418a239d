/* driver/reduce/infer_types.h: what is known of a model's tensors, written into its declarations. */
#ifndef TL_DRIVER_REDUCE_INFER_TYPES_H
#define TL_DRIVER_REDUCE_INFER_TYPES_H
#include "driver/reduce/draft.h"
#include "frontend/frontend.h"

/* Gives the inputs these shapes. */
void tl_draft_bind(tl_draft *d, const tl_shape_override *shapes, int count);

/* Reads the model as tilth does, which may crash: for a child. Writes into `folder` the model with all dtypes and shapes that are
 * known (typed.onnx) and, where some nodes compute small constants, the same with these constants (folded.onnx). */
tl_status tl_infer_types(const tl_text *model, const char *folder);

#endif
