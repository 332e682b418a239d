/* tests/driver/cli_run.h: runs the binary that was built beside the test, in a scratch folder. */
#ifndef TL_TESTS_DRIVER_CLI_RUN_H
#define TL_TESTS_DRIVER_CLI_RUN_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/text.h"

static char cli_tilth[PATH_MAX], cli_folder[64];

/* Runs a line of the shell with $D the scratch folder and $TILTH the binary; what it printed on both streams goes to
 * `out`. */
static inline int cli_shell(tl_text *out, const char *line)
{
    tl_text command = { 0 };
    tl_text_format(&command,
                   "export D=%s XDG_CACHE_HOME=%s/cache XDG_DATA_HOME=%s/data TILTH=%s; unset "
                   "TILTH_PERF; { %s; } 2>&1",
                   cli_folder, cli_folder, cli_folder, cli_tilth, line);
    FILE *pipe = popen(tl_text_get(&command), "r");
    tl_text_free(&command);
    assert_non_null(pipe);
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        tl_text_add_bytes(out, buffer, n);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The line ends with that status and prints that part. */
static inline void expect_shell(int exit_code, const char *part, const char *line)
{
    tl_text out = { 0 };
    int got = cli_shell(&out, line);
    bool found = strstr(tl_text_get(&out), part) != NULL;
    if (got != exit_code || !found)
        fail_msg("%s: exit %d (want %d), output %s '%s':\n%s", line, got, exit_code,
                 found ? "has" : "lacks", part, tl_text_get(&out));
    tl_text_free(&out);
}

/* The same of `tilth ARGUMENTS`. */
static inline void expect(int exit_code, const char *part, const char *arguments)
{
    tl_text line = { 0 };
    tl_text_format(&line, "$TILTH %s", arguments);
    expect_shell(exit_code, part, tl_text_get(&line));
    tl_text_free(&line);
}

static inline int cli_set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", cli_tilth, sizeof cli_tilth - 8);
    if (n < 0)
        return -1;
    cli_tilth[n] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(cli_tilth, '/') = '\0';
    strcat(cli_tilth, "/tilth");
    strcpy(cli_folder, "/tmp/tilth-cli-XXXXXX");
    return mkdtemp(cli_folder) == NULL ? -1 : 0;
}

static inline int cli_tear_down(void **state)
{
    (void)state;
    tl_text command = { 0 };
    tl_text_format(&command, "rm -rf %s", cli_folder);
    int status = system(tl_text_get(&command));
    tl_text_free(&command);
    return status;
}

#endif
