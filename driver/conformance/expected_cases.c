/* driver/conformance/expected_cases.c: the list of cases that pass, as a file. */
#include <string.h>
#include "driver/conformance/conformance.h"
#include "runtime/base/file.h"

tl_status tl_expected_read(tl_arena *arena, const char *path, tl_map **out, tl_diag *diag)
{
    tl_text text = { 0 };
    char *state = NULL;
    TL_TRY(tl_file_read(path, &text, diag));
    *out = tl_map_create(arena);
    for (char *line = text.data != NULL ? strtok_r(text.data, "\r\n", &state) : NULL; line != NULL;
         line = strtok_r(NULL, "\r\n", &state)) {
        line += strspn(line, " \t");
        for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--)
            line[n - 1] = '\0';
        if (*line != '\0' && *line != '#')
            tl_map_put(*out, line, *out);
    }
    tl_text_free(&text);
    return TL_OK;
}

tl_status tl_expected_write(const char *path, const tl_case_list *list,
                            const tl_case_result *results, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_text_add(&text, "# Cases that pass: tilth conformance DIR --write-expected FILE\n");
    for (int i = 0; i < list->count; i++)
        if (results[i].verdict == TL_CASE_PASSED)
            tl_text_format(&text, "%s\n", list->cases[i].name);
    tl_status status = text.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                   : tl_file_write(path, text.data, text.size, diag);
    tl_text_free(&text);
    return status;
}
