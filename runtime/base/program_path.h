/* runtime/base/program_path.h: by which path this program is started again, as a worker or a check. */
#ifndef TL_RUNTIME_BASE_PROGRAM_PATH_H
#define TL_RUNTIME_BASE_PROGRAM_PATH_H

/* What TILTH_PROGRAM says, for a program that is not started by itself alone: one with a dynamic linker and libraries beside it
 * (tests/gpu/bundle.sh). Else the file that runs. */
const char *tl_program_path(void);

#endif
