/* driver/tune/transfer_report.h: what `tilth transfer` says: who the donors are, and what each kernel got of them. */
#ifndef TL_DRIVER_TUNE_TRANSFER_REPORT_H
#define TL_DRIVER_TUNE_TRANSFER_REPORT_H
#include "driver/tune/find_donors.h"
#include "driver/tune/tune_report.h"

/* Before anything is measured: how many kernels have donors, and which share of the expected time. */
void tl_transfer_report_donors(const tl_donor_report *donors, const tl_tune_list *list, bool json);
/* A line a kernel: whose schedule it has now, by which route, what was adapted, what that gained. `untimed`: gains are not
 * known. */
void tl_transfer_report_print(const tl_tune_report *report, const tl_donor_report *donors,
                              const tl_tuning *tuning, bool untimed);

#endif
