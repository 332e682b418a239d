/* tuner/dataset/dataset_file.c: data sets as files.
 *
 *     "TLDATA1\n"   u64 size of what follows unpacked   u64 its checksum   a stream of zlib
 *
 * What is packed are integers of one to ten bytes (LEB128), texts with their size in front, and columns: the answers to one
 * decision of all records of a series lie side by side, a byte each, for they are alike and pack well. Everything is checked when
 * it is read: a file may be anybody's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "tuner/dataset/dataset.h"

static const char magic[8] = "TLDATA1\n";
enum {
    HEADER = 24,
    MOST_TASKS = 1 << 20,
    MOST_LOWERINGS = 16,
    MOST_RECORDS = 1 << 20, /* of a series */
    MOST_NAMES = 1 << 10,   /* decisions of a series */
    MOST_VALUES = 254,      /* of a decision */
    MOST_ANSWERS = 256,
    MOST_TEXT = 1 << 20
};
#define MOST_BYTES   ((uint64_t)1 << 30)
#define MOST_PACKING 1100 /* zlib packs no better */

/* ---- numbers in a byte or two ---- */

/* Ratios from 2^-8 to 2^24, to 1/512 of an octave (0.14 %); 0: none. */
static unsigned pack_ratio(double ratio)
{
    if (!(ratio > 0))
        return 0;
    double octaves = fmin(fmax(log2(ratio) + 8, 0), 31.9);
    return 1 + (unsigned)lround(octaves * 512);
}

static double unpack_ratio(unsigned packed)
{
    return packed == 0 ? 0 : exp2((packed - 1) / 512.0 - 8);
}

/* Errors from 2^-14 to 2^1.8, to a sixteenth of an octave (4 %); 0: not known. */
static unsigned pack_error(double error)
{
    return error > 0 ? 1 + (unsigned)lround(fmin(fmax(log2(error) + 14, 0), 15.8) * 16) : 0;
}

static double unpack_error(unsigned packed)
{
    return packed == 0 ? 0 : exp2((packed - 1) / 16.0 - 14);
}

/* Probabilities down to 2^-254, to an octave; 0: not known. */
static unsigned pack_probability(double p)
{
    return p > 0 ? 1 + (unsigned)lround(fmin(fmax(-log2(p), 0), 254)) : 0;
}

static double unpack_probability(unsigned packed)
{
    return packed == 0 ? 0 : exp2(1 - (double)packed);
}

/* ---- writing ---- */

static void put_number(tl_text *out, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        tl_text_add_bytes(out, (const char *)&byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_signed(tl_text *out, int64_t value)
{
    put_number(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void put_text(tl_text *out, const char *text)
{
    put_number(out, strlen(text));
    tl_text_add(out, text);
}

static void put_byte(tl_text *out, unsigned value)
{
    unsigned char byte = (unsigned char)(value > 255 ? 255 : value);
    tl_text_add_bytes(out, (const char *)&byte, 1);
}

static void put_task(tl_text *out, const tl_data_task *t)
{
    put_text(out, t->workload);
    put_text(out, t->class_key);
    put_text(out, t->family);
    put_text(out, t->name);
    put_signed(out, t->flops);
    put_signed(out, t->bytes);
    put_number(out, (uint64_t)t->lowering_count);
    for (int i = 0; i < t->lowering_count; i++) {
        put_text(out, t->lowerings[i]);
        put_text(out, t->programs[i]);
    }
}

/* A decision of a series, and the values that its records have for it. */
typedef struct {
    const char *name;
    int count;
    int64_t values[MOST_VALUES];
    bool is_full;
} decision_column;

static int place_of(const decision_column *c, int64_t value)
{
    for (int i = 0; i < c->count; i++)
        if (c->values[i] == value)
            return i;
    return -1;
}

/* All decisions of the series, in the order in which they were met. */
static tl_map *collect_columns(tl_arena *arena, const tl_data_series *s)
{
    tl_map *columns = tl_map_create(arena);
    for (int r = 0; r < s->count; r++)
        for (int a = 0; a < s->records[r].answer_count; a++) {
            const tl_wish *answer = &s->records[r].answers[a];
            decision_column *c = tl_map_find(columns, answer->name);
            if (c == NULL) {
                c = TL_NEW(arena, decision_column);
                c->name = answer->name;
                tl_map_put(columns, answer->name, c);
            }
            if (place_of(c, answer->value) < 0 && c->count < MOST_VALUES)
                c->values[c->count++] = answer->value;
            else if (place_of(c, answer->value) < 0)
                c->is_full = true;
        }
    return columns;
}

static int64_t value_of(const tl_data_record *r, const char *name, bool *has)
{
    for (int a = 0; a < r->answer_count; a++)
        if (strcmp(r->answers[a].name, name) == 0) {
            *has = true;
            return r->answers[a].value;
        }
    *has = false;
    return 0;
}

static void put_columns(tl_text *out, tl_arena *arena, const tl_data_series *s)
{
    tl_map *columns = collect_columns(arena, s);
    put_number(out, tl_map_count(columns));
    for (size_t i = 0; i < tl_map_count(columns); i++) {
        const decision_column *c = tl_map_at(columns, i).value;
        put_text(out, c->name);
        put_number(out, (uint64_t)c->count);
        for (int v = 0; v < c->count; v++)
            put_signed(out, c->values[v]);
        for (int r = 0; r < s->count; r++) {
            bool has;
            int64_t value = value_of(&s->records[r], c->name, &has);
            put_byte(out, has ? 1 + (unsigned)place_of(c, value) : 0);
        }
    }
}

static bool is_storable(tl_arena *arena, const tl_data_series *s)
{
    tl_map *columns = collect_columns(arena, s);
    bool ok = tl_map_count(columns) <= MOST_NAMES && s->count <= MOST_RECORDS;
    for (size_t i = 0; i < tl_map_count(columns); i++)
        ok &= !((const decision_column *)tl_map_at(columns, i).value)->is_full;
    return ok;
}

/* Each property of all records side by side. */
static void put_records(tl_text *out, const tl_data_series *s)
{
#define COLUMN(value)                             \
    for (int i = 0; i < s->count; i++) {          \
        const tl_data_record *r = &s->records[i]; \
        put_byte(out, (unsigned)(value));         \
    }
    COLUMN(r->sampler)
    COLUMN(r->kind)
    COLUMN(r->space)
    COLUMN(r->status)
    COLUMN(r->censored)
    COLUMN(r->lowering)
    COLUMN(r->turns)
    COLUMN(lround(r->alone * 3))
    COLUMN(pack_probability(r->probability))
    COLUMN(pack_error(r->ratio_error))
    COLUMN(pack_ratio(r->ratio) >> 8)
    COLUMN(pack_ratio(r->ratio) & 0xff)
    for (int byte = 0; byte < 3; byte++)
        COLUMN(r->program >> (8 * byte) & 0xff)
#undef COLUMN
}

static int compare_records(const void *a, const void *b)
{
    const tl_data_record *x = a, *y = b;
    if (x->lowering != y->lowering)
        return x->lowering < y->lowering ? -1 : 1;
    if (x->sampler != y->sampler)
        return x->sampler < y->sampler ? -1 : 1;
    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? -1 : 1;
    return x->program < y->program ? -1 : x->program > y->program;
}

/* The series with its records in an order in which neighbours are alike. */
static tl_data_series in_order(tl_arena *arena, const tl_data_series *s)
{
    tl_data_series sorted = *s;
    sorted.records = tl_arena_copy(arena, s->records, sizeof *s->records * (size_t)s->count,
                                   _Alignof(tl_data_record));
    qsort(sorted.records, (size_t)s->count, sizeof *s->records, compare_records);
    return sorted;
}

static void put_series(tl_text *out, tl_arena *arena, const tl_data_series *s, uint64_t task)
{
    put_number(out, task);
    put_text(out, s->target);
    put_text(out, s->numerics);
    put_text(out, s->machine);
    put_number(out, (uint64_t)s->threads);
    put_number(out, (uint64_t)s->cores);
    put_number(out, (uint64_t)s->revision);
    put_number(out, (uint64_t)s->cold);
    put_text(out, s->standard);
    put_number(out, (uint64_t)fmin(fmax(s->standard_ns, 0), 1e18));
    put_number(out, (uint64_t)s->count);
    put_records(out, s);
    put_columns(out, arena, s);
}

static uint64_t task_number(const tl_dataset *set, const tl_data_task *task)
{
    for (size_t i = 0; i < tl_map_count(set->tasks); i++)
        if (tl_map_at(set->tasks, i).value == task)
            return i;
    return 0;
}

static tl_status put_all(const tl_dataset *set, tl_arena *arena, tl_text *out, tl_diag *diag)
{
    put_number(out, tl_map_count(set->tasks));
    for (size_t i = 0; i < tl_map_count(set->tasks); i++)
        put_task(out, tl_map_at(set->tasks, i).value);
    put_number(out, tl_map_count(set->series));
    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *s = tl_map_at(set->series, i).value;
        if (!is_storable(arena, s))
            return tl_fail(diag, TL_UNSUPPORTED,
                           "data set: task %s has more than %d decisions, %d answers to one of "
                           "them, or %d records",
                           s->task->name, MOST_NAMES, MOST_VALUES, MOST_RECORDS);
        tl_data_series sorted = in_order(arena, s);
        put_series(out, arena, &sorted, task_number(set, s->task));
    }
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

static void put_fixed(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_fixed(const unsigned char *in)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

tl_status tl_dataset_pack(const void *body, size_t size, tl_text *out, tl_diag *diag)
{
    unsigned char header[HEADER];
    uLongf packed = compressBound((uLong)size);
    unsigned char *bytes = malloc(packed);
    if (bytes == NULL || compress2(bytes, &packed, body, (uLong)size, 9) != Z_OK) {
        free(bytes);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    memcpy(header, magic, sizeof magic);
    put_fixed(header + 8, size);
    put_fixed(header + 16, tl_checksum(body, size));
    tl_text_add_bytes(out, header, HEADER);
    tl_text_add_bytes(out, bytes, packed);
    free(bytes);
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

tl_status tl_dataset_write(const tl_dataset *set, const char *path, int64_t *bytes, tl_diag *diag)
{
    tl_text body = { 0 };
    tl_arena *arena = tl_arena_create(0);
    tl_status status = TL_NO_MEMORY;
    if (arena == NULL || TL_ARENA_GUARD(arena))
        tl_fail(diag, TL_NO_MEMORY, "out of memory");
    else
        status = put_all(set, arena, &body, diag);
    tl_text file = { 0 };
    if (status == TL_OK)
        status = tl_dataset_pack(tl_text_get(&body), body.size, &file, diag);
    if (status == TL_OK)
        status = tl_file_write(path, file.data, file.size, diag);
    *bytes = (int64_t)file.size;
    tl_arena_destroy(arena);
    tl_text_free(&body);
    tl_text_free(&file);
    return status;
}

/* ---- reading ---- */

/* After a failure everything reads as 0 and "". */
typedef struct {
    const unsigned char *data;
    size_t size, at;
    bool failed;
    tl_arena *arena;
} body_reader;

static unsigned get_byte(body_reader *r)
{
    if (r->failed || r->at >= r->size) {
        r->failed = true;
        return 0;
    }
    return r->data[r->at++];
}

static uint64_t get_number(body_reader *r, uint64_t most)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        unsigned byte = get_byte(r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            r->failed |= value > most;
            return r->failed ? 0 : value;
        }
    }
    r->failed = true;
    return 0;
}

static int64_t get_signed(body_reader *r)
{
    uint64_t value = get_number(r, UINT64_MAX);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static const char *get_text(body_reader *r)
{
    size_t size = (size_t)get_number(r, MOST_TEXT);
    if (r->failed || size > r->size - r->at || memchr(r->data + r->at, '\0', size) != NULL) {
        r->failed = true;
        return "";
    }
    const char *text = tl_arena_strndup(r->arena, (const char *)r->data + r->at, size);
    r->at += size;
    return text;
}

static void get_task(body_reader *r, tl_data_task *t)
{
    t->workload = get_text(r);
    t->class_key = get_text(r);
    t->family = get_text(r);
    t->name = get_text(r);
    t->flops = get_signed(r);
    t->bytes = get_signed(r);
    t->lowering_count = (int)get_number(r, MOST_LOWERINGS);
    t->lowerings = TL_NEW_ARRAY(r->arena, const char *, t->lowering_count);
    t->programs = TL_NEW_ARRAY(r->arena, const char *, t->lowering_count);
    for (int i = 0; i < t->lowering_count; i++) {
        t->lowerings[i] = get_text(r);
        t->programs[i] = get_text(r);
    }
    r->failed |= strlen(t->workload) != 32 || t->lowering_count == 0;
}

static unsigned get_below(body_reader *r, unsigned count)
{
    unsigned value = get_byte(r);
    r->failed |= value >= count;
    return r->failed ? 0 : value;
}

static void get_records(body_reader *r, tl_data_series *s)
{
#define COLUMN(action)                      \
    for (int i = 0; i < s->count; i++) {    \
        tl_data_record *x = &s->records[i]; \
        action;                             \
    }
    unsigned *ratios = TL_NEW_ARRAY(r->arena, unsigned, s->count);
    COLUMN(x->sampler = (tl_sampler)get_below(r, TL_SAMPLER_COUNT))
    COLUMN(x->kind = (tl_space_kind)get_below(r, TL_SPACE_KIND_COUNT))
    COLUMN(x->space = (int)get_byte(r))
    COLUMN(x->status = (tl_record_status)get_below(r, TL_RECORD_STATUS_COUNT))
    COLUMN(x->censored = (tl_censored)get_below(r, TL_CENSORED_COUNT))
    COLUMN(x->lowering = (int)get_below(r, (unsigned)s->task->lowering_count))
    COLUMN(x->turns = (int)get_byte(r))
    COLUMN(x->alone = get_below(r, 4) / 3.0)
    COLUMN(x->probability = unpack_probability(get_byte(r)))
    COLUMN(x->ratio_error = unpack_error(get_byte(r)))
    COLUMN((void)x; ratios[i] = get_byte(r) << 8)
    COLUMN(x->ratio = unpack_ratio(ratios[i] | get_byte(r)))
    for (int byte = 0; byte < 3; byte++)
        COLUMN(x->program |= (uint32_t)get_byte(r) << (8 * byte))
    /* what was measured has a time, what was not has none */
    COLUMN(r->failed |= (x->status == TL_RECORD_OK) != (x->ratio > 0))
#undef COLUMN
}

static void get_columns(body_reader *r, tl_data_series *s)
{
    int count = (int)get_number(r, MOST_NAMES);
    const char **names = TL_NEW_ARRAY(r->arena, const char *, count);
    unsigned char **columns = TL_NEW_ARRAY(r->arena, unsigned char *, count);
    int64_t(*values)[MOST_VALUES] =
        tl_arena_alloc(r->arena, sizeof *values * (size_t)(count > 0 ? count : 1), 8);
    for (int c = 0; c < count && !r->failed; c++) {
        names[c] = get_text(r);
        unsigned most = (unsigned)get_number(r, MOST_VALUES);
        for (unsigned v = 0; v < most; v++)
            values[c][v] = get_signed(r);
        if ((size_t)s->count > r->size - r->at) {
            r->failed = true;
            return;
        }
        columns[c] = tl_arena_alloc(r->arena, (size_t)s->count + 1, 1);
        for (int i = 0; i < s->count; i++)
            columns[c][i] = (unsigned char)get_below(r, most + 1);
    }
    for (int i = 0; i < s->count && !r->failed; i++) {
        int answers = 0;
        for (int c = 0; c < count; c++)
            answers += columns[c][i] > 0;
        r->failed |= answers > MOST_ANSWERS;
        tl_wish *out = TL_NEW_ARRAY(r->arena, tl_wish, answers);
        s->records[i].answers = out;
        for (int c = 0; c < count; c++)
            if (columns[c][i] > 0)
                out[s->records[i].answer_count++] =
                    (tl_wish){ names[c], values[c][columns[c][i] - 1] };
    }
}

static void get_series(body_reader *r, const tl_dataset *set, tl_data_series *s)
{
    size_t task = (size_t)get_number(r, MOST_TASKS);
    if (task >= tl_map_count(set->tasks)) {
        r->failed = true;
        return;
    }
    s->task = tl_map_at(set->tasks, task).value;
    s->target = get_text(r);
    s->numerics = get_text(r);
    s->machine = get_text(r);
    s->threads = (int)get_number(r, 1 << 16);
    s->cores = (int)get_number(r, 1 << 16);
    s->revision = (int)get_number(r, INT32_MAX);
    s->cold = (tl_cold)get_number(r, TL_COLD_COUNT - 1);
    const char *standard = get_text(r);
    s->standard_ns = (double)get_number(r, UINT64_MAX);
    s->count = s->capacity = (int)get_number(r, MOST_RECORDS);
    /* a record is fifteen bytes at least */
    if (r->failed || strlen(standard) != 16 || (size_t)s->count > (r->size - r->at) / 15) {
        r->failed = true;
        return;
    }
    memcpy(s->standard, standard, sizeof s->standard);
    s->records = TL_NEW_ARRAY(r->arena, tl_data_record, s->count);
    get_records(r, s);
    get_columns(r, s);
}

static tl_status read_body(body_reader *r, tl_dataset *set, tl_diag *diag)
{
    uint64_t tasks = get_number(r, MOST_TASKS);
    for (uint64_t i = 0; i < tasks && !r->failed; i++) {
        tl_data_task *task = TL_NEW(r->arena, tl_data_task);
        get_task(r, task);
        r->failed |= tl_map_has(set->tasks, task->workload);
        tl_map_put(set->tasks, task->workload, task);
    }
    uint64_t series = r->failed ? 0 : get_number(r, MOST_TASKS);
    for (uint64_t i = 0; i < series && !r->failed; i++) {
        tl_data_series *s = TL_NEW(r->arena, tl_data_series);
        get_series(r, set, s);
        if (r->failed)
            break;
        const char *key = tl_arena_format(r->arena, "%s %s %s %d %d %d %d %s", s->task->workload,
                                          s->target, s->numerics, s->threads, s->cores, s->revision,
                                          (int)s->cold, s->standard);
        r->failed |= tl_map_has(set->series, key);
        tl_map_put(set->series, key, s);
        set->count += s->count;
    }
    if (r->failed || r->at != r->size)
        return tl_fail(diag, TL_BAD_TEXT,
                       "a broken data set: byte %zu of its %zu is none of the format", r->at,
                       r->size);
    return TL_OK;
}

tl_status tl_dataset_unpack(const void *file, size_t size, tl_text *body, tl_diag *diag)
{
    const unsigned char *bytes = file;
    if (size < HEADER || memcmp(bytes, magic, sizeof magic) != 0)
        return tl_fail(diag, TL_BAD_TEXT, "this is no data set of tilth");
    uint64_t whole = get_fixed(bytes + 8);
    if (whole == 0 || whole > MOST_BYTES || whole / MOST_PACKING > size)
        return tl_fail(diag, TL_BAD_TEXT, "a broken data set: %zu bytes do not unpack to %llu",
                       size, (unsigned long long)whole);
    unsigned char *unpacked = malloc((size_t)whole);
    uLongf count = (uLongf)whole;
    if (unpacked == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)whole);
    bool ok = uncompress(unpacked, &count, bytes + HEADER, (uLong)(size - HEADER)) == Z_OK &&
              count == whole && tl_checksum(unpacked, (size_t)whole) == get_fixed(bytes + 16);
    if (ok)
        tl_text_add_bytes(body, (const char *)unpacked, (size_t)whole);
    free(unpacked);
    if (!ok)
        return tl_fail(diag, TL_BAD_TEXT,
                       "a broken data set: its checksum is not that of its content");
    return body->failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

tl_status tl_dataset_read(const char *path, tl_arena *arena, tl_dataset **out, tl_diag *diag)
{
    tl_mapping file;
    tl_text body = { 0 };
    tl_diag why = { 0 };
    TL_TRY(tl_file_map(path, &file, diag));
    tl_status status = tl_dataset_unpack(file.data, file.size, &body, &why);
    if (status == TL_OK) {
        body_reader reader = { .data = (const unsigned char *)body.data,
                               .size = body.size,
                               .arena = arena };
        *out = tl_dataset_create(arena);
        status = read_body(&reader, *out, &why);
    }
    tl_text_free(&body);
    tl_file_unmap(&file);
    return status == TL_OK ? TL_OK : tl_fail(diag, status, "%s: %s", path, why.text);
}
