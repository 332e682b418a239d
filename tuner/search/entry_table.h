/* tuner/search/entry_table.h: entries of a catalog as samples for a cost model. */
#ifndef TL_TUNER_SEARCH_ENTRY_TABLE_H
#define TL_TUNER_SEARCH_ENTRY_TABLE_H
#include "tuner/search/policy_private.h"

typedef struct {
    tl_cost_samples programs; /* of one task on one machine; without labels */
    int *first_row, *row_count, *task, *first_decision, *decision_count;
    float *rows, *decisions;
} tl_entry_table;

/* Rows of features, made again where they were forgotten; with tokens when the explorer has experts. False: no memory; free it
 * all the same. */
bool tl_entry_table_make(tl_explorer *x, const int *entries, int count, tl_entry_table *out);
void tl_entry_table_free(tl_entry_table *table);

#endif
