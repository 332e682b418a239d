/* runtime/executable/linked.h: a compiled model that is part of a program or a library, as `tilth compile` writes it
 * into an object file.
 *
 *     program:  | kernels' code | ... | tl_linked, functions | text | constants | prepared |
 *                     ^---------------------'                   ^-------^----------^ pointers
 *
 * The text is that of executable.json (executable_pack.c), the bulk lies as it does in the files of a saved executable.
 * It is as trustworthy as the code around it: checksums of the bulk are not compared. */
#ifndef TL_RUNTIME_EXECUTABLE_LINKED_H
#define TL_RUNTIME_EXECUTABLE_LINKED_H
#include "runtime/executable/executable.h"

typedef void tl_linked_function(void); /* a tl_phase_fn or a tl_sizes_fn */

/* What programs know as tilth_linked. */
struct tilth_linked {
    char magic[8]; /* TL_LINKED_MAGIC */
    uint64_t text_size, constants_size, prepared_size, function_count;
    const char *text;
    const void *constants, *prepared; /* NULL when there are none */
    /* kernel by kernel, in the order of the text: its phases, then its sizes function if it has one */
    tl_linked_function *const *functions;
};
#define TL_LINKED_MAGIC  "tlink\0\0\1"
#define TL_LINKED_SYMBOL "tilth_linked_model" /* its name in a library, whatever other it has */

/* Borrows everything, for as long as the executable lives. TL_IO when it is damaged or from another version,
 * TL_UNSUPPORTED when this processor cannot run it. */
tl_status tl_executable_open_linked(const struct tilth_linked *linked, tl_executable **out,
                                    tl_diag *diag);

#endif
