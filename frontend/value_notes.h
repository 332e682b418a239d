/* frontend/value_notes.h: what the frontend has decided of a value, beside how it lies in memory: the annotation that a graph
 * carries from the pass that decides to those that follow. */
#ifndef TL_FRONTEND_VALUE_NOTES_H
#define TL_FRONTEND_VALUE_NOTES_H
#include "ir/graph/graph.h"

typedef struct {
    /* Of a form (graph/graph_form.c): it is written to memory; it is not laid out in blocks. */
    bool is_cut, is_plain;
    /* Its one reader computes it, band by band, in its own kernel (graph/assign_blocks.c). */
    bool is_inside;
    /* Its node only says where its elements lie: no kernel makes it (graph/assign_windows.c). */
    bool is_view;
    /* Of a constant: the node that it was folded from; NULL: it is the model's own, or made by a pass. */
    const char *folded;
    /* Of a graph that stands for several (tl_graph.varies): what it is for all of them, of whoever made it; NULL: not known. */
    const struct tl_joined_value *joined;
} tl_value_notes;

/* Those of a value, for reading: nothing was decided until somebody does. */
const tl_value_notes *tl_notes_of(const tl_value *v);
/* The same, for writing. */
tl_value_notes *tl_notes_make(tl_graph *g, tl_value *v);

#endif
