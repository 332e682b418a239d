/* runtime/base/status.h: what failed (status) and the sentence that says so (diag). */
#ifndef TL_RUNTIME_BASE_STATUS_H
#define TL_RUNTIME_BASE_STATUS_H

typedef enum {
#define STATUS(name, exit, text) TL_##name,
#include "runtime/base/status.def"
#undef STATUS
    TL_STATUS_COUNT
} tl_status;

/* The first failure writes the sentence; callers on the way out add where they were.
 * A NULL diag means nobody will read it: the search tries thousands of schedules, most
 * of them illegal, and none should pay for formatting. Zero-initialise it. */
typedef struct {
    char text[2048];
} tl_diag;

/* Writes the sentence (name the subject, the offending value and the rule) and returns `status`. */
tl_status tl_fail(tl_diag *diag, tl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a line "  in ..." saying where in the user's world it happened. */
void tl_context(tl_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *tl_status_text(tl_status status);
int tl_status_exit_code(tl_status status);

#define TL_TRY(call)                   \
    do {                               \
        tl_status try_status = (call); \
        if (try_status != TL_OK)       \
            return try_status;         \
    } while (0)

#endif
