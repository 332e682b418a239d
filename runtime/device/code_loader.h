/* runtime/device/code_loader.h: makes a kernel's object callable without LLVM, for programs that open saved models.
 * Where LLVM is, the ORC session does it (codegen/codegen.h), for what runs and for what is timed; both pass the same
 * tests (tests/codegen/test_loaders.c).
 *
 * Reads a relocatable ELF object for this machine (x86-64), copies its code and read-only data
 * into a mapping, relocates them there, and makes code executable and everything unwritable. The
 * object is closed: the only outside names are memcpy, memset and memmove, and it has no
 * writable data. Objects come from cache files and may be damaged: every offset, index and size
 * in them is checked, and what does not hold is TL_BAD_ARGUMENT. (What the instructions
 * themselves do is the business of the checksum over the file.) */
#ifndef TL_RUNTIME_DEVICE_CODE_LOADER_H
#define TL_RUNTIME_DEVICE_CODE_LOADER_H
#include <stddef.h>
#include "runtime/base/status.h"
#include "runtime/abi/descriptor.h"
#include "runtime/abi/kernel_abi.h"

typedef struct tl_code tl_code;

/* `object` may be freed afterwards. TL_UNSUPPORTED for another machine's object. */
tl_status tl_code_load(const void *object, size_t size, tl_code **out, tl_diag *diag);
void tl_code_unload(tl_code *code); /* nobody may be running it; NULL is fine */

size_t tl_code_size(const tl_code *code); /* bytes mapped */

/* A global function of the object; NULL when it has none of that name. */
void *tl_code_find(const tl_code *code, const char *name);

/* The phases of kernel `d`: fills phases[d->phase_count] and *sizes (NULL when !d->has_sizes).
 * TL_BAD_ARGUMENT when one is missing. */
tl_status tl_code_kernel(const tl_code *code, const tl_descriptor *d, tl_phase_fn **phases,
                         tl_sizes_fn **sizes, tl_diag *diag);

#endif
