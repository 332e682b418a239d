/* driver/output/output_object.c: a model as an object file (runtime/executable/linked.h has the picture). */
#include <string.h>
#include "codegen/object/write_object.h"
#include "driver/output/output.h"
#include "runtime/base/file.h"
#include "runtime/executable/linked.h"

enum { LINKED, TEXT, CONSTANTS, PREPARED, SECTIONS };

/* The model's record and its table of functions, which pointers of the object will fill. */
typedef struct {
    struct tilth_linked *record;
    int64_t size;
    tl_object_pointer *pointers;
    int pointer_count;
} linked_record;

static void point(linked_record *r, size_t offset, int target, const char *function)
{
    r->pointers[r->pointer_count++] = (tl_object_pointer){
        .section = LINKED, .offset = (int64_t)offset, .target = target, .function = function
    };
}

static linked_record make_record(const tl_packed *packed)
{
    tl_arena *arena = packed->arena;
    linked_record r = { .size = sizeof *r.record };
    uint64_t functions = 0;

    for (int i = 0; i < packed->objects.count; i++)
        functions += (uint64_t)tl_descriptor_function_count(packed->descriptors[i]);
    r.size += (int64_t)(functions * sizeof(tl_linked_function *));
    r.record = tl_arena_alloc(arena, (size_t)r.size, _Alignof(struct tilth_linked));
    r.pointers = TL_NEW_ARRAY(arena, tl_object_pointer, functions + SECTIONS);
    memcpy(r.record->magic, TL_LINKED_MAGIC, sizeof r.record->magic);
    r.record->text_size = packed->text.size;
    r.record->constants_size = (uint64_t)packed->constants.size;
    r.record->prepared_size = (uint64_t)packed->prepared_size;
    r.record->function_count = functions;

    point(&r, offsetof(struct tilth_linked, text), TEXT, NULL);
    if (packed->constants.size > 0)
        point(&r, offsetof(struct tilth_linked, constants), CONSTANTS, NULL);
    if (packed->prepared_size > 0)
        point(&r, offsetof(struct tilth_linked, prepared), PREPARED, NULL);
    point(&r, offsetof(struct tilth_linked, functions), LINKED, NULL);
    r.pointers[r.pointer_count - 1].addend = sizeof *r.record;
    uint64_t at = sizeof *r.record;
    for (int i = 0; i < packed->objects.count; i++)
        for (int k = 0; k < tl_descriptor_function_count(packed->descriptors[i]); k++) {
            tl_function_name name = tl_descriptor_function(packed->descriptors[i], k);
            point(&r, at, i, tl_arena_strdup(arena, name.text));
            at += sizeof(tl_linked_function *);
        }
    return r;
}

static tl_pieces one_piece(tl_arena *arena, const void *data, int64_t size)
{
    tl_pieces pieces = tl_pieces_make(arena, 1);
    tl_pieces_add(&pieces, data, size, 1);
    return pieces;
}

/* Code reaches 2 GB far, and other things lie between it and the data beyond the constants. */
static tl_object_data kind_of_bulk(const tl_packed *packed)
{
    return packed->constants.size + packed->prepared_size > 1 << 30 ? TL_OBJECT_LARGE
                                                                    : TL_OBJECT_BULK;
}

static tl_status write_packed(const tl_packed *packed, const char *symbol, tl_file *file,
                              tl_diag *diag)
{
    tl_arena *arena = packed->arena;
    if (TL_ARENA_GUARD(arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    linked_record record = make_record(packed);
    const tl_object_section sections[SECTIONS] = {
        [LINKED] = { TL_OBJECT_POINTERS, "linked", one_piece(arena, record.record, record.size) },
        [TEXT] = { TL_OBJECT_TEXT, "executable_text",
                   one_piece(arena, packed->text.data, (int64_t)packed->text.size) },
        [CONSTANTS] = { kind_of_bulk(packed), "constants", packed->constants },
        [PREPARED] = { kind_of_bulk(packed), "prepared_constants",
                       one_piece(arena, packed->prepared, packed->prepared_size) },
    };
    const tl_object_export export = { symbol, LINKED };
    const tl_object_parts parts = {
        .code = packed->objects,
        .section_count = SECTIONS,
        .pointer_count = record.pointer_count,
        .export_count = 1,
        .sections = sections,
        .pointers = record.pointers,
        .exports = &export,
    };
    return tl_object_write(&parts, file, diag);
}

/* A file of the object; the caller's to commit. */
static tl_status start_object(const tl_model *model, const char *symbol, const char *path,
                              tl_file **out, tl_diag *diag)
{
    tl_packed packed;
    TL_TRY(tl_executable_pack(tl_model_executable(model), true, &packed, diag));
    tl_status status = tl_file_create(path, out, diag);
    if (status == TL_OK)
        status = write_packed(&packed, symbol, *out, diag);
    tl_packed_free(&packed);
    if (status != TL_OK) {
        tl_file_abandon(*out);
        tl_context(diag, "writing %s", path);
    }
    return status;
}

tl_status tl_output_write_object(const tl_model *model, const char *symbol, const char *path,
                                 tl_diag *diag)
{
    tl_file *file;
    TL_TRY(start_object(model, symbol, path, &file, diag));
    return tl_file_commit_unsynced(file, diag);
}

/* Both files are whole before the first gets its name. Beside a device or pipe there is no place for a header. */
tl_status tl_output_object(tl_output *o, tl_diag *diag)
{
    if (tl_file_is_stream(o->path))
        return tl_output_write_object(o->model, o->symbol, o->path, diag);
    tl_text text = { 0 };
    tl_file *object = NULL, *header = NULL;
    const char *dot = strrchr(tl_output_base(o->path), '.');
    size_t stem = dot != NULL ? (size_t)(dot - o->path) : strlen(o->path);

    tl_text_format(&o->header, "%.*s.h", (int)stem, o->path);
    tl_output_print_header(o->model, o->symbol, o->path, &text);
    tl_status status = TL_OK;
    if (text.failed || o->header.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", o->path);
    else if (strcmp(o->header.data, o->path) == 0)
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "%s: this is the name of the header, which is written, too", o->path);
    if (status == TL_OK)
        status = tl_file_create(o->header.data, &header, diag);
    if (status == TL_OK)
        status = tl_file_append(header, text.data, text.size, diag);
    if (status == TL_OK)
        status = start_object(o->model, o->symbol, o->path, &object, diag);
    tl_text_free(&text);
    if (status != TL_OK) {
        tl_file_abandon(header);
        return status;
    }
    status = tl_file_commit(object, diag);
    if (status == TL_OK)
        return tl_file_commit(header, diag);
    tl_file_abandon(header);
    return status;
}
