/* driver/pipeline/family.h: one model for all shapes of its inputs.
 *
 * The first combination of shapes is compiled as it is. From the second on axes that differ become dims of one code for all
 * of them (driver/pipeline/open_axes.h) where they can; for combinations that it is not for, and those that come again and
 * again, code of their own is made, and the latest of that kept. */
#ifndef TL_DRIVER_PIPELINE_FAMILY_H
#define TL_DRIVER_PIPELINE_FAMILY_H
#include "driver/pipeline/model.h"
#include "driver/pipeline/open_axes.h"

typedef struct tl_family tl_family;

enum { TL_FAMILY_LIMIT = 16 }; /* combinations that are kept at most */

/* Where the model comes from: a file, which is read again for each new combination and must stay as it is, or bytes, which
 * are copied. */
typedef struct {
    const char *path; /* NULL: in memory */
    const void *bytes;
    size_t size;
    const char *folder; /* of external weights of bytes; NULL: there may be none */
} tl_family_source;

/* An input as a call has it. */
typedef struct {
    tl_shape shape;
    const void *data; /* packed; NULL: no value is offered, should a shape depend on it */
    size_t size;
} tl_family_given;

/* Code for a call. Whoever is given one has a part of the member, which lives as long as any part of it; the family lives
 * longer. */
typedef struct tl_family_member tl_family_member;
typedef struct {
    tl_family_member *member;
    const tl_executable_spec *spec;
    int64_t dims[TL_MOST_DIMS]; /* of its executable, for this call */
} tl_family_code;

/* Reads what the model's inputs are, and compiles nothing yet. Options are as of tl_model_load, without shapes; what they point
 * to is copied but for pool and user. TL_UNSUPPORTED: an input has a type that tilth has not. */
tl_status tl_family_create(const tl_family_source *source, const tl_model_options *options,
                           tl_family **out, tl_diag *diag);
void tl_family_destroy(tl_family *family); /* NULL is fine */
const tl_onnx_signature *tl_family_signature(const tl_family *family);

/* Whether code with these ports is for these inputs: their shapes, and the values that decide. `dims`: what its dims are then. */
bool tl_family_fits(const tl_executable_spec *spec, const tl_family_given *given,
                    int64_t dims[TL_MOST_DIMS]);
/* The code for these inputs, one for each of the signature, compiled if there is none: that for exactly these shapes, else that
 * for all of them. From any thread; a second one that wants something new waits. */
tl_status tl_family_find(tl_family *family, const tl_family_given *given, tl_family_code *out,
                         tl_diag *diag);
const tl_model *tl_family_model(const tl_family_member *member);
void tl_family_release(tl_family_member *member); /* a part of it; NULL is fine */

/* How often the model was compiled (or found on disk) so far. */
int64_t tl_family_compiled(tl_family *family);
/* What is known of an open axis; it changes with calls. */
int tl_family_axis_count(const tl_family *family);
tl_open_axis tl_family_axis(tl_family *family, int index, bool *is_dim);

#endif
