/* runtime/api/api_values.c: statuses, dtypes, buffers and the version, as the C API shows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/api/api_private.h"
#include "runtime/base/printable.h"

#define DTYPE(name, text, bits, digits, class, least, largest, ctype, onnx, npy) \
    _Static_assert((int)TILTH_##name == (onnx), "the numbers of the C API are ONNX's");
#include "runtime/base/dtype.def"
#undef DTYPE
_Static_assert(sizeof(tilth_error) == sizeof(tl_diag), "a sentence fits");

const char *tilth_version(void)
{
    return TILTH_VERSION;
}

const char *tilth_status_text(tilth_status status)
{
    switch (status) {
    case TILTH_OK:
        return "ok";
    case TILTH_BAD_ARGUMENT:
        return "an argument is wrong";
    case TILTH_BAD_MODEL:
        return "the model is malformed";
    case TILTH_UNSUPPORTED:
        return "not supported";
    case TILTH_IO:
        return "a file could not be read or written";
    case TILTH_DEVICE:
        return "the device or the system failed";
    case TILTH_NO_MEMORY:
        return "out of memory";
    case TILTH_BUSY:
        return "another thread is using this runner";
    case TILTH_INTERNAL:
        return "internal error (a bug in tilth)";
    }
    return "unknown status";
}

static tilth_status status_of(tl_status status)
{
    switch (status) {
    case TL_OK:
        return TILTH_OK;
    case TL_BAD_ARGUMENT:
        return TILTH_BAD_ARGUMENT;
    case TL_UNBOUND:
        return TILTH_BAD_ARGUMENT;
    case TL_BAD_MODEL:
    case TL_BAD_TEXT:
        return TILTH_BAD_MODEL;
    case TL_UNSUPPORTED:
        return TILTH_UNSUPPORTED;
    case TL_IO:
        return TILTH_IO;
    case TL_DEVICE:
        return TILTH_DEVICE;
    case TL_NO_MEMORY:
        return TILTH_NO_MEMORY;
    case TL_WRONG_RESULT: /* none of these should come this far */
    case TL_ILLEGAL_SCHEDULE:
    case TL_BAD_IR:
    case TL_INTERNAL:
    case TL_BUDGET:
    case TL_INTERRUPTED:
    case TL_STATUS_COUNT:
        break;
    }
    return TILTH_INTERNAL;
}

/* Names in it are a model's: they are written so that whoever prints the sentence prints nothing else. */
static void write_sentence(const char *sentence, tilth_error *error)
{
    tl_text shown = { 0 };

    tl_text_add_printable(&shown, sentence, strlen(sentence));
    snprintf(error->text, sizeof error->text, "%s",
             shown.failed ? "out of memory" : tl_text_get(&shown));
    tl_text_free(&shown);
}

tilth_status tl_api_return(tl_status status, const tl_diag *diag, tilth_error *error)
{
    if (error != NULL && status == TL_OK)
        error->text[0] = '\0';
    else if (error != NULL)
        write_sentence(diag->text[0] != '\0' ? diag->text : tl_status_text(status), error);
    return status_of(status);
}

static const tl_dtype_info *find_dtype(tilth_dtype dtype)
{
    for (int i = 0; i < TL_DTYPE_COUNT; i++)
        if (tl_dtype_infos[i].onnx == (int)dtype)
            return &tl_dtype_infos[i];
    return NULL;
}

const char *tilth_dtype_text(tilth_dtype dtype)
{
    const tl_dtype_info *info = find_dtype(dtype);

    return info != NULL ? info->text : "unknown";
}

size_t tilth_dtype_size(tilth_dtype dtype)
{
    const tl_dtype_info *info = find_dtype(dtype);

    return info != NULL ? (size_t)info->bits / 8 : 0;
}

void *tilth_buffer_create(size_t size)
{
    if (size > SIZE_MAX - 2 * TILTH_ALIGNMENT)
        return NULL;
    size_t whole = (size / TILTH_ALIGNMENT + 1) * TILTH_ALIGNMENT; /* never empty */
    void *buffer = aligned_alloc(TILTH_ALIGNMENT, whole);

    if (buffer != NULL)
        memset(buffer, 0, whole);
    return buffer;
}

void tilth_buffer_destroy(void *buffer)
{
    free(buffer);
}
