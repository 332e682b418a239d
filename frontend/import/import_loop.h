/* frontend/import/import_loop.h: a Loop or Scan while it is imported: import_loop.c reads the call and writes short ones out,
 * import_loop_node.c makes a node with a body of the others. */
#ifndef TL_FRONTEND_ONNX_IMPORT_LOOP_H
#define TL_FRONTEND_ONNX_IMPORT_LOOP_H
#include "frontend/call/onnx_call.h"

enum {
    TL_LOOP_VALUES = 256, /* in a loop, at most */
    TL_LOOP_AXES = 64,    /* of them that change from turn to turn */
};

/* An axis of a state whose extent changes from turn to turn, or one of what each turn gives whose extent the turns compute: the
 * loop has its count as one more state. */
typedef struct {
    int value, axis; /* of which state, or of what each turn gives */
    bool is_slice;
    int64_t most;     /* the largest extent that there can be */
    int64_t extent;   /* and that which a turn makes of it */
    tl_value *inside; /* the count in the body before a turn, */
    tl_value *after;  /* and behind it */
} tl_loop_axis;

typedef struct {
    Onnx__GraphProto *body;
    int64_t turns; /* known number of turns; -1: data decide */
    bool may_vary; /* and it may be another one where extents are others */
    int state_count,
        scan_count; /* values that go around; results of which each turn gives a slice */
    tl_value *state[TL_LOOP_VALUES];
    tl_value **slices[TL_LOOP_VALUES]; /* of each scan output, one a turn */
    tl_value *outputs[2 * TL_LOOP_VALUES];
    tl_value *results[2 * TL_LOOP_VALUES]; /* states, then stacks of slices along a first axis */
    /* of a Loop */
    tl_value *wanted, *enters;
    /* of a Scan */
    int scanned_count, axes[TL_LOOP_VALUES];
    bool backwards[TL_LOOP_VALUES];
    tl_value *scanned[TL_LOOP_VALUES];
    tl_value *scanned_turns; /* where what is scanned is counted: how many turns there are */
    /* of a node */
    bool may_change;   /* extents of states may change from turn to turn */
    bool grows;        /* and one of them does, by so much a turn; */
    bool seen_to_grow; /* the same while the body is read */
    bool grows_by_any; /* by so much at most, which is computed from the extent itself */
    bool has_changed;
    int axis_count;
    tl_loop_axis changing[TL_LOOP_AXES];
    const char *reason; /* why its body cannot be one; NULL: the body itself says so */
} tl_loop_call;

/* False: its body cannot be that of a node. */
bool tl_make_loop(tl_onnx_call *c, tl_loop_call *l);

#endif
