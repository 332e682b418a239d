/* driver/cli/line_edit.h: lines from a person at a terminal (edited, completed, remembered), or from a pipe. */
#ifndef TL_DRIVER_CLI_LINE_EDIT_H
#define TL_DRIVER_CLI_LINE_EDIT_H
#include <stdbool.h>
#include <stddef.h>

typedef struct tl_line_editor tl_line_editor;
/* The n-th of all words that can follow `before`, the line up to where the word begins; NULL after the last. */
typedef const char *tl_completer(void *user, const char *before, int n);

/* NULL: no memory. On a terminal `prompt` is shown; else nothing is. */
tl_line_editor *tl_line_editor_open(const char *prompt, tl_completer *words, void *user);
void tl_line_editor_close(tl_line_editor *editor); /* NULL is fine */
/* The next line without its end, until the next call; NULL at the end of the input. */
const char *tl_line_editor_read(tl_line_editor *editor);
bool tl_line_editor_is_terminal(const tl_line_editor *editor);

#endif
