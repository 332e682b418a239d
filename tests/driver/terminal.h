/* tests/driver/terminal.h: the binary at a terminal of its own, and a user who waits for what is shown before pressing
 * the next keys. A program takes keys as they are only while it reads a line: what is typed ahead of that, the kernel
 * edits, and a Ctrl-D among it is lost. */
#ifndef TL_TESTS_DRIVER_TERMINAL_H
#define TL_TESTS_DRIVER_TERMINAL_H
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include "tests/driver/cli_run.h"

/* Seconds after which what is awaited will not come: as a slow machine needs them, sanitized. */
enum { TERMINAL_PATIENCE = 120 };

typedef struct {
    int fd;
    pid_t child;
    tl_text shown;
    size_t seen; /* how much of it was waited for */
} terminal;

/* Starts `tilth ARGUMENTS` in the scratch folder, at a terminal that it controls. */
static inline void terminal_start(terminal *t, const char *arguments)
{
    *t = (terminal){ .fd = posix_openpt(O_RDWR | O_NOCTTY) };
    tl_text command = { 0 };
    tl_text_format(&command, "cd %s && exec %s %s", cli_folder, cli_tilth, arguments);
    assert_true(t->fd >= 0 && grantpt(t->fd) == 0 && unlockpt(t->fd) == 0);
    t->child = fork();
    assert_true(t->child >= 0);
    if (t->child == 0) {
        setsid();
        int tty = open(ptsname(t->fd), O_RDWR); /* a session's first terminal controls it */
        close(t->fd);
        for (int fd = 0; fd < 3; fd++)
            dup2(tty, fd);
        if (tty > 2)
            close(tty);
        setenv("TERM", "xterm", 1);
        execl("/bin/sh", "sh", "-c", tl_text_get(&command), (char *)NULL);
        _exit(127);
    }
    tl_text_free(&command);
}

/* Takes what is shown next; false: nothing more comes, or nothing came in time. */
static inline bool terminal_take(terminal *t, time_t until)
{
    struct pollfd ready = { .fd = t->fd, .events = POLLIN };
    char buffer[4096];
    time_t now = time(NULL);
    if (now >= until || poll(&ready, 1, (int)(until - now) * 1000) <= 0)
        return false;
    ssize_t n = read(t->fd, buffer, sizeof buffer);
    if (n > 0)
        tl_text_add_bytes(&t->shown, buffer, (size_t)n);
    return n > 0;
}

/* Waits until `part` is shown after all that was waited for before. */
static inline void terminal_expect(terminal *t, const char *part)
{
    const char *at;
    time_t until = time(NULL) + TERMINAL_PATIENCE;
    while ((at = strstr(tl_text_get(&t->shown) + t->seen, part)) == NULL)
        if (!terminal_take(t, until)) {
            kill(t->child, SIGKILL);
            fail_msg("the terminal lacks '%s' after its first %zu bytes:\n%s", part, t->seen,
                     tl_text_get(&t->shown));
        }
    t->seen = (size_t)(at - tl_text_get(&t->shown)) + strlen(part);
}

static inline void terminal_press(terminal *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

/* Waits for the program's end; its exit status, -1: a signal ended it. */
static inline int terminal_end(terminal *t)
{
    int status;
    time_t until = time(NULL) + TERMINAL_PATIENCE;
    while (terminal_take(t, until))
        ;
    if (time(NULL) >= until)
        kill(t->child, SIGKILL);
    waitpid(t->child, &status, 0);
    close(t->fd);
    tl_text_free(&t->shown);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
