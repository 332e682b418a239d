/* frontend/onnx/onnx_walk.h: the walk over a model's graphs. onnx_import.c walks graphs, onnx_nodes.c their nodes,
 * onnx_functions.c the bodies of local functions, in the order that onnx_order.c finds. */
#ifndef TL_FRONTEND_ONNX_ONNX_WALK_H
#define TL_FRONTEND_ONNX_ONNX_WALK_H
#include "frontend/call/onnx_scope.h"
#include "frontend/onnx/onnx_private.h"

/* The numbers of nodes in an order in which each comes after those it reads: the file's own where that is one.
 * TL_BAD_MODEL names a cycle, or a name that two nodes compute. */
tl_status tl_onnx_order(tl_import *im, const tl_onnx_scope *s, size_t count,
                        Onnx__NodeProto **nodes, const int **out);
tl_status tl_import_nodes(tl_import *im, tl_onnx_scope *s, size_t count, Onnx__NodeProto **nodes);
/* A node's attributes, with references to those of the enclosing function resolved. */
tl_status tl_collect_attributes(tl_import *im, const tl_onnx_scope *s, const Onnx__NodeProto *node,
                                const char *name, int *count, Onnx__AttributeProto ***out);

const char *tl_function_key(tl_arena *arena, const char *domain, const char *name,
                            const char *overload);
/* The nodes of `f` in place of the node that calls it. */
tl_status tl_inline_function(tl_import *im, tl_onnx_scope *caller, const Onnx__FunctionProto *f,
                             const Onnx__NodeProto *node, const char *name);

#endif
