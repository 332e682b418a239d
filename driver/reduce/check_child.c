/* driver/reduce/check_child.c: a check of a candidate, in a child with limits. The child leads a group of processes, so that
 * Ctrl-C reaches this process alone, and what a command leaves behind ends with it. */
#include "driver/reduce/check_child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/clock.h"
#include "runtime/base/limits.h"

enum { NOT_STARTED = 127, SHORTEST_NAP_NS = 200000, LONGEST_NAP_NS = 20000000 };

static void be_child(const tl_child *child, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(NOT_STARTED);
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
    tl_limit_memory((int64_t)(child->memory_gb * 1e9));
    if (child->arguments == NULL)
        _exit(child->run(child->user));
    execv(child->arguments[0], (char *const *)child->arguments);
    _exit(NOT_STARTED);
}

static bool has_ended(pid_t pid, int *status)
{
    pid_t got = waitpid(pid, status, WNOHANG);
    return got == pid || (got < 0 && errno != EINTR);
}

/* Naps that grow: most checks take as long as a compiler does, some nothing. */
static tl_child_end wait_for(const tl_child *child, pid_t pid, int *status)
{
    int64_t start = tl_clock_ns();
    struct timespec nap = { .tv_nsec = SHORTEST_NAP_NS };
    while (!has_ended(pid, status)) {
        bool is_over = child->is_over != NULL && child->is_over();
        double seconds = (double)(tl_clock_ns() - start) * 1e-9;
        bool is_late = child->limit_s > 0 && seconds > child->limit_s;
        if (is_over || is_late) {
            kill(pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                ;
            return is_over ? TL_CHILD_STOPPED : TL_CHILD_LATE;
        }
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < LONGEST_NAP_NS)
            nap.tv_nsec += nap.tv_nsec / 4;
    }
    return WIFSIGNALED(*status) ? TL_CHILD_SIGNALLED : TL_CHILD_EXITED;
}

tl_status tl_child_run(const tl_child *child, tl_child_result *out, tl_diag *diag)
{
    pid_t parent = getpid();
    int status = 0;
    fflush(NULL); /* what the child inherits it must not print again */
    pid_t pid = fork();
    if (pid == 0)
        be_child(child, parent);
    if (pid < 0)
        return tl_fail(diag, TL_DEVICE, "no process for a check: %s", strerror(errno));
    setpgid(pid, pid);
    out->end = wait_for(child, pid, &status);
    kill(-pid, SIGKILL);
    out->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return TL_OK;
}
