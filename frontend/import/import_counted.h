/* frontend/import/import_counted.h: importers of calls whose results have extents that data decide (onnx_counts.h). */
#ifndef TL_FRONTEND_IMPORT_IMPORT_COUNTED_H
#define TL_FRONTEND_IMPORT_IMPORT_COUNTED_H
#include "frontend/call/onnx_counts.h"

/* Whether the call's operator may get values that are counted: its importer only makes nodes whose rules know them. */
bool tl_takes_counted(const char *op_type);
/* import_computed.c: what imports the call in place of its rule, for extents of its results are computed; NULL: they are not. */
tl_status tl_find_computed(tl_onnx_call *c, tl_importer **out);

/* import_counted.c: the operators of import_values.c on what is computed on the way. */
tl_status tl_count_non_zero(tl_onnx_call *c);
tl_status tl_count_compress(tl_onnx_call *c);
tl_status tl_count_unique(tl_onnx_call *c);
tl_status tl_count_suppressed(tl_onnx_call *c);

#endif
