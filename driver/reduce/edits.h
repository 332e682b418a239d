/* driver/reduce/edits.h: the edits of a model (driver/reduce/edits.def). Each counts its parts in a draft, and edits the parts
 * first..end-1 in one of its ways; false: there is nothing to be done, or not this way. */
#ifndef TL_DRIVER_REDUCE_EDITS_H
#define TL_DRIVER_REDUCE_EDITS_H
#include "driver/reduce/draft.h"

typedef int tl_edit_count(const tl_draft *d);
typedef bool tl_edit_make(tl_draft *d, int first, int end, int way);
typedef struct {
    const char *name;
    tl_edit_count *count;
    tl_edit_make *make;
    int ways;
    bool is_once, is_of_shapes;
} tl_edit;
extern const tl_edit tl_edits[];
extern const int tl_edit_total;

/* driver/reduce/edit_nodes.c */
int tl_count_outputs(const tl_draft *d);
bool tl_drop_outputs(tl_draft *d, int first, int end, int way);
int tl_count_nodes(const tl_draft *d);
/* Way 0: what they made becomes inputs; 1: and what only they read becomes outputs; 2: it becomes weights. */
bool tl_cut_nodes(tl_draft *d, int first, int end, int way);
bool tl_bypass_nodes(tl_draft *d, int first, int end, int way);

/* driver/reduce/edit_shapes.c */
int tl_count_axes(const tl_draft *d);
bool tl_shrink_axes(tl_draft *d, int first, int end, int way);
int tl_count_extents(const tl_draft *d);
/* Ways 0..2: to 1, to 2, to half, in all inputs; 3..5: in weights, too. */
bool tl_shrink_extents(tl_draft *d, int first, int end, int way);

/* driver/reduce/edit_weights.c. The floats among the weights. */
int tl_count_weights(const tl_draft *d);
bool tl_seed_weights(tl_draft *d, int first, int end, int way);
bool tl_level_weights(tl_draft *d, int first, int end, int way);

#endif
