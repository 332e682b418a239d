/* frontend/call/onnx_sequences.c: which names stand for sequences (onnx_sequences.h). */
#include "frontend/call/onnx_sequences.h"
#include <string.h>
#include "frontend/call/onnx_scope.h"

const tl_onnx_sequence *tl_sequence_of(const tl_import *im, const tl_value *v)
{
    return im->sequences == NULL || v == NULL ? NULL
                                              : tl_map_find(im->sequences, tl_value_key(im, v));
}

tl_value *tl_sequence_value(tl_onnx_call *c, const tl_onnx_sequence *s)
{
    tl_import *im = c->import;
    const char *name = tl_arena_format(c->arena, "%s.sequence%d", c->name, c->temporaries++);
    tl_value *v = tl_graph_value(c->graph, name, TL_DTYPE_COUNT, NULL);
    tl_onnx_sequence *kept = TL_NEW(im->arena, tl_onnx_sequence);
    *kept = *s;
    if (im->sequences == NULL)
        im->sequences = tl_map_create(im->arena);
    tl_map_put(im->sequences, tl_value_key(im, v), kept);
    return v;
}

bool tl_takes_sequences(const char *op_type)
{
    static const char *const names[] = {
        "SequenceAt",         "SequenceInsert", "SequenceErase", "SequenceLength",
        "ConcatFromSequence", "Identity",       "Loop"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], op_type) == 0)
            return true;
    return false;
}
