/* tuner/records/record.c: records: fields, digest, names of targets. */
#include "tuner/records/record.h"
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/map.h"
#include "tuner/records/record_private.h"
#include "tuner/records/store.h"

const tl_record_status_info tl_record_status_infos[TL_RECORD_STATUS_COUNT] = {
#define RECORD(name, text, again, words) [TL_RECORD_##name] = { text, words, again },
#include "tuner/records/record_status.def"
#undef RECORD
};

const tl_cold_info tl_cold_infos[TL_COLD_COUNT] = {
#define COLD(name, text, words) [TL_COLD_##name] = { text, words },
#include "tuner/records/record_cold.def"
#undef COLD
};

static const tl_field trial_fields[] = {
#define TRIAL(type, name) { #name, TL_FIELD_##type, offsetof(tl_record, name), false },
#define LABEL(type, name) { #name, TL_FIELD_##type, offsetof(tl_record, name), true },
#include "tuner/records/record_fields.def"
#undef TRIAL
#undef LABEL
};

static const tl_field workload_fields[] = {
#define WORKLOAD(type, name) { #name, TL_FIELD_##type, offsetof(tl_workload_info, name), false },
#include "tuner/records/record_fields.def"
#undef WORKLOAD
};

static const tl_field choice_fields[] = {
#define CHOICE(type, name) { #name, TL_FIELD_##type, offsetof(tl_choice, name), false },
#include "tuner/records/record_fields.def"
#undef CHOICE
};

static const tl_field annex_fields[] = {
#define ANNEX(type, name) { #name, TL_FIELD_##type, offsetof(tl_annex, name), false },
#include "tuner/records/record_fields.def"
#undef ANNEX
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
const tl_row_type tl_trial_row = { "trial", "trials", COUNT(trial_fields), trial_fields,
                                   sizeof(tl_record) };
const tl_row_type tl_workload_row = { "workload", "workloads", COUNT(workload_fields),
                                      workload_fields, sizeof(tl_workload_info) };
const tl_row_type tl_choice_row = { "choice", "choices", COUNT(choice_fields), choice_fields,
                                    sizeof(tl_choice) };
const tl_row_type tl_annex_row = { "annex", "annexes", COUNT(annex_fields), annex_fields,
                                   sizeof(tl_annex) };
_Static_assert(COUNT(trial_fields) <= TL_MAX_FIELDS, "raise TL_MAX_FIELDS");

bool tl_record_status_from_text(const char *text, tl_record_status *out)
{
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++)
        if (strcmp(tl_record_status_infos[i].text, text) == 0) {
            *out = (tl_record_status)i;
            return true;
        }
    return false;
}

bool tl_cold_from_text(const char *text, tl_cold *out)
{
    for (int i = 0; i < TL_COLD_COUNT; i++)
        if (strcmp(tl_cold_infos[i].text, text) == 0) {
            *out = (tl_cold)i;
            return true;
        }
    return false;
}

void tl_real_print(double value, tl_text *out)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision += precision < 15 ? 7 : 1) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    tl_text_add(out, digits);
}

static void *at(const tl_field *field, const void *row)
{
    return (char *)row + field->offset;
}

void tl_field_get(const tl_field *field, const void *row, tl_text *scratch, tl_field_value *out)
{
    assert(field != NULL && row != NULL);
    const void *p = at(field, row);
    *out = (tl_field_value){ .text = "" };
    switch (field->type) {
    case TL_FIELD_TEXT:
        if (*(const char *const *)p != NULL)
            out->text = *(const char *const *)p;
        return;
    case TL_FIELD_STATUS:
        out->text = tl_record_status_infos[*(const tl_record_status *)p].text;
        return;
    case TL_FIELD_REAL:
        out->real = *(const double *)p;
        return;
    case TL_FIELD_TIMES: {
        const tl_record *record = row;
        scratch->size = 0;
        tl_text_add(scratch, "");
        for (int i = 0; i < record->time_count; i++) {
            if (i > 0)
                tl_text_add(scratch, ",");
            tl_real_print(record->times_ns[i], scratch);
        }
        out->text = scratch->size ? scratch->data : "";
        return;
    }
    case TL_FIELD_BOOL:
        out->integer = *(const bool *)p;
        return;
    case TL_FIELD_COLD:
        out->integer = *(const tl_cold *)p;
        return;
    case TL_FIELD_INT:
        out->integer = *(const int *)p;
        return;
    case TL_FIELD_LONG:
        out->integer = *(const int64_t *)p;
        return;
    }
}

static bool set_times(tl_record *record, const char *text, tl_arena *arena)
{
    int count = *text ? 1 : 0;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    double *times = TL_NEW_ARRAY(arena, double, count);
    char *end = (char *)text;
    for (int i = 0; i < count; i++) {
        const char *start = i > 0 ? end + 1 : end;
        times[i] = strtod(start, &end);
        if (end == start || *end != (i + 1 < count ? ',' : '\0') || !isfinite(times[i]))
            return false;
    }
    record->time_count = count;
    record->times_ns = times;
    return true;
}

bool tl_field_set(const tl_field *field, void *row, const tl_field_value *value, tl_arena *arena)
{
    void *p = at(field, row);
    switch (field->type) {
    case TL_FIELD_TEXT:
        *(const char **)p = value->text;
        return value->text != NULL;
    case TL_FIELD_STATUS:
        return value->text != NULL && tl_record_status_from_text(value->text, p);
    case TL_FIELD_REAL:
        *(double *)p = value->real;
        return isfinite(value->real);
    case TL_FIELD_TIMES:
        return value->text != NULL && set_times(row, value->text, arena);
    case TL_FIELD_BOOL:
        *(bool *)p = value->integer == 1;
        return value->integer == 0 || value->integer == 1;
    case TL_FIELD_COLD:
        *(tl_cold *)p = (tl_cold)value->integer;
        return value->integer >= 0 && value->integer < TL_COLD_COUNT;
    case TL_FIELD_INT:
        *(int *)p = (int)value->integer;
        return value->integer >= INT_MIN && value->integer <= INT_MAX;
    case TL_FIELD_LONG:
        *(int64_t *)p = value->integer;
        return true;
    }
    return false;
}

void tl_field_set_default(const tl_field *field, void *row)
{
    void *p = at(field, row);
    switch (field->type) {
    case TL_FIELD_TEXT:
        *(const char **)p = "";
        return;
    case TL_FIELD_REAL:
        *(double *)p = 0;
        return;
    case TL_FIELD_INT:
        *(int *)p = 0;
        return;
    case TL_FIELD_STATUS:
    case TL_FIELD_TIMES:
    case TL_FIELD_BOOL:
    case TL_FIELD_COLD:
    case TL_FIELD_LONG:
        assert(false); /* no label is of these */
    }
}

static bool is_default(const tl_field_value *value)
{
    return value->text[0] == '\0' && value->real == 0 && value->integer == 0;
}

void tl_row_digest(const tl_row_type *type, const void *row, char out[33])
{
    tl_digest digest;
    tl_text scratch = { 0 };
    tl_digest_start(&digest);
    for (int i = 0; i < type->count; i++) {
        tl_field_value value;
        tl_field_get(&type->fields[i], row, &scratch, &value);
        if (type->fields[i].is_label) {
            if (is_default(&value))
                continue;
            tl_digest_add(&digest, type->fields[i].name, strlen(type->fields[i].name) + 1);
        }
        uint64_t real;
        memcpy(&real, &value.real, sizeof real);
        tl_digest_add(&digest, value.text, strlen(value.text) + 1);
        tl_digest_add(&digest, &real, sizeof real);
        tl_digest_add(&digest, &value.integer, sizeof value.integer);
    }
    tl_digest_text(&digest, out);
    tl_text_free(&scratch);
}

void tl_row_copy(const tl_row_type *type, tl_arena *arena, const void *row, void *out)
{
    assert(row != out);
    memcpy(out, row, type->size);
    for (int i = 0; i < type->count; i++) {
        const tl_field *field = &type->fields[i];
        if (field->type == TL_FIELD_TEXT) {
            const char **text = at(field, out);
            *text = tl_arena_strdup(arena, *text != NULL ? *text : "");
        } else if (field->type == TL_FIELD_TIMES) {
            tl_record *record = out;
            if (record->time_count > 0)
                record->times_ns =
                    tl_arena_copy(arena, record->times_ns,
                                  (size_t)record->time_count * sizeof(double), _Alignof(double));
        }
    }
}

/* What JSON cannot say becomes what it can. */
static void make_finite(const tl_row_type *type, void *row)
{
    for (int i = 0; i < type->count; i++) {
        double *value = at(&type->fields[i], row);
        if (type->fields[i].type == TL_FIELD_REAL && !isfinite(*value))
            *value = *value > 0 ? DBL_MAX : 0;
    }
}

void tl_record_seal(tl_record *record)
{
    assert(record->status < TL_RECORD_STATUS_COUNT);
    make_finite(&tl_trial_row, record);
    tl_row_digest(&tl_trial_row, record, record->uid);
}

bool tl_record_is_sealed(const tl_record *record)
{
    char uid[33];
    tl_row_digest(&tl_trial_row, record, uid);
    return memcmp(uid, record->uid, sizeof uid) == 0;
}

void tl_record_copy(tl_arena *arena, const tl_record *record, tl_record *out)
{
    tl_row_copy(&tl_trial_row, arena, record, out);
}

void tl_workload_seal(tl_workload_info *info)
{
    tl_row_digest(&tl_workload_row, info, info->uid);
}

void tl_annex_seal(tl_annex *annex)
{
    tl_row_digest(&tl_annex_row, annex, annex->uid);
}

void tl_choice_seal(tl_choice *choice)
{
    make_finite(&tl_choice_row, choice);
    tl_row_digest(&tl_choice_row, choice, choice->uid);
}

static void add_size(char *out, size_t size, const char *name, int64_t bytes)
{
    size_t used = strlen(out);
    if (bytes > 0 && bytes % (1 << 20) == 0)
        snprintf(out + used, size - used, "/%s=%lldM", name, (long long)(bytes >> 20));
    else
        snprintf(out + used, size - used, "/%s=%lldK", name, (long long)(bytes >> 10));
}

void tl_target_fingerprint(const tl_target *target, int cores, char out[160])
{
    snprintf(out, 160, "%s/%s", tl_isa_infos[target->isa].text,
             target->cpu[0] ? target->cpu : "generic");
    add_size(out, 160, "l1", target->l1_bytes);
    add_size(out, 160, "l2", target->l2_bytes);
    add_size(out, 160, "l3", target->l3_bytes);
    size_t used = strlen(out);
    snprintf(out + used, 160 - used, "/cores=%d%s%s", cores, target->device[0] ? "/device=" : "",
             target->device);
    for (char *c = out; *c; c++)
        if (*c <= ' ' || *c > '~')
            *c = '-';
}

static bool read_size(const char *text, int64_t *out)
{
    char *end;
    long long size = strtoll(text, &end, 10);
    int shift = *end == 'M' ? 20 : 10;
    bool ok = end != text && (*end == 'M' || *end == 'K') && (end[1] == '/' || end[1] == '\0') &&
              size >= 0 && size < 1 << 30;
    *out = ok ? (int64_t)size << shift : 0;
    return ok;
}

/* "x86-64-v4/znver5/l1=48K/l2=1M/l3=32M/cores=1", "nvptx64/sm_90a/l1=228K/.../device=emulated" */
tl_status tl_target_of_fingerprint(const char *fingerprint, tl_target *out, tl_diag *diag)
{
    char name[64];
    size_t size = strcspn(fingerprint, "/");
    const char *l1 = strstr(fingerprint, "/l1="), *l2 = strstr(fingerprint, "/l2=");
    const char *l3 = strstr(fingerprint, "/l3="), *cores = strstr(fingerprint, "/cores=");
    const char *cpu = fingerprint + size + (fingerprint[size] == '/');
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : 0), fingerprint);
    if (strncmp(cpu, "sm_", 3) == 0) /* of a GPU the generation is what counts */
        snprintf(name, sizeof name, "cuda,%.*s", (int)tl_min64((int64_t)strcspn(cpu, "/"), 16),
                 cpu);
    if (l1 == NULL || l2 == NULL || l3 == NULL || cores == NULL ||
        tl_target_named(name, out, NULL) != TL_OK || !read_size(l1 + 4, &out->l1_bytes) ||
        !read_size(l2 + 4, &out->l2_bytes) || !read_size(l3 + 4, &out->l3_bytes) ||
        (out->cores = atoi(cores + 7)) < 1)
        return tl_fail(diag, TL_BAD_TEXT, "%.80s is no target's fingerprint", fingerprint);
    const char *device = strstr(fingerprint, "/device=");
    snprintf(out->device, sizeof out->device, "%s", device != NULL ? device + 8 : "");
    return TL_OK;
}
