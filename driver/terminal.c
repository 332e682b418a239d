/* driver/terminal.c: what depends on the terminal: progress, colours, and the end by a signal. */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/cli.h"

static volatile sig_atomic_t progress_shown;
static volatile sig_atomic_t *volatile caught; /* where a first signal goes; NULL: nowhere */

const char *tl_style_on(FILE *stream, tl_style style)
{
    static const char *const codes[] = { [TL_STYLE_PLAIN] = "\033[0m",
                                         [TL_STYLE_BOLD] = "\033[1m",
                                         [TL_STYLE_RED] = "\033[31m",
                                         [TL_STYLE_GREEN] = "\033[32m" };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colored = (no_color == NULL || *no_color == '\0') && term != NULL &&
                   strcmp(term, "dumb") != 0 && isatty(fileno(stream));
    return colored ? codes[style] : "";
}

/* A terminal that can redraw a line. */
static bool can_redraw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void tl_progress(const char *format, ...)
{
    bool redraw = can_redraw();
    if (tl_quiet || (!redraw && !tl_verbose))
        return;
    va_list args;
    va_start(args, format);
    if (redraw)
        fputs("\r\033[K", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    if (!redraw)
        fputc('\n', stderr);
    fflush(stderr);
    progress_shown = redraw;
}

bool tl_progress_is_live(void)
{
    return !tl_quiet && can_redraw();
}

void tl_progress_done(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

/* Runs on any thread at any moment: only what a signal handler may call. */
static void end_by_signal(int signal_number)
{
    if (caught != NULL && *caught == 0) {
        *caught = 1;
        return;
    }
    static const char clear[] = "\r\033[K", sentence[] = "tilth: interrupted; nothing is left "
                                                         "half-written\n";
    ssize_t n = progress_shown ? write(STDERR_FILENO, clear, sizeof clear - 1) : 0;
    n = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)n;
    _exit(128 + signal_number);
}

void tl_interrupt_install(void)
{
    static const int signals[] = { SIGINT, SIGTERM };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old, action = { .sa_handler = end_by_signal };
        sigemptyset(&action.sa_mask);
        /* a job in the background, started to ignore Ctrl-C, goes on ignoring it */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void tl_interrupt_catch(volatile sig_atomic_t *flag)
{
    caught = flag;
}
