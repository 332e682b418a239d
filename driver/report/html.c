/* driver/report/html.c: text within a page. */
#include "driver/report/html.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "runtime/base/printable.h"

/* What a reader would not see, or see in another order, is the sign of a missing character. */
void tl_html_add(tl_text *out, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code;
        int size = tl_utf8_read(text, left, &code);
        bool shown = size > 0 && (tl_is_printable(code) || code == '\n' || code == '\t');
        const char *entity = !shown          ? "\xef\xbf\xbd"
                             : *text == '<'  ? "&lt;"
                             : *text == '>'  ? "&gt;"
                             : *text == '&'  ? "&amp;"
                             : *text == '"'  ? "&quot;"
                             : *text == '\'' ? "&#39;"
                                             : NULL;
        if (entity != NULL)
            tl_text_add(out, entity);
        else
            tl_text_add_bytes(out, text, (size_t)size);
        text += size > 0 ? size : 1;
        left -= size > 0 ? (size_t)size : 1;
    }
}
