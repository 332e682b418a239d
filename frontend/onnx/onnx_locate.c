/* frontend/onnx/onnx_locate.c: where in the model's files a constant's bytes lie, so that nobody has to copy them. */
#include "frontend/onnx/onnx_private.h"

bool tl_onnx_is_mapped(const void *model, const void *data, size_t size)
{
    const tl_onnx *m = model;
    const char *location, *start = data, *base = m->file.data;
    int64_t offset;
    return tl_onnx_locate(m, data, size, &location, &offset) ||
           (base != NULL && start >= base && size <= m->file.size &&
            start <= base + (m->file.size - size));
}

bool tl_onnx_locate(const tl_onnx *model, const void *data, size_t size, const char **location,
                    int64_t *offset)
{
    const char *start = data;
    for (int i = 0; i < model->file_count; i++) {
        const tl_onnx_file *file = &model->files[i];
        const char *base = file->data;
        if (base != NULL && start >= base && size <= file->size &&
            start <= base + (file->size - size)) {
            *location = file->location;
            *offset = start - base;
            return true;
        }
    }
    return false;
}

int tl_onnx_bound_count(const tl_onnx *model)
{
    return model->bound == NULL ? 0 : (int)tl_map_count(model->bound);
}

const char *tl_onnx_bound(const tl_onnx *model, int index, const void **data)
{
    tl_map_entry entry = tl_map_at(model->bound, (size_t)index);
    *data = ((const tl_value *)entry.value)->data;
    return entry.key;
}
