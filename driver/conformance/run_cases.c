/* driver/conformance/run_cases.c: a child a case, several at once. A child hands on what it knows of its case, once its
 * operators are known and at the end; how it ended, and what it said on stderr, tell the rest. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "driver/conformance/conformance.h"
#include "runtime/base/clock.h"
#include "runtime/base/limits.h"

_Static_assert(sizeof(tl_case_result) <= PIPE_BUF, "a result is written in one piece");

enum { MAX_JOBS = 256 };

/* One child. */
typedef struct {
    pid_t pid;           /* 0: there is none */
    int index;           /* of its case */
    int results, errors; /* what it writes; -1: at its end */
    int64_t start_ns;
    char said[512]; /* the beginning of what it wrote to stderr */
    size_t said_size;
    bool is_late;
} job;

static int result_fd; /* of the child, to its parent */

static void hand_on(const tl_case_result *result)
{
    ssize_t n;
    do
        n = write(result_fd, result, sizeof *result);
    while (n < 0 && errno == EINTR);
}

static void take_place(const char *path, int flags, int fd)
{
    int opened = open(path, flags);
    if (opened >= 0 && opened != fd) {
        dup2(opened, fd);
        close(opened);
    }
}

static void be_child(const tl_case *c, const tl_case_runner *runner, pid_t parent, int results,
                     int errors)
{
    tl_case_result result = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    take_place("/dev/null", O_RDONLY, STDIN_FILENO);
    take_place("/dev/null", O_WRONLY, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
    tl_limit_memory(runner->memory_bytes);
    result_fd = results;
    runner->run(c, runner->session, &result, hand_on);
    hand_on(&result);
    _exit(0);
}

static tl_status start(job *j, const tl_case_list *list, int index, const tl_case_runner *runner,
                       tl_diag *diag)
{
    int results[2], errors[2];
    if (pipe2(results, O_CLOEXEC) != 0)
        return tl_fail(diag, TL_DEVICE, "no pipe for a case: %s", strerror(errno));
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(results[0]);
        close(results[1]);
        return tl_fail(diag, TL_DEVICE, "no pipe for a case: %s", strerror(errno));
    }
    pid_t parent = getpid();
    fflush(NULL); /* what the child inherits it must not print again */
    pid_t pid = fork();
    if (pid == 0)
        be_child(&list->cases[index], runner, parent, results[1], errors[1]);
    int error = errno;
    close(results[1]);
    close(errors[1]);
    *j = (job){ .pid = pid, .index = index, .results = results[0], .errors = errors[0] };
    j->start_ns = tl_clock_ns();
    if (pid > 0)
        return TL_OK;
    close(results[0]);
    close(errors[0]);
    j->pid = 0;
    return tl_fail(diag, TL_DEVICE, "no process for a case: %s", strerror(error));
}

/* Takes what the child has written; false: it is at its end. */
static bool take_result(job *j, tl_case_result *result)
{
    tl_case_result got;
    ssize_t n = read(j->results, &got, sizeof got);
    if (n < 0 && errno == EINTR)
        return true;
    if (n != (ssize_t)sizeof got)
        return false;
    got.operators[sizeof got.operators - 1] = got.reason[sizeof got.reason - 1] = '\0';
    got.index[sizeof got.index - 1] = got.got[sizeof got.got - 1] = '\0';
    got.expected[sizeof got.expected - 1] = '\0';
    *result = got;
    return true;
}

static bool take_said(job *j)
{
    char rest[512];
    size_t left = sizeof j->said - 1 - j->said_size;
    ssize_t n =
        read(j->errors, left > 0 ? j->said + j->said_size : rest, left > 0 ? left : sizeof rest);
    if (n > 0 && left > 0)
        j->said_size += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Waits for the child, which has ended or is killed, and puts what is known into words. */
static void finish(job *j, const tl_case_runner *runner, tl_case_result *result)
{
    int status = 0;
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        ;
    while (j->errors >= 0 && take_said(j))
        ;
    close_end(&j->results);
    close_end(&j->errors);
    result->seconds = (double)(tl_clock_ns() - j->start_ns) * 1e-9;
    j->pid = 0;
    if (result->is_final && !j->is_late)
        return;
    const char *said = j->said + strspn(j->said, " \n\r=");
    result->verdict = TL_CASE_FAILED;
    result->output = -1;
    char how[96];
    if (j->is_late)
        snprintf(how, sizeof how, "it took longer than %g s", runner->limit_s);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "it ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "it ended with status %d", WEXITSTATUS(status));
    snprintf(result->reason, sizeof result->reason, "%s%s%.*s", how, *said != '\0' ? ": " : "",
             (int)strcspn(said, "\n"), said);
    result->is_final = true;
}

/* How long the job may still go on, in ms; -1: as long as it takes. */
static int patience(const job *j, double limit_s)
{
    if (limit_s <= 0)
        return -1;
    double left = limit_s * 1e3 - (double)(tl_clock_ns() - j->start_ns) * 1e-6;
    return left < 0 ? 0 : left < 1e9 ? (int)left + 1 : (int)1e9;
}

/* Waits until something is written or a case is late, and takes what there is. */
static void attend(job *jobs, int count, const tl_case_runner *runner, tl_case_result *results)
{
    struct pollfd polled[2 * MAX_JOBS];
    int wait = -1;
    for (int i = 0; i < count; i++) {
        job *j = &jobs[i];
        bool runs = j->pid != 0;
        polled[2 * i] = (struct pollfd){ .fd = runs ? j->results : -1, .events = POLLIN };
        polled[2 * i + 1] = (struct pollfd){ .fd = runs ? j->errors : -1, .events = POLLIN };
        int left = runs ? patience(j, runner->limit_s) : -1;
        if (left >= 0 && (wait < 0 || left < wait))
            wait = left;
    }
    if (poll(polled, (nfds_t)(2 * count), wait) < 0)
        return;
    for (int i = 0; i < count; i++) {
        job *j = &jobs[i];
        if (j->pid == 0)
            continue;
        if (polled[2 * i + 1].revents != 0 && !take_said(j))
            close_end(&j->errors);
        bool ended = polled[2 * i].revents != 0 && !take_result(j, &results[j->index]);
        if (!ended && patience(j, runner->limit_s) == 0) {
            j->is_late = ended = true;
            kill(j->pid, SIGKILL);
        }
        if (ended)
            finish(j, runner, &results[j->index]);
    }
}

static void end_all(job *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        if (jobs[i].pid == 0)
            continue;
        kill(jobs[i].pid, SIGKILL);
        while (waitpid(jobs[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close_end(&jobs[i].results);
        close_end(&jobs[i].errors);
    }
}

tl_status tl_run_cases(const tl_case_list *list, const tl_case_runner *runner,
                       tl_case_result *results, tl_diag *diag)
{
    job jobs[MAX_JOBS] = { 0 };
    int next = 0, done = 0, failed = 0;
    int count = runner->jobs < 1 ? 1 : runner->jobs < MAX_JOBS ? runner->jobs : MAX_JOBS;
    memset(results, 0, sizeof *results * (size_t)list->count);
    for (int i = 0; i < list->count; i++)
        results[i].output = -1;
    while (done < list->count) {
        for (int i = 0; i < count && next < list->count; i++) {
            if (jobs[i].pid != 0)
                continue;
            tl_status status = start(&jobs[i], list, next, runner, diag);
            if (status != TL_OK) {
                end_all(jobs, count);
                return status;
            }
            next++;
        }
        attend(jobs, count, runner, results);
        int running = 0;
        failed = 0;
        for (int i = 0; i < count; i++)
            running += jobs[i].pid != 0;
        for (int i = 0; i < next; i++)
            failed += results[i].is_final && results[i].verdict == TL_CASE_FAILED;
        if (next - running > done && runner->progress != NULL)
            runner->progress(next - running, list->count, failed);
        done = next - running;
    }
    return TL_OK;
}
