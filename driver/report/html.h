/* driver/report/html.h: text within a page. */
#ifndef TL_DRIVER_REPORT_HTML_H
#define TL_DRIVER_REPORT_HTML_H
#include "runtime/base/text.h"

/* Text for HTML, attributes included: what has a meaning there is escaped; control characters and what is no UTF-8 become
 * the replacement character. */
void tl_html_add(tl_text *out, const char *text);

#endif
