/* driver/output/output.h: the forms in which `tilth compile` writes a model. */
#ifndef TL_DRIVER_OUTPUT_OUTPUT_H
#define TL_DRIVER_OUTPUT_OUTPUT_H
#include "driver/pipeline/model.h"

/* What a form is made of. */
typedef enum { TL_OUTPUT_EXECUTABLE, TL_OUTPUT_PROGRAMS } tl_output_source;

typedef struct {
    const tl_model *model;
    /* Nothing is there before it is whole; a device or pipe gets it (runtime/base/file.h). */
    const char *path;
    const char *symbol; /* TL_OUTPUT_EXECUTABLE of an object: how a program calls it */
    tl_text header;     /* set to the path of a second file, when one was written */
} tl_output;

typedef tl_status tl_output_writer(tl_output *output, tl_diag *diag);
tl_output_writer tl_output_folder, tl_output_library, tl_output_object, tl_output_llvm,
    tl_output_assembly, tl_output_ptx;

typedef struct {
    const char *name;
    tl_output_source source;
    tl_output_writer *write; /* NULL: not yet */
    const char *summary;
} tl_output_format;
extern const tl_output_format tl_output_formats[];
extern const int tl_output_format_count;

/* output_folder.c: whether there is nothing at `path`, an empty folder, or a compiled model, and its own folder can be
 * written. */
tl_status tl_output_check_folder(const char *path, tl_diag *diag);
/* output_object.c: the executable as an object file that defines `symbol`. */
tl_status tl_output_write_object(const tl_model *model, const char *symbol, const char *path,
                                 tl_diag *diag);
/* output_header.c: the text of the header that declares it; a path without its folder. */
void tl_output_print_header(const tl_model *model, const char *symbol, const char *path,
                            tl_text *out);
const char *tl_output_base(const char *path);

#endif
