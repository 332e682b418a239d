/* tuner/measure/worker_content.c: what messages to a worker and from it hold: how it is to work, and what was built. */
#include <stdio.h>
#include "tuner/measure/worker_private.h"

static void pack_target(const tl_target *target, tl_text *out)
{
    tl_text text = { 0 };
    tl_target_print(target, &text);
    tl_pack_text(out, tl_text_get(&text));
    tl_text_free(&text);
}

void tl_worker_config_pack(const tl_worker_config *c, tl_text *out)
{
    pack_target(&c->target, out);
    pack_target(&c->host, out);
    tl_pack_text(out, c->device);
    tl_pack_int(out, c->threads);
    tl_pack_int(out, c->repeats);
    tl_pack_int(out, c->in_gaps);
    tl_pack_int(out, c->core);
    tl_pack_int(out, c->not_core);
    tl_pack_real(out, c->limit_s);
    tl_pack_int(out, c->memory_bytes);
    tl_pack_int(out, c->constant_bytes);
    tl_pack_int(out, (int64_t)c->seed);
    tl_pack_int(out, c->verify);
}

bool tl_worker_config_unpack(tl_unpacker *u, tl_worker_config *out)
{
    if (tl_target_parse(tl_unpack_text(u), &out->target, NULL) != TL_OK ||
        tl_target_parse(tl_unpack_text(u), &out->host, NULL) != TL_OK)
        return false;
    snprintf(out->device, sizeof out->device, "%s", tl_unpack_text(u));
    out->threads = (int)tl_unpack_int(u);
    out->repeats = (int)tl_unpack_int(u);
    out->in_gaps = tl_unpack_int(u) != 0;
    out->core = (int)tl_unpack_int(u);
    out->not_core = (int)tl_unpack_int(u);
    out->limit_s = tl_unpack_real(u);
    out->memory_bytes = tl_unpack_int(u);
    out->constant_bytes = tl_unpack_int(u);
    out->seed = (uint64_t)tl_unpack_int(u);
    out->verify = tl_unpack_int(u) != 0;
    return !u->failed;
}

void tl_built_pack(const tl_built *b, tl_text *out)
{
    tl_pack_bytes(out, b->object, b->object_size);
    tl_pack_text(out, b->descriptor);
    tl_pack_bytes(out, b->prepare_object, b->prepare_size);
    tl_pack_text(out, b->prepare_descriptor);
    tl_pack_int(out, b->prepared_count);
    for (int i = 0; i < b->prepared_count; i++)
        tl_pack_int(out, b->prepared_bytes[i]);
}

bool tl_built_unpack(tl_unpacker *u, tl_built *out)
{
    *out = (tl_built){ 0 };
    out->object = tl_unpack_bytes(u, &out->object_size);
    out->descriptor = tl_unpack_text(u);
    out->prepare_object = tl_unpack_bytes(u, &out->prepare_size);
    out->prepare_descriptor = tl_unpack_text(u);
    int64_t count = tl_unpack_int(u);
    if (count < 0 || count > TL_MAX_PARAMS)
        u->failed = true;
    for (int64_t i = 0; !u->failed && i < count; i++)
        out->prepared_bytes[i] = tl_unpack_int(u);
    out->prepared_count = u->failed ? 0 : (int)count;
    return !u->failed;
}
