/* driver/pipeline/device_target.h: targets that are devices: "cuda", "cuda:1", "cuda:0,sm_80"; "cuda-emulated", which runs
 * what is generated for a GPU on this CPU, slowly and under checks, for tests.
 *
 * The name says which device, and behind a comma for which generation code is; without the latter it is the device's own.
 * With a generation and no number no device is asked: code for one that is elsewhere. */
#ifndef TL_DRIVER_PIPELINE_DEVICE_TARGET_H
#define TL_DRIVER_PIPELINE_DEVICE_TARGET_H
#include "ir/program/target.h"
#include "runtime/device/device.h"

/* Whether the name is one of these. */
bool tl_target_is_device(const char *name);
/* Whether it says for which generation, and not on which device: what is compiled for it needs none. */
bool tl_target_is_foreign_device(const char *name);
/* "cuda:1" of "cuda:1,sm_80". TL_UNSUPPORTED: the target is not one that can be measured on (nvptx64). */
tl_status tl_target_device_name(const char *name, char out[32], tl_diag *diag);
/* Opens the device of the name. TL_DEVICE says why there is none. */
tl_status tl_target_open_device(const char *name, tl_device **out, tl_diag *diag);
/* The target of the name; a device that has to be asked is opened for it. */
tl_status tl_target_of_name(const char *name, tl_target *out, tl_diag *diag);
/* The device as a target; `arch` NULL: its own generation. */
tl_status tl_target_of_device(const tl_device *device, const char *arch, tl_target *out,
                              tl_diag *diag);

#endif
