/* driver/pipeline/model_switches.c: what the pipeline can do without: passes of the graph, then its own stages. */
#include <string.h>
#include "driver/pipeline/model.h"

static const char *const stages[] = { "fusion", "lowering", "schedule" };
enum { STAGE_COUNT = sizeof stages / sizeof *stages };

const char *tl_model_switch(int index)
{
    int passes = 0;
    while (tl_graph_optional_pass(passes) != NULL)
        passes++;
    if (index < passes)
        return tl_graph_optional_pass(index);
    return index - passes < STAGE_COUNT ? stages[index - passes] : NULL;
}

tl_status tl_model_check_without(const char *without, tl_diag *diag)
{
    for (const char *name = without; name != NULL && *name != '\0';) {
        int length = (int)strcspn(name, ","), i = 0;
        const char *known;
        while ((known = tl_model_switch(i)) != NULL &&
               ((int)strlen(known) != length || memcmp(known, name, (size_t)length) != 0))
            i++;
        if (known == NULL) {
            tl_fail(diag, TL_BAD_ARGUMENT,
                    "--without: '%.*s' cannot be left out; these can:", length < 80 ? length : 80,
                    name);
            for (i = 0; diag != NULL && (known = tl_model_switch(i)) != NULL; i++) {
                strncat(diag->text, " ", sizeof diag->text - strlen(diag->text) - 1);
                strncat(diag->text, known, sizeof diag->text - strlen(diag->text) - 1);
            }
            return TL_BAD_ARGUMENT;
        }
        name += length + (name[length] == ',');
    }
    return TL_OK;
}
