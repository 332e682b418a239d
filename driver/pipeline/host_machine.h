/* driver/pipeline/host_machine.h: machine profiles (ir/program/machine.h) as files: this machine's in the user's data folder, or
 * one that is named. */
#ifndef TL_DRIVER_PIPELINE_HOST_MACHINE_H
#define TL_DRIVER_PIPELINE_HOST_MACHINE_H
#include "ir/program/machine.h"
#include "runtime/base/arena.h"

/* $XDG_DATA_HOME/tilth/machine-XXXXXXXX.txt, of this processor, its caches and cores: a home that several machines share has one
 * for each. False: there is no such folder to name. */
bool tl_machine_default_path(const tl_target *host, tl_text *out);
/* Whether it was measured on a processor of this name with these caches and cores. */
bool tl_machine_is_of(const tl_machine *machine, const tl_target *host);

/* TL_BAD_ARGUMENT: not there; TL_IO; TL_BAD_TEXT: no profile, or a broken one. */
tl_status tl_machine_load(const char *path, tl_machine *out, tl_diag *diag);
tl_status tl_machine_store(const char *path, const tl_machine *machine, tl_diag *diag);

/* What --machine says: NULL or "built-in" (*out NULL), "probed" (TL_BAD_ARGUMENT when there is none) or a file. In `arena`. */
tl_status tl_machine_choose(tl_arena *arena, const char *word, const tl_target *host,
                            const tl_machine **out, tl_diag *diag);
/* This machine's, of its place in the data folder; NULL: none, or none that is sound. In `arena`. */
const tl_machine *tl_machine_probed(tl_arena *arena, const tl_target *host);

#endif
