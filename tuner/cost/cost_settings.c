/* tuner/cost/cost_settings.c: what a model lets be set, as a line of NAME=NUMBER. */
#include <stdlib.h>
#include <string.h>
#include "tuner/cost/cost_private.h"

static const tl_cost_setting *find(const tl_cost_setting *table, int count, const char *name,
                                   size_t size)
{
    for (int i = 0; i < count; i++)
        if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0)
            return &table[i];
    return NULL;
}

static tl_status complain(const char *model, const char *word, size_t size,
                          const tl_cost_setting *table, int count, tl_diag *diag)
{
    tl_text names = { 0 };
    for (int i = 0; i < count; i++)
        tl_text_format(&names, "%s%s", i > 0 ? ", " : "", table[i].name);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "the cost model \"%s\" has no setting \"%.*s\"; it has: %s",
                model, (int)(size < 60 ? size : 60), word,
                count > 0 ? tl_text_get(&names) : "none");
    tl_text_free(&names);
    return status;
}

tl_status tl_cost_settings_read(const char *model, const char *settings,
                                const tl_cost_setting *table, int count, tl_diag *diag)
{
    for (const char *word = settings; word != NULL && *word != '\0';) {
        size_t size = strcspn(word, " ,"), name = strcspn(word, "= ,");
        if (size == 0) {
            word++;
            continue;
        }
        const tl_cost_setting *s = find(table, count, word, name);
        if (s == NULL)
            return complain(model, word, name, table, count, diag);
        char *end = NULL;
        long value = name < size ? strtol(word + name + 1, &end, 10) : 0;
        if (end != word + size || end == word + name + 1 || value < s->least || value > s->most)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "%s of the cost model \"%s\" is a number from %d to %d, not \"%.*s\"",
                           s->name, model, s->least, s->most,
                           (int)(size - name < 60 ? size - name : 60), word + name);
        *s->value = (int)value;
        word += size;
    }
    return TL_OK;
}

void tl_cost_settings_print(const tl_cost_setting *table, int count, tl_text *out)
{
    for (int i = 0; i < count; i++)
        tl_text_format(out, "%s%s=%d", i > 0 ? " " : "", table[i].name, *table[i].value);
}
