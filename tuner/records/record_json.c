/* tuner/records/record_json.c: records, workloads and choices as lines of JSON: export, import, recorded measurements. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include "tuner/records/record_private.h"

void tl_json_print(const char *text, tl_text *out)
{
    tl_text_add(out, "\"");
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            tl_text_format(out, "\\%c", c);
        else if (c == '\n')
            tl_text_add(out, "\\n");
        else if (c < 0x20)
            tl_text_format(out, "\\u%04x", c);
        else
            tl_text_add_bytes(out, p, 1);
    }
    tl_text_add(out, "\"");
}

static void print_row(const tl_row_type *type, const void *row, tl_text *out)
{
    tl_text scratch = { 0 };
    tl_text_format(out, "{\"record\":\"%s\",\"uid\":\"%s\"", type->kind, (const char *)row);
    for (int i = 0; i < type->count; i++) {
        const tl_field *field = &type->fields[i];
        tl_field_value value;
        tl_field_get(field, row, &scratch, &value);
        tl_text_format(out, ",\"%s\":", field->name);
        switch (field->type) {
        case TL_FIELD_TEXT:
        case TL_FIELD_STATUS:
            tl_json_print(value.text, out);
            break;
        case TL_FIELD_TIMES:
            tl_text_format(out, "[%s]", value.text);
            break;
        case TL_FIELD_REAL:
            tl_real_print(value.real, out);
            break;
        case TL_FIELD_BOOL:
            tl_text_add(out, value.integer ? "true" : "false");
            break;
        case TL_FIELD_COLD:
            tl_json_print(tl_cold_infos[value.integer].text, out);
            break;
        case TL_FIELD_INT:
        case TL_FIELD_LONG:
            tl_text_format(out, "%lld", (long long)value.integer);
            break;
        }
    }
    tl_text_add(out, "}");
    tl_text_free(&scratch);
}

static bool read_times(const json_t *list, tl_text *out)
{
    size_t i;
    json_t *item;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, item)
    {
        if (!json_is_number(item))
            return false;
        if (i > 0)
            tl_text_add(out, ",");
        tl_real_print(json_number_value(item), out);
    }
    return true;
}

/* A word; of exports of format 2: whether all was cold. */
static bool read_cold(const json_t *json, int64_t *out)
{
    tl_cold cold = json_is_true(json) ? TL_COLD_ALL : TL_COLD_NOTHING;
    bool ok = json_is_boolean(json) ||
              (json_is_string(json) && tl_cold_from_text(json_string_value(json), &cold));
    *out = cold;
    return ok;
}

static bool read_field(const tl_field *field, const json_t *json, tl_arena *arena, void *out)
{
    tl_field_value value = { .text = "" };
    switch (field->type) {
    case TL_FIELD_TEXT:
    case TL_FIELD_STATUS:
        if (!json_is_string(json))
            return false;
        value.text = tl_arena_strdup(arena, json_string_value(json));
        break;
    case TL_FIELD_TIMES: {
        tl_text text = { 0 };
        bool ok = read_times(json, &text) && !text.failed;
        value.text = tl_text_get(&text);
        ok = ok && tl_field_set(field, out, &value, arena);
        tl_text_free(&text);
        return ok;
    }
    case TL_FIELD_REAL:
        if (!json_is_number(json))
            return false;
        value.real = json_number_value(json);
        break;
    case TL_FIELD_BOOL:
        if (!json_is_boolean(json))
            return false;
        value.integer = json_is_true(json);
        break;
    case TL_FIELD_COLD:
        if (!read_cold(json, &value.integer))
            return false;
        break;
    case TL_FIELD_INT:
    case TL_FIELD_LONG:
        if (!json_is_integer(json))
            return false;
        value.integer = json_integer_value(json);
        break;
    }
    return tl_field_set(field, out, &value, arena);
}

/* Allocates nothing but in the arena; the caller frees `root`. */
static tl_status read_row(const tl_row_type *type, tl_arena *arena, const json_t *root, void *out,
                          tl_diag *diag)
{
    const char *kind = json_string_value(json_object_get(root, "record"));
    const char *uid = json_string_value(json_object_get(root, "uid"));
    char digest[33];
    memset(out, 0, type->size);
    if (kind == NULL || strcmp(kind, type->kind) != 0)
        return tl_fail(diag, TL_BAD_TEXT, "not a line of kind \"%s\"", type->kind);
    for (int i = 0; i < type->count; i++) {
        const json_t *value = json_object_get(root, type->fields[i].name);
        if (value == NULL && type->fields[i].is_label) {
            tl_field_set_default(&type->fields[i], out);
            continue;
        }
        if (value == NULL)
            return tl_fail(diag, TL_BAD_TEXT, "%s: no field \"%s\"", kind, type->fields[i].name);
        if (!read_field(&type->fields[i], value, arena, out))
            return tl_fail(diag, TL_BAD_TEXT, "%s: field \"%s\" is of the wrong type or value",
                           kind, type->fields[i].name);
    }
    tl_row_digest(type, out, digest);
    if (uid == NULL || strcmp(uid, digest) != 0)
        return tl_fail(diag, TL_BAD_TEXT, "%s %s: its content does not match its uid", kind,
                       uid != NULL ? uid : "?");
    memcpy(out, digest, sizeof digest);
    return TL_OK;
}

static tl_status parse_row(const tl_row_type *type, tl_arena *arena, const char *json, void *out,
                           tl_diag *diag)
{
    json_error_t error;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "not JSON: %s", error.text);
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    if (TL_ARENA_GUARD(arena)) {
        tl_arena_guard_restore(arena, &outer);
        json_decref(root);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_status status = read_row(type, arena, root, out, diag);
    tl_arena_guard_restore(arena, &outer);
    json_decref(root);
    return status;
}

void tl_record_print(const tl_record *record, tl_text *out)
{
    print_row(&tl_trial_row, record, out);
}

tl_status tl_record_parse(tl_arena *arena, const char *json, tl_record *out, tl_diag *diag)
{
    return parse_row(&tl_trial_row, arena, json, out, diag);
}

void tl_workload_print(const tl_workload_info *info, tl_text *out)
{
    print_row(&tl_workload_row, info, out);
}

tl_status tl_workload_parse(tl_arena *arena, const char *json, tl_workload_info *out, tl_diag *diag)
{
    return parse_row(&tl_workload_row, arena, json, out, diag);
}

void tl_choice_print(const tl_choice *choice, tl_text *out)
{
    print_row(&tl_choice_row, choice, out);
}

tl_status tl_choice_parse(tl_arena *arena, const char *json, tl_choice *out, tl_diag *diag)
{
    return parse_row(&tl_choice_row, arena, json, out, diag);
}

void tl_annex_print(const tl_annex *annex, tl_text *out)
{
    print_row(&tl_annex_row, annex, out);
}

tl_status tl_annex_parse(tl_arena *arena, const char *json, tl_annex *out, tl_diag *diag)
{
    return parse_row(&tl_annex_row, arena, json, out, diag);
}
