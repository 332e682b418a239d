/* runtime/base/status.c: statuses and the sentences that explain them. */
#include "runtime/base/status.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    int exit_code;
} infos[TL_STATUS_COUNT] = {
#define STATUS(name, exit, text) [TL_##name] = { text, exit },
#include "runtime/base/status.def"
#undef STATUS
};

tl_status tl_fail(tl_diag *diag, tl_status status, const char *format, ...)
{
    if (diag != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(diag->text, sizeof diag->text, format, args);
        va_end(args);
    }
    return status;
}

void tl_context(tl_diag *diag, const char *format, ...)
{
    static const char lead[] = "\n  in ";
    if (diag == NULL)
        return;
    size_t used = strlen(diag->text);
    if (used + sizeof lead >= sizeof diag->text)
        return;
    memcpy(diag->text + used, lead, sizeof lead);
    used += sizeof lead - 1;

    va_list args;
    va_start(args, format);
    vsnprintf(diag->text + used, sizeof diag->text - used, format, args);
    va_end(args);
}

const char *tl_status_text(tl_status status)
{
    return (unsigned)status < TL_STATUS_COUNT ? infos[status].text : "unknown status";
}

int tl_status_exit_code(tl_status status)
{
    return (unsigned)status < TL_STATUS_COUNT ? infos[status].exit_code : 4;
}
