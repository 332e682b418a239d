/* tuner/cost/cost_list.h: programs of one task, collected one after the other, as samples of which a cost model is asked. */
#ifndef TL_TUNER_COST_COST_LIST_H
#define TL_TUNER_COST_COST_LIST_H
#include "tuner/cost/cost_samples.h"

typedef struct {
    tl_arena *arena;       /* of all that follows; the lists need no end */
    tl_sample_shape shape; /* which columns rows and decisions have */
    int count, capacity;
    int *first_row, *row_count, *first_decision, *decision_count, *task;
    int number_count, number_capacity; /* of rows */
    float *rows;
    int token_count, token_capacity; /* numbers of decisions */
    float *decisions;
} tl_cost_list;

/* Copies the program's rows, and the tokens of its decisions (0: it has none). */
void tl_cost_list_add(tl_cost_list *list, const float *rows, int row_count, const float *decisions,
                      int decision_count);
/* Views of the list; workload and machine: tokens, or NULL; profile: of the machine that they run on, NULL: the built-in one. */
tl_cost_samples tl_cost_list_samples(const tl_cost_list *list, const float *workload,
                                     const float *machine, const tl_machine *const *profile);

#endif
