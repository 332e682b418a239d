/* driver/pipeline/compile_native.c: PTX becomes the machine code of the device that is there, once: the driver's compiler takes
 * longer than ours, and what it made is kept under a key of all that decides it. Without it the PTX is loaded, which is the
 * same but for the time; so that what goes wrong here is said when the PTX is loaded. */
#include <string.h>
#include "driver/pipeline/model_private.h"
#include "runtime/base/map.h"

static void native_key(const tl_work *work, const tl_device *device, char out[33])
{
    tl_text text = { 0 };
    tl_digest digest;

    tl_text_format(&text, "native %s for %s by %s, level 4\n", work->key, device->facts.arch,
                   device->facts.driver);
    tl_digest_start(&digest);
    tl_digest_add(&digest, text.data, text.size);
    tl_digest_add(&digest, work->object.data, work->object.size);
    tl_digest_text(&digest, out);
    tl_text_free(&text);
}

static bool recall(const tl_model *model, const char *key, tl_text *out)
{
    tl_cached cached;

    if (model->cache == NULL || !tl_cache_find(model->cache, key, &cached))
        return false;
    tl_text_add_bytes(out, cached.object, cached.object_size);
    tl_cached_free(&cached);
    return !out->failed;
}

tl_status tl_compile_native(tl_model *model, bool use_cache, tl_diag *diag)
{
    const tl_device_type *type = model->device->type;
    char key[33];

    for (int i = 0; type->compile != NULL && i < model->work_count; i++) {
        tl_work *work = &model->works[i];
        native_key(work, model->device, key);
        if (use_cache && recall(model, key, &work->native))
            continue;
        tl_text_free(&work->native);
        if (type->compile(model->device, &work->descriptor, work->object.data, work->object.size,
                          &work->native, NULL) != TL_OK) {
            tl_text_free(&work->native);
            TL_TRY(type->check(model->device, diag));
        } else if (use_cache) {
            tl_cache_store(model->cache, key, work->native.data, work->native.size, "{}");
        }
    }
    return TL_OK;
}
