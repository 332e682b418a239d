/* runtime/base/text.h: a text that grows. */
#ifndef TL_RUNTIME_BASE_TEXT_H
#define TL_RUNTIME_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; `data` is always NUL-terminated once something was added. Heap memory, freed
 * by tl_text_free. When memory runs out `failed` is set and further additions do nothing. */
typedef struct {
    char *data;
    size_t size, capacity; /* size without the NUL */
    bool failed;
} tl_text;

void tl_text_add(tl_text *text, const char *s);
void tl_text_add_bytes(tl_text *text, const void *bytes, size_t size);
void tl_text_format(tl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tl_text_add_size(tl_text *text, int64_t bytes); /* "512 bytes", "3.4 MB", "12.0 GB" */
void tl_text_indent(tl_text *text, int columns);     /* adds that many spaces */
const char *tl_text_get(const tl_text *text);        /* "" when empty */
void tl_text_free(tl_text *text);

/* Fewest single-letter edits between two words (Levenshtein 1965), for "did you mean"; 64: one is longer than that. */
size_t tl_text_edits(const char *a, const char *b);

#endif
