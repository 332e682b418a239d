/* driver/cli/cli.h: what the verbs of the command line share: options, messages, names of things.
 *
 * Results go to stdout, everything else to stderr. Only this part of tilth prints. */
#ifndef TL_DRIVER_CLI_CLI_H
#define TL_DRIVER_CLI_CLI_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/api/tilth_rt.h" /* TILTH_VERSION */

typedef enum {
    TL_OPTION_FLAG, /* --json           -> bool          */
    TL_OPTION_INT,  /* --threads 2      -> int64_t       */
    TL_OPTION_REAL, /* --seconds 1.5    -> double        */
    TL_OPTION_TEXT, /* --data DIR       -> const char *  */
    TL_OPTION_LIST, /* --input a --input b -> tl_text_list */
} tl_option_type;

typedef struct {
    int count;
    const char *items[64];
} tl_text_list;

/* One option of a verb. A table of them ends with an entry whose name is NULL. */
typedef struct {
    const char *name;       /* "--threads" */
    const char *short_name; /* "-o", or NULL */
    tl_option_type type;
    /* "N" in the help, NULL for a flag; FILE and DIR complete as such, a|b|c as words. */
    const char *argument;
    const char *help;
    void *value; /* where it goes; keeps its initial value when the option is not given */
} tl_option;

typedef struct {
    const char *verb, *arguments, *summary;
    const char *details;  /* paragraphs of the help, may be NULL */
    const char *examples; /* lines of the help, may be NULL */
    const tl_option *options;
    int min_positional, max_positional;
    /* What the first argument may be; NULL after the last. May be NULL. */
    const char *(*word)(int index);
} tl_verb_help;
extern const tl_option tl_common_options[]; /* those that every verb takes */

/* The whole of a verb: parses, prints help or the error, returns true when the verb should go on. */
bool tl_verb_begin(const tl_verb_help *verb, int argc, char **argv, const char **positional,
                   int *positional_count, int *exit_code);

/* "90", "90s", "5m", "1h" as seconds, more than none; `option` is what says so, for the sentence. */
tl_status tl_duration_parse(const char *option, const char *text, double *seconds, tl_diag *diag);

/* Prints "tilth VERB: sentence" to stderr and returns the exit status. */
int tl_report_failure(const char *verb, tl_status status, const tl_diag *diag);

/* Flushes stdout; what could not be written is an error (exit 5). */
int tl_finish_output(const char *verb, int exit_code);

/* A progress line on stderr: redrawn on a terminal, silent otherwise unless -v. */
void tl_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tl_progress_done(void);
bool tl_progress_is_live(void); /* it is redrawn: stderr is a terminal that can, and not -q */
extern bool tl_quiet, tl_verbose;

/* From now on stdout and stderr let through what a terminal only shows, newlines and tabs (runtime/base/printable.h):
 * names come from files of anyone. Terminal or not: what was asked for in a pipe is looked at in the end. */
void tl_terminal_start(void);
FILE *tl_terminal_raw(FILE *stream); /* of stdout or stderr: what it was before */
/* Text in bold, red or green; plain when `stream` is no terminal, NO_COLOR is set or TERM is dumb. */
typedef enum { TL_STYLE_PLAIN, TL_STYLE_BOLD, TL_STYLE_RED, TL_STYLE_GREEN } tl_style;
void tl_print_styled(FILE *stream, tl_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether what is written to that path comes out of stdout, where nothing else may then be printed. */
bool tl_is_stdout(const char *path);

/* Ctrl-C and SIGTERM end the process with a sentence and 130. Files are written beside their name and renamed
 * when they are complete, so that nothing is left half-written whenever that happens. */
void tl_interrupt_install(void);
/* From now on the first of them only sets *flag; the next one ends the process as before. NULL: as before. */
void tl_interrupt_catch(volatile sig_atomic_t *flag);

/* Until it is called with NULL: tl_verb_begin hands the help of its verb to `visit` and returns false. */
typedef void tl_help_visitor(const tl_verb_help *help, void *user);
void tl_verb_hand_over(tl_help_visitor *visit, void *user);

#endif
