/* driver/tune/kernel_task.h: a kernel's text as a task of the tuner. */
#ifndef TL_DRIVER_TUNE_KERNEL_TASK_H
#define TL_DRIVER_TUNE_KERNEL_TASK_H
#include "driver/study/study.h"
#include "tuner/model/tune_list.h"

/* One task: the kernel for the study's dims; in the study's arena. */
void tl_tune_tasks_of_kernel(const tl_study *study, tl_tune_list *out);

#endif
