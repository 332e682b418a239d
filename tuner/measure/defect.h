/* tuner/measure/defect.h: reproducers of what must not happen. */
#ifndef TL_TUNER_MEASURE_DEFECT_H
#define TL_TUNER_MEASURE_DEFECT_H
#include "tuner/measure/measure.h"

/* Writes FOLDER/TASK-HASH.tk (the naive program, or the scheduled one when there is no trace; its first lines say what
 * happened) and FOLDER/TASK-HASH.tr (the trace), for `tilth schedule`. The path of the .tk goes to result->reproducer,
 * "" when it cannot be written. */
void tl_defect_write(const char *folder, const tl_measure_task *task, const tl_candidate *candidate,
                     tl_result *result);

#endif
