/* driver/study/page_template.h: the lines of a page around its data; NULL after the last. */
#ifndef TL_DRIVER_STUDY_PAGE_TEMPLATE_H
#define TL_DRIVER_STUDY_PAGE_TEMPLATE_H

extern const char *const tl_page_before[], *const tl_page_after[];

#endif
