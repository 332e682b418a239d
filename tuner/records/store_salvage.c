/* tuner/records/store_salvage.c: reads the rows of a damaged SQLite file.
 *
 * A row names itself by a digest, so that nothing has to be trusted to find it: every page of the file, and of every
 * frame of the write-ahead log, that looks like a leaf of a table is read, every cell of it decoded, and what has the
 * right digest is a record. Neither the header nor the schema nor any inner page is needed. Long rows continue on
 * overflow pages, which are looked for in the log first (the newest frame of a page counts), then in the file. Follows
 * the file format as SQLite documents it (sqlite.org/fileformat2.html). */
#include <stdlib.h>
#include <string.h>
#include "tuner/records/store_private.h"

enum {
    LEAF = 0x0d, /* a leaf page of a table */
    FILE_HEADER = 100,
    LOG_HEADER = 32,
    FRAME_HEADER = 24,
    MAX_ROW = 64 << 20,
};

typedef struct {
    const unsigned char *file, *log;
    size_t pages, frames, page_size;
    uint32_t *newest; /* page number - 1 -> frame + 1, 0: not in the log */
    size_t newest_count;
    tl_salvage_sink *add;
    void *user;
} salvage;

static uint32_t big32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned big16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* SQLite's variable-length integer; 0: it runs past the end. */
static size_t varint(const unsigned char *p, const unsigned char *end, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 9; i++) {
        if (p + i >= end)
            return 0;
        if (i == 8) {
            *out = value << 8 | p[i];
            return 9;
        }
        value = value << 7 | (p[i] & 0x7f);
        if (!(p[i] & 0x80)) {
            *out = value;
            return i + 1;
        }
    }
    return 0;
}

static const unsigned char *frame_page(const salvage *s, size_t frame)
{
    return s->log + LOG_HEADER + frame * (FRAME_HEADER + s->page_size) + FRAME_HEADER;
}

static const unsigned char *find_page(const salvage *s, uint32_t number)
{
    if (number == 0)
        return NULL;
    if (number <= s->newest_count && s->newest[number - 1] != 0)
        return frame_page(s, s->newest[number - 1] - 1);
    return number <= s->pages ? s->file + (size_t)(number - 1) * s->page_size : NULL;
}

/* The payload of a cell, its overflow pages joined, into `out`; false: it cannot be had. */
static bool read_payload(const salvage *s, const unsigned char *p, const unsigned char *end,
                         size_t size, tl_text *out)
{
    size_t usable = s->page_size, most = usable - 35, least = (usable - 12) * 32 / 255 - 23;
    size_t here = size;
    if (size > most) {
        here = least + (size - least) % (usable - 4);
        here = here > most ? least : here;
    }
    if ((size_t)(end - p) < here + (here < size ? 4 : 0))
        return false;
    out->size = 0;
    tl_text_add_bytes(out, p, here);
    if (here == size)
        return !out->failed;
    uint32_t next = big32(p + here);
    while (out->size < size) {
        const unsigned char *page = find_page(s, next);
        if (page == NULL || out->failed)
            return false;
        size_t left = size - out->size, part = left < usable - 4 ? left : usable - 4;
        tl_text_add_bytes(out, page + 4, part);
        next = big32(page);
    }
    return !out->failed;
}

/* One value of a row, by its serial type. False: it has none, or it does not fit. */
static bool read_value(uint64_t serial, const unsigned char **body, const unsigned char *end,
                       tl_arena *arena, tl_field_value *out)
{
    static const unsigned char sizes[16] = { 0, 1, 2, 3, 4, 6, 8, 8 };
    const unsigned char *p = *body;
    *out = (tl_field_value){ .text = NULL };
    if (serial == 10 || serial == 11 || (serial >= 12 && serial % 2 == 0))
        return false;
    uint64_t size = serial >= 13 ? (serial - 13) / 2 : sizes[serial & 15];
    if (size > (uint64_t)(end - p))
        return false;
    *body = p + size;
    if (serial >= 13) {
        out->text = tl_arena_strndup(arena, (const char *)p, (size_t)size);
        return strlen(out->text) == size;
    }
    uint64_t bits = size > 0 && (p[0] & 0x80) && serial != 7 ? ~(uint64_t)0 : 0;
    for (uint64_t i = 0; i < size; i++)
        bits = bits << 8 | p[i];
    if (serial == 7) {
        memcpy(&out->real, &bits, sizeof bits);
        return true;
    }
    out->integer = serial == 9 ? 1 : (int64_t)bits;
    out->real = (double)out->integer; /* a whole real number is stored as an integer */
    return true;
}

static bool has_type(const tl_field *field, uint64_t serial)
{
    switch (field->type) {
    case TL_FIELD_TEXT:
    case TL_FIELD_STATUS:
    case TL_FIELD_TIMES:
        return serial >= 13;
    case TL_FIELD_REAL:
        return serial > 0 && serial < 10;
    case TL_FIELD_BOOL:
    case TL_FIELD_COLD:
    case TL_FIELD_INT:
    case TL_FIELD_LONG:
        return serial > 0 && serial < 10 && serial != 7;
    }
    return false;
}

static bool decode(const tl_row_type *type, const unsigned char *payload, size_t size,
                   tl_arena *arena, void *out)
{
    uint64_t header, serial;
    const unsigned char *end = payload + size;
    size_t used = varint(payload, end, &header);
    if (used == 0 || header > size)
        return false;
    const unsigned char *types = payload + used, *types_end = payload + header, *body = types_end;
    char uid[33] = "";
    memset(out, 0, type->size);
    for (int i = -2; i < type->count; i++) { /* id (which is NULL here), uid, the fields */
        tl_field_value value;
        if (i >= 0 && types == types_end && type->fields[i].is_label) {
            tl_field_set_default(&type->fields[i],
                                 out); /* written before there was such a column */
            continue;
        }
        used = varint(types, types_end, &serial);
        if (used == 0)
            return false;
        types += used;
        if (i == -2) {
            if (serial != 0)
                return false;
            continue;
        }
        if (i >= 0 && !has_type(&type->fields[i], serial))
            return false;
        if (!read_value(serial, &body, end, arena, &value))
            return false;
        if (i == -1) {
            if (value.text == NULL || strlen(value.text) != 32)
                return false;
            memcpy(uid, value.text, sizeof uid);
        } else if (!tl_field_set(&type->fields[i], out, &value, arena)) {
            return false;
        }
    }
    tl_row_digest(type, out, out);
    return types == types_end && strcmp(uid, out) == 0;
}

static void read_cell(salvage *s, const unsigned char *page, const unsigned char *cell,
                      tl_text *payload)
{
    const unsigned char *end = page + s->page_size;
    uint64_t size, rowid;
    size_t a = varint(cell, end, &size), b = a ? varint(cell + a, end, &rowid) : 0;
    if (b == 0 || size > MAX_ROW || !read_payload(s, cell + a + b, end, (size_t)size, payload))
        return;
    tl_arena *arena = tl_arena_create(0);
    if (arena != NULL && !TL_ARENA_GUARD(arena)) {
        static const tl_row_type *const types[] = { &tl_trial_row, &tl_workload_row, &tl_choice_row,
                                                    &tl_annex_row };
        const unsigned char *bytes = (const unsigned char *)tl_text_get(payload);
        tl_any_row row;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (decode(types[i], bytes, payload->size, arena, &row)) {
                s->add(s->user, types[i], &row);
                break;
            }
    }
    tl_arena_destroy(arena);
}

static void read_page(salvage *s, const unsigned char *page, size_t header, tl_text *payload)
{
    const unsigned char *start = page + header;
    if (start[0] != LEAF)
        return;
    size_t cells = big16(start + 3);
    for (size_t i = 0; i < cells && header + 8 + 2 * i + 2 <= s->page_size; i++) {
        size_t at = big16(start + 8 + 2 * i);
        if (at >= header + 8 && at < s->page_size)
            read_cell(s, page, page + at, payload);
    }
}

/* For each page of the log, the newest frame that has it. */
static void index_log(salvage *s)
{
    uint32_t highest = 0;
    for (size_t f = 0; f < s->frames; f++) {
        uint32_t number = big32(frame_page(s, f) - FRAME_HEADER);
        if (number > highest && number < (1u << 28))
            highest = number;
    }
    if (highest == 0 || (s->newest = calloc(highest, sizeof *s->newest)) == NULL)
        return;
    s->newest_count = highest;
    for (size_t f = 0; f < s->frames; f++) {
        uint32_t number = big32(frame_page(s, f) - FRAME_HEADER);
        if (number > 0 && number <= highest)
            s->newest[number - 1] = (uint32_t)f + 1;
    }
}

void tl_salvage(const void *file, size_t size, const void *journal, size_t journal_size,
                tl_salvage_sink *add, void *user)
{
    salvage s = {
        .file = file, .log = journal, .page_size = TL_RECORDS_PAGE, .add = add, .user = user
    };
    tl_text payload = { 0 };
    s.pages = size / s.page_size;
    /* the last page of a truncated file: what is missing reads as zeros */
    unsigned char *tail = size % s.page_size ? calloc(1, s.page_size) : NULL;
    if (tail != NULL)
        memcpy(tail, s.file + s.pages * s.page_size, size % s.page_size);
    if (journal != NULL && journal_size > LOG_HEADER)
        s.frames = (journal_size - LOG_HEADER) / (FRAME_HEADER + s.page_size);
    index_log(&s);
    for (size_t i = 0; i < s.pages; i++)
        read_page(&s, s.file + i * s.page_size, i == 0 ? FILE_HEADER : 0, &payload);
    if (tail != NULL)
        read_page(&s, tail, s.pages == 0 ? FILE_HEADER : 0, &payload);
    for (size_t f = 0; f < s.frames; f++)
        read_page(&s, frame_page(&s, f), 0, &payload);
    free(tail);
    free(s.newest);
    tl_text_free(&payload);
}
