/* tuner/cost/cost_file.c: cost models in files. A model counts columns, so that one of other features is refused. */
#include <stdio.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/cost/cost_private.h"
#include "tuner/cost/features.h"

/* "tilth cost model trees features DIGEST content DIGEST\n" */
static void first_line(const char *type, const void *bytes, size_t size, tl_text *out)
{
    char name[48], digits[33];
    tl_digest digest;
    tl_digest_start(&digest);
    for (int i = 0; i < TL_FEATURE_WIDTH; i++) {
        tl_feature_name(i, name);
        tl_digest_add(&digest, name, strlen(name) + 1);
    }
    tl_digest_text(&digest, digits);
    tl_text_format(out, "tilth cost model %s features %s content ", type, digits);
    tl_digest_start(&digest);
    tl_digest_add(&digest, bytes, size);
    tl_digest_text(&digest, digits);
    tl_text_format(out, "%s\n", digits);
}

tl_status tl_cost_file_write(const char *path, const char *type, const void *bytes, size_t size,
                             tl_diag *diag)
{
    tl_text file = { 0 };
    first_line(type, bytes, size, &file);
    tl_text_add_bytes(&file, bytes, size);
    tl_status status = file.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                   : tl_file_write(path, file.data, file.size, diag);
    tl_text_free(&file);
    return status;
}

tl_status tl_cost_file_read(const char *path, const char *type, tl_text *file, const void **bytes,
                            size_t *size, tl_diag *diag)
{
    TL_TRY(tl_file_read(path, file, diag));
    const char *end = file->size > 0 ? memchr(file->data, '\n', file->size) : NULL;
    if (end == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "%s is no cost model of tilth", path);
    tl_text line = { 0 };
    size_t head = (size_t)(end - file->data) + 1;
    *bytes = file->data + head;
    *size = file->size - head;
    first_line(type, *bytes, *size, &line);
    bool same = !line.failed && line.size == head && memcmp(line.data, file->data, head) == 0;
    tl_text_free(&line);
    if (!same)
        return tl_fail(diag, TL_BAD_TEXT,
                       "%s is not a sound cost model \"%s\" of this version's features", path,
                       type);
    return TL_OK;
}

tl_status tl_cost_save_nothing(const tl_cost_model *model, const char *path, tl_diag *diag)
{
    return tl_cost_file_write(path, model->type->name, "", 0, diag);
}

tl_status tl_cost_load_nothing(tl_cost_model *model, const char *path, tl_diag *diag)
{
    tl_text file = { 0 };
    const void *bytes;
    size_t size;
    tl_status status = tl_cost_file_read(path, model->type->name, &file, &bytes, &size, diag);
    tl_text_free(&file);
    return status;
}

tl_status tl_cost_learn_nothing(tl_cost_model *model, const tl_feature_set *programs,
                                const float *label, tl_diag *diag)
{
    (void)model;
    (void)programs;
    (void)label;
    (void)diag;
    return TL_OK;
}
