/* driver/cli/terminal.c: what depends on the terminal: what may reach it, progress, colours, and the end by a signal. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/cli/cli.h"
#include "runtime/base/destination.h"
#include "runtime/base/printable.h"

bool tl_quiet, tl_verbose;

static volatile sig_atomic_t progress_shown;
static volatile sig_atomic_t *volatile caught; /* where a first signal goes; NULL: nowhere */

/* ---- what reaches the terminal ---- */

/* One of the two streams as the rest of the program sees it. */
typedef struct {
    FILE *raw;    /* as it was; NULL: it still is */
    char rest[4]; /* the beginning of a character whose end was not written yet */
    size_t rest_size;
} filter;
static filter out_filter, error_filter;

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        else if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* How many bytes at the end begin a character that is not whole. */
static size_t cut_off(const char *bytes, size_t size)
{
    uint32_t code;
    for (size_t back = 1; back < 4 && back <= size; back++)
        if (tl_utf8_read(bytes + size - back, back, &code) < 0)
            return back;
    return 0;
}

static ssize_t write_printable(void *cookie, const char *bytes, size_t size)
{
    filter *f = cookie;
    tl_text all = { 0 }, shown = { 0 };
    tl_text_add_bytes(&all, f->rest, f->rest_size);
    tl_text_add_bytes(&all, bytes, size);
    if (!all.failed) {
        f->rest_size = cut_off(all.data, all.size);
        memcpy(f->rest, all.data + all.size - f->rest_size, f->rest_size);
        tl_text_add_printable(&shown, all.data, all.size - f->rest_size);
    }
    bool good =
        !all.failed && !shown.failed && write_all(fileno(f->raw), tl_text_get(&shown), shown.size);
    int error = all.failed || shown.failed ? ENOMEM : errno;
    tl_text_free(&all);
    tl_text_free(&shown);
    errno = error;
    return good ? (ssize_t)size : 0;
}

static FILE *make_filter(filter *f, FILE *raw, int mode)
{
    FILE *stream = fopencookie(f, "w", (cookie_io_functions_t){ .write = write_printable });
    if (stream == NULL)
        return raw;
    f->raw = raw;
    setvbuf(stream, NULL, mode, BUFSIZ);
    return stream;
}

void tl_terminal_start(void)
{
    stdout = make_filter(&out_filter, stdout, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    stderr = make_filter(&error_filter, stderr, _IONBF);
}

FILE *tl_terminal_raw(FILE *stream)
{
    filter *f = stream == stdout ? &out_filter : stream == stderr ? &error_filter : NULL;
    return f != NULL && f->raw != NULL ? f->raw : stream;
}

/* What is ours to send: it goes around the filter. */
static void send_raw(FILE *stream, const char *sequence)
{
    FILE *raw = tl_terminal_raw(stream);
    fflush(stream);
    fputs(sequence, raw);
    fflush(raw);
}

void tl_print_styled(FILE *stream, tl_style style, const char *format, ...)
{
    static const char *const codes[] = { [TL_STYLE_PLAIN] = "\033[0m",
                                         [TL_STYLE_BOLD] = "\033[1m",
                                         [TL_STYLE_RED] = "\033[31m",
                                         [TL_STYLE_GREEN] = "\033[32m" };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colored = style != TL_STYLE_PLAIN && (no_color == NULL || *no_color == '\0') &&
                   term != NULL && strcmp(term, "dumb") != 0 &&
                   isatty(fileno(tl_terminal_raw(stream)));
    va_list args;
    if (colored)
        send_raw(stream, codes[style]);
    va_start(args, format);
    vfprintf(stream, format, args);
    va_end(args);
    if (colored)
        send_raw(stream, codes[TL_STYLE_PLAIN]);
}

bool tl_is_stdout(const char *path)
{
    tl_destination to;
    return tl_destination_find(path, &to, NULL) == TL_OK && to.kind == TL_DESTINATION_STREAM &&
           to.fd == STDOUT_FILENO;
}

/* ---- progress ---- */

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
        send_raw(stderr, "\r\033[K");
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
        send_raw(stderr, "\r\033[K");
    progress_shown = false;
}

/* ---- the end ---- */

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
    (void)n, (void)signal_number;
    _exit(130);
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
