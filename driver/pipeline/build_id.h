/* driver/pipeline/build_id.h: which build of tilth this is, so that nothing made by another one is taken from a cache. */
#ifndef TL_DRIVER_PIPELINE_BUILD_ID_H
#define TL_DRIVER_PIPELINE_BUILD_ID_H

/* The linker's build id of the program or library that this code is in, as hex digits; the version when it has none. */
const char *tl_build_id(void);

#endif
