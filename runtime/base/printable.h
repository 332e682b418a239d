/* runtime/base/printable.h: text that a terminal only shows.
 *
 * Names come from files of anyone. What steers a terminal, or makes a text look like another one, is written as \u and
 * four hexadecimal digits, as in JSON (a code point above U+FFFF as its two surrogates, a byte that is no UTF-8 as a
 * code point of its own): control characters, marks of direction, separators of lines and paragraphs, characters
 * without a width, noncharacters. */
#ifndef TL_RUNTIME_BASE_PRINTABLE_H
#define TL_RUNTIME_BASE_PRINTABLE_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/text.h"

/* Reads the UTF-8 sequence at `bytes`, of which `size` (at least 1) are there: 1 to 4 bytes, and the code point; 0: none
 * begins here (overlong forms and surrogates are none); -1: it goes on behind the end. */
int tl_utf8_read(const char *bytes, size_t size, uint32_t *code);
/* Whether a terminal only shows it. Of control characters none is. */
bool tl_is_printable(uint32_t code);
/* \u001b: as above. */
void tl_text_add_escaped(tl_text *out, uint32_t code);
/* All of it, escaped where needed; newlines and tabs stay. */
void tl_text_add_printable(tl_text *out, const char *bytes, size_t size);

#endif
