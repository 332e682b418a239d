/* frontend/call/onnx_sequences.h: sequences of tensors, which are known while a model is read and are in no graph.
 *
 * A sequence is a list of values; its length is known, but for one that a loop appends to in each turn: that is a stack of
 * what the turns appended, along a new first axis which is counted (onnx_counts.h). A name that stands for a sequence is bound
 * to a value that no node makes, and nothing but these operators and bodies of loops that are written out takes it. */
#ifndef TL_FRONTEND_ONNX_ONNX_SEQUENCES_H
#define TL_FRONTEND_ONNX_ONNX_SEQUENCES_H
#include "frontend/call/onnx_call.h"

typedef struct {
    int count;
    tl_value **items;
    tl_value *stack; /* behind the items, as many as its first axis counts; NULL: none */
    /* In a body that is read: `items` are behind what this name stands for around it; NULL: it is all of the sequence. */
    const tl_value *before;
} tl_onnx_sequence;

/* NULL: the value is no sequence. */
const tl_onnx_sequence *tl_sequence_of(const tl_import *im, const tl_value *v);
/* A value that stands for the sequence. */
tl_value *tl_sequence_value(tl_onnx_call *c, const tl_onnx_sequence *s);
/* Whether the operator takes sequences. */
bool tl_takes_sequences(const char *op_type);

#endif
