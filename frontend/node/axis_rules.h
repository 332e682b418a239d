/* frontend/node/axis_rules.h: how axes of an operator's output belong to axes of its inputs. */
#ifndef TL_FRONTEND_NODE_AXIS_RULES_H
#define TL_FRONTEND_NODE_AXIS_RULES_H
#include "ir/graph/graph.h"

/* Whether each position on an axis of the node's output needs of every input either the same position on one axis of it,
 * of the same extent, or all of it. of[i]: that axis of input i; -1: all of it, or it is missing. */
bool tl_axis_of_inputs(const tl_node *n, int axis, int *of);

#endif
