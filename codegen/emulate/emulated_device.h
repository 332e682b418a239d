/* codegen/emulate/emulated_device.h: a GPU that is not there, as a row of the table of devices (runtime/device/device.h):
 * its memory is this process's, its kernels are modules of LLVM (TL_FORM_LLVM), which the emulator runs when they are put
 * into a queue. A launch that does what it must not loses the device, as an illegal address loses a real one. */
#ifndef TL_CODEGEN_EMULATE_EMULATED_DEVICE_H
#define TL_CODEGEN_EMULATE_EMULATED_DEVICE_H
#include "runtime/device/device.h"

extern const tl_device_type tl_device_type_emulated;

/* Makes it known to tl_device_open as "cuda-emulated". May be called again. */
void tl_emulated_device_add(void);

#endif
