/* tuner/cost/cost_file.c: cost models in files:
 *
 *     tilth cost model 1
 *     type trees
 *     settings rounds=100 depth=8          as create takes them
 *     seed 1
 *     row 175 d41d8c...                    columns that it was trained with: how many, and the digest of what they mean
 *     decision 0 -
 *     workload 0 -
 *     machine 0 -
 *     content 12345 0cc175...              bytes that follow; digest of all that is above this line and below it
 *
 * then what the model itself keeps. Files are not trusted: everything is bounded and checked before it is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/cost/cost_private.h"

enum { VERSION = 1, MOST_WIDTH = 1 << 16, MOST_LINE = 400, MOST_BYTES = 256 << 20 };

static void digest_of(const void *head, size_t head_size, const void *body, size_t size,
                      char out[33])
{
    tl_digest digest;
    tl_digest_start(&digest);
    tl_digest_add(&digest, head, head_size);
    tl_digest_add(&digest, body, size);
    tl_digest_text(&digest, out);
}

static const struct {
    const char *name;
    size_t at;
} kinds[] = {
    { "row", offsetof(tl_sample_shape, row) },
    { "decision", offsetof(tl_sample_shape, decision) },
    { "workload", offsetof(tl_sample_shape, workload) },
    { "machine", offsetof(tl_sample_shape, machine) },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

tl_status tl_cost_model_pack(const tl_cost_model *model, tl_text *out, tl_diag *diag)
{
    tl_text body = { 0 }, head = { 0 };
    char digest[33];
    TL_TRY(model->type->write(model, &body, diag));
    tl_text_format(&head, "tilth cost model %d\ntype %s\nsettings ", VERSION, model->type->name);
    model->type->settings(model, &head);
    tl_text_format(&head, "\nseed %llu\n", (unsigned long long)model->seed);
    for (int k = 0; k < KINDS; k++) {
        const tl_columns *c = (const tl_columns *)((const char *)&model->shape + kinds[k].at);
        tl_text_format(&head, "%s %d %s\n", kinds[k].name, c->width,
                       c->digest[0] != '\0' ? c->digest : "-");
    }
    if (!head.failed && !body.failed) {
        digest_of(head.data, head.size, tl_text_get(&body), body.size, digest);
        tl_text_format(&head, "content %zu %s\n", body.size, digest);
        tl_text_add_bytes(&head, tl_text_get(&body), body.size);
        tl_text_add_bytes(out, head.data, head.size);
    }
    bool failed = head.failed || body.failed || out->failed;
    tl_text_free(&head);
    tl_text_free(&body);
    return failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *at, *end; /* the file's name; what is not read yet */
} reader;

static tl_status no_model(const reader *r, const char *why, tl_diag *diag)
{
    return tl_fail(diag, TL_BAD_TEXT, "%s is no sound cost model: %s", r->name, why);
}

/* The next line after its first word, as a text of its own. */
static tl_status read_line(reader *r, const char *word, char line[MOST_LINE], tl_diag *diag)
{
    size_t most = (size_t)(r->end - r->at), size = strlen(word);
    const char *end = most > 0 ? memchr(r->at, '\n', most < MOST_LINE ? most : MOST_LINE) : NULL;
    if (end == NULL || (size_t)(end - r->at) < size || memcmp(r->at, word, size) != 0 ||
        memchr(r->at, '\0', (size_t)(end - r->at)) != NULL)
        return tl_fail(diag, TL_BAD_TEXT,
                       "%s is no sound cost model: no line \"%s\" where it belongs", r->name, word);
    snprintf(line, MOST_LINE, "%.*s", (int)((size_t)(end - r->at) - size), r->at + size);
    r->at = end + 1;
    return TL_OK;
}

static tl_status read_columns(reader *r, const char *kind, tl_columns *out, tl_diag *diag)
{
    char line[MOST_LINE], digest[34];
    int width, used = 0;
    TL_TRY(read_line(r, kind, line, diag));
    if (sscanf(line, " %d %33s%n", &width, digest, &used) != 2 || line[used] != '\0' || width < 0 ||
        width > MOST_WIDTH || strlen(digest) > 32)
        return no_model(r, "its columns cannot be read", diag);
    out->width = width;
    snprintf(out->digest, sizeof out->digest, "%.32s", strcmp(digest, "-") == 0 ? "" : digest);
    return TL_OK;
}

typedef struct {
    char type[MOST_LINE], settings[MOST_LINE];
    unsigned long long seed;
    tl_sample_shape shape;
} header;

static tl_status read_header(reader *r, header *out, tl_diag *diag)
{
    const char *begin = r->at;
    char line[MOST_LINE], digest[34], ours[33];
    int version = 0, used = 0;
    size_t size;
    if ((size_t)(r->end - r->at) > MOST_BYTES)
        return no_model(r, "it is larger than any", diag);
    TL_TRY(read_line(r, "tilth cost model", line, diag));
    if (sscanf(line, " %d%n", &version, &used) != 1 || line[used] != '\0')
        return no_model(r, "its version cannot be read", diag);
    if (version != VERSION)
        return tl_fail(diag, TL_BAD_TEXT, "%s is a cost model of version %d; this tilth reads %d",
                       r->name, version, VERSION);
    TL_TRY(read_line(r, "type ", out->type, diag));
    TL_TRY(read_line(r, "settings ", out->settings, diag));
    TL_TRY(read_line(r, "seed", line, diag));
    if (sscanf(line, " %llu%n", &out->seed, &used) != 1 || line[used] != '\0')
        return no_model(r, "its seed cannot be read", diag);
    for (int k = 0; k < KINDS; k++)
        TL_TRY(read_columns(r, kinds[k].name, (tl_columns *)((char *)&out->shape + kinds[k].at),
                            diag));
    size_t head = (size_t)(r->at - begin);
    TL_TRY(read_line(r, "content", line, diag));
    if (sscanf(line, " %zu %33s%n", &size, digest, &used) != 2 || line[used] != '\0')
        return no_model(r, "the size of its content cannot be read", diag);
    if (size != (size_t)(r->end - r->at))
        return tl_fail(
            diag, TL_BAD_TEXT,
            "%s is no sound cost model: it has %zu bytes of content, not %zu: it was cut", r->name,
            (size_t)(r->end - r->at), size);
    digest_of(begin, head, r->at, size, ours);
    return strcmp(digest, ours) == 0 ? TL_OK : no_model(r, "it was damaged", diag);
}

tl_status tl_cost_model_unpack(const char *name, const void *bytes, size_t size,
                               tl_cost_model **out, tl_diag *diag)
{
    reader r = { name, bytes, (const char *)bytes + size };
    header h = { .seed = 0 };
    tl_cost_model *model;
    TL_TRY(read_header(&r, &h, diag));
    if (tl_cost_model_find(h.type) == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "%s is a cost model \"%.60s\", which this tilth has not",
                       name, h.type);
    tl_status status = tl_cost_model_create(h.type, h.settings, h.seed, &model, diag);
    if (status != TL_OK)
        return status == TL_BAD_ARGUMENT ? TL_BAD_TEXT : status;
    model->shape = h.shape;
    status = model->type->read(model, r.at, (size_t)(r.end - r.at), diag);
    if (status != TL_OK) {
        tl_context(diag, "cost model %s", name);
        tl_cost_model_destroy(model);
        return status;
    }
    *out = model;
    return TL_OK;
}

tl_status tl_cost_model_save(const tl_cost_model *model, const char *path, tl_diag *diag)
{
    tl_text file = { 0 };
    tl_status status = tl_cost_model_pack(model, &file, diag);
    if (status == TL_OK)
        status = tl_file_write(path, file.data, file.size, diag);
    tl_text_free(&file);
    return status;
}

tl_status tl_cost_model_load(const char *path, tl_cost_model **out, tl_diag *diag)
{
    tl_text file = { 0 };
    TL_TRY(tl_file_read(path, &file, diag));
    tl_status status = tl_cost_model_unpack(path, tl_text_get(&file), file.size, out, diag);
    tl_text_free(&file);
    return status;
}
