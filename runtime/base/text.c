/* runtime/base/text.c: a text that grows. */
#include "runtime/base/text.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and the NUL. */
static bool reserve(tl_text *text, size_t more)
{
    assert(text->data == NULL ? text->size == 0 && text->capacity == 0
                              : text->size < text->capacity);
    if (text->failed)
        return false;
    if (text->capacity - text->size > more)
        return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity - text->size <= more) {
        if (capacity > (size_t)-1 / 2) {
            text->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void tl_text_add_bytes(tl_text *text, const void *bytes, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size != 0)
        memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void tl_text_add(tl_text *text, const char *s)
{
    tl_text_add_bytes(text, s, strlen(s));
}

void tl_text_format(tl_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size >= 0 && reserve(text, (size_t)size)) {
        vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

void tl_text_indent(tl_text *text, int columns)
{
    assert(columns >= 0);
    if (columns <= 0 || !reserve(text, (size_t)columns))
        return;
    memset(text->data + text->size, ' ', (size_t)columns);
    text->size += (size_t)columns;
    text->data[text->size] = '\0';
}

const char *tl_text_get(const tl_text *text)
{
    return text->data ? text->data : "";
}

void tl_text_free(tl_text *text)
{
    free(text->data);
    *text = (tl_text){ 0 };
}

size_t tl_text_edits(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n >= 64 || strlen(a) >= 64)
        return 64;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0]++;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

void tl_text_add_size(tl_text *out, int64_t bytes)
{
    static const char *const units[] = { "KB", "MB", "GB", "TB", "PB", "EB" };
    double number = (double)bytes / 1e3;
    int unit = 0;
    if (bytes < 1000) {
        tl_text_format(out, "%lld bytes", (long long)bytes);
        return;
    }
    for (; number >= 999.95 && unit < 5; unit++)
        number /= 1e3;
    tl_text_format(out, "%.1f %s", number, units[unit]);
}
