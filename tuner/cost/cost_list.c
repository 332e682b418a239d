/* tuner/cost/cost_list.c: programs of one task, collected one after the other. */
#include "tuner/cost/cost_list.h"
#include "runtime/base/array.h"

static void make_room(tl_cost_list *l)
{
    int capacity = l->capacity;
    int **const lists[] = { &l->row_count, &l->first_decision, &l->decision_count, &l->task };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int own = capacity;
        TL_ROOM(l->arena, *lists[i], l->count, own);
    }
    TL_ROOM(l->arena, l->first_row, l->count, l->capacity);
}

void tl_cost_list_add(tl_cost_list *l, const float *rows, int row_count, const float *decisions,
                      int decision_count)
{
    make_room(l);
    l->task[l->count] = 0;
    l->row_count[l->count] = row_count;
    l->first_row[l->count] = l->shape.row.width > 0 ? l->number_count / l->shape.row.width : 0;
    l->decision_count[l->count] = decision_count;
    l->first_decision[l->count] =
        l->shape.decision.width > 0 ? l->token_count / l->shape.decision.width : 0;
    l->count++;
    for (int i = 0; i < row_count * l->shape.row.width; i++) {
        TL_ROOM(l->arena, l->rows, l->number_count, l->number_capacity);
        l->rows[l->number_count++] = rows[i];
    }
    for (int i = 0; i < decision_count * l->shape.decision.width; i++) {
        TL_ROOM(l->arena, l->decisions, l->token_count, l->token_capacity);
        l->decisions[l->token_count++] = decisions[i];
    }
}

tl_cost_samples tl_cost_list_samples(const tl_cost_list *l, const float *workload,
                                     const float *machine, const tl_machine *const *profile)
{
    return (tl_cost_samples){ .shape = l->shape,
                              .count = l->count,
                              .task_count = 1,
                              .domain_count = 1,
                              .first_row = l->first_row,
                              .row_count = l->row_count,
                              .rows = l->rows,
                              .first_decision = l->first_decision,
                              .decision_count = l->decision_count,
                              .decisions = l->decisions,
                              .task = l->task,
                              .workloads = workload,
                              .machines = machine,
                              .profiles = profile };
}
