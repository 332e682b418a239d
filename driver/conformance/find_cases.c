/* driver/conformance/find_cases.c: the cases of a tree, in the order of their names, and how exact each has to be. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "driver/conformance/conformance.h"
#include "runtime/base/file.h"

enum { MAX_DEPTH = 16, MAX_COLUMNS = 64 };
/* Of the suite's own runner (onnx/backend/test). */
#define DEFAULT_RTOL 1e-3
#define DEFAULT_ATOL 1e-7

typedef struct {
    tl_arena *arena;
    const char *filter;
    tl_case_list list;
    int capacity;
} finder;

bool tl_case_matches(const char *name, const char *filter)
{
    if (filter == NULL)
        return true;
    if (strpbrk(filter, "*?[") == NULL)
        return strstr(name, filter) != NULL;
    const char *slash = strrchr(name, '/');
    return fnmatch(filter, name, 0) == 0 || (slash != NULL && fnmatch(filter, slash + 1, 0) == 0);
}

static void add_case(finder *f, const char *folder, const char *name)
{
    tl_case_list *list = &f->list;
    if (!tl_case_matches(name, f->filter))
        return;
    if (list->count == f->capacity) {
        f->capacity = f->capacity > 0 ? 2 * f->capacity : 256;
        tl_case *grown = TL_NEW_ARRAY(f->arena, tl_case, f->capacity);
        if (list->count > 0)
            memcpy(grown, list->cases, sizeof *grown * (size_t)list->count);
        list->cases = grown;
    }
    list->cases[list->count++] =
        (tl_case){ .name = name, .folder = folder, .rtol = DEFAULT_RTOL, .atol = DEFAULT_ATOL };
}

static bool is_folder(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A case has a model, or what it should compute: without the model, that is its failure. */
static bool is_of_case(const char *name)
{
    return strcmp(name, "model.onnx") == 0 || strncmp(name, "test_data_set_", 14) == 0;
}

/* `name`: of the folder below the tree, "" the tree itself. Links are not followed. */
static void walk(finder *f, const char *folder, const char *name, int depth)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    bool is_case = false;
    for (int i = 0; i < count; i++)
        is_case |= is_of_case(entries[i]->d_name);
    if (is_case)
        add_case(f, folder, *name != '\0' ? name : ".");
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        if (!is_case && depth < MAX_DEPTH && entry[0] != '.') {
            const char *path = tl_arena_format(f->arena, "%s/%s", folder, entry);
            if (is_folder(path))
                walk(f, path,
                     *name != '\0' ? tl_arena_format(f->arena, "%s/%s", name, entry)
                                   : tl_arena_strdup(f->arena, entry),
                     depth + 1);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tl_case *)a)->name, ((const tl_case *)b)->name);
}

/* Takes a line of comma-separated fields apart, in place; a field in quotes may have commas. */
static int split_line(char *line, char *fields[MAX_COLUMNS])
{
    int count = 0;
    for (char *p = line; p != NULL && count < MAX_COLUMNS;) {
        bool quoted = *p == '"';
        fields[count++] = p += quoted;
        char *end = quoted ? strchr(p, '"') : NULL;
        char *comma = strchr(end != NULL ? end : p, ',');
        if (end != NULL)
            *end = '\0';
        if (comma != NULL)
            *comma++ = '\0';
        p = comma;
    }
    return count;
}

static void set_tolerance(const char *text, double *out)
{
    char *end;
    double value = text != NULL ? strtod(text, &end) : -1;
    if (value >= 0 && end != text && *end == '\0')
        *out = value;
}

/* What the tree's manifest says of tolerances; a tree without one, or without such columns, has none of its own. */
static void read_manifest(tl_arena *arena, const char *folder, tl_case_list *list)
{
    enum { SUITE, CASE, RTOL, ATOL, COLUMNS };
    static const char *const names[COLUMNS] = { "suite", "case", "rtol", "atol" };
    tl_text text = { 0 };
    char *fields[MAX_COLUMNS], *state = NULL;
    int place[COLUMNS] = { -1, -1, -1, -1 };
    if (tl_file_read(tl_arena_format(arena, "%s/MANIFEST.csv", folder), &text, NULL) != TL_OK)
        return;
    char *line = text.data != NULL ? strtok_r(text.data, "\r\n", &state) : NULL;
    int count = line != NULL ? split_line(line, fields) : 0;
    for (int k = 0; k < COLUMNS; k++)
        for (int i = 0; i < count; i++)
            if (strcmp(fields[i], names[k]) == 0)
                place[k] = i;
    while (place[CASE] >= 0 && (line = strtok_r(NULL, "\r\n", &state)) != NULL) {
        const char *value[COLUMNS];
        count = split_line(line, fields);
        for (int k = 0; k < COLUMNS; k++)
            value[k] = place[k] >= 0 && place[k] < count ? fields[place[k]] : NULL;
        if (value[CASE] == NULL)
            continue;
        tl_case key = { .name = value[SUITE] != NULL
                                    ? tl_arena_format(arena, "%s/%s", value[SUITE], value[CASE])
                                    : value[CASE] };
        tl_case *found =
            bsearch(&key, list->cases, (size_t)list->count, sizeof *list->cases, by_name);
        if (found == NULL)
            continue;
        set_tolerance(value[RTOL], &found->rtol);
        set_tolerance(value[ATOL], &found->atol);
    }
    tl_text_free(&text);
}

tl_status tl_find_cases(tl_arena *arena, const char *folder, const char *filter, tl_case_list *out,
                        tl_diag *diag)
{
    finder f = { .arena = arena, .filter = filter };
    struct stat info;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: no such folder", folder);
    walk(&f, folder, "", 0);
    *out = f.list;
    if (out->count == 0 && filter != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: no test case matches '%s'", folder, filter);
    if (out->count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: no test cases in it (folders with model.onnx and test_data_set_0)",
                       folder);
    qsort(out->cases, (size_t)out->count, sizeof *out->cases, by_name);
    read_manifest(arena, folder, out);
    return TL_OK;
}
