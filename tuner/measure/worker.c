/* tuner/measure/worker.c: a worker process: takes the task, forks children for the jobs, says when one died. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/clock.h"
#include "runtime/base/limits.h"
#include "tuner/measure/worker_private.h"

/* Exit statuses of a child. */
enum { CHILD_QUIT = 0, CHILD_ORPHAN = 3 };
/* Prepared tasks are kept, up to this much memory. */
#define MAX_TASK_BYTES ((int64_t)1 << 30)
enum { MAX_TASKS = 256 };

typedef struct {
    int fd;
    bool is_runner;
    const tl_worker_options *options;
    tl_worker_config config;
    tl_run_task *tasks[MAX_TASKS];
    int task_count;
    tl_run_task *current;
    int64_t turn;
} worker;

/* A core that was taken away, or never was ours, is no reason to stop. */
static void choose_core(const tl_worker_config *config)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (config->in_gaps)
        sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
    if (config->core >= 0) {
        CPU_SET((size_t)config->core, &set);
    } else if (config->not_core >= 0 && sched_getaffinity(0, sizeof set, &set) == 0 &&
               CPU_COUNT(&set) > 1) {
        CPU_CLR((size_t)config->not_core, &set);
    } else {
        return;
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return;
}

/* An alarm that nothing in the process can hold up: its default is the end. */
static void set_alarm(double seconds)
{
    struct itimerval timer = { 0 };
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void serve(worker *w)
{
    tl_text body = { 0 }, reply = { 0 };
    tl_run_state state;
    bool has_state = false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    choose_core(&w->config);
    if (!w->is_runner ||
        w->config.device[0] == '\0') /* a GPU's driver takes as much address space as it likes */
        tl_limit_memory(w->config.memory_bytes);
    for (;;) {
        tl_frame_kind kind;
        if (!tl_frame_receive(w->fd, &kind, &body))
            _exit(CHILD_ORPHAN);
        if (kind == TL_FRAME_QUIT)
            _exit(CHILD_QUIT);
        set_alarm(w->config.limit_s);
        reply.size = 0;
        if (kind == TL_FRAME_BUILD && !w->is_runner) {
            tl_worker_build(&w->config, w->options, &body, &reply);
        } else if (kind == TL_FRAME_RUN && w->is_runner && w->current != NULL) {
            if (!has_state && !tl_run_state_create(&w->config, w->current, &state))
                _exit(CHILD_ORPHAN);
            has_state = true;
            tl_worker_run(&state, w->options, &body, &reply);
            if (tl_run_is_lost(&state))
                _exit(TL_CHILD_LOST_DEVICE);
        } else {
            _exit(CHILD_ORPHAN);
        }
        set_alarm(0);
        if (!tl_frame_send(w->fd, w->is_runner ? TL_FRAME_RAN : TL_FRAME_BUILT, &reply))
            _exit(CHILD_ORPHAN);
    }
}

/* Children one after the other, until one ends because it was told to. False: the tuner is gone. */
static bool run_children(worker *w)
{
    /* once, and not of what a child may take; where it fails, the child says so */
    if (!w->is_runner)
        (void)tl_codegen_load(NULL);
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            serve(w);
        struct rusage usage = { 0 };
        int status = 0;
        if (child < 0)
            return false;
        while (wait4(child, &status, 0, &usage) < 0)
            if (errno != EINTR)
                return false;
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_QUIT)
            return true;
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_ORPHAN)
            return false;
        tl_text body = { 0 };
        tl_pack_int(&body, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        tl_pack_int(&body, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
        tl_pack_int(&body, (int64_t)usage.ru_maxrss * 1024);
        bool sent = tl_frame_send(w->fd, TL_FRAME_DIED, &body);
        tl_text_free(&body);
        if (!sent)
            return false;
    }
}

static tl_run_task *find_task(worker *w, int id)
{
    for (int i = 0; i < w->task_count; i++)
        if (w->tasks[i]->id == id)
            return w->tasks[i];
    return NULL;
}

static void make_room(worker *w)
{
    assert(w->task_count >= 0);
    for (;;) {
        int64_t bytes = 0;
        int oldest = 0;
        for (int i = 0; i < w->task_count; i++) {
            bytes += w->tasks[i]->bytes;
            if (w->tasks[i]->used < w->tasks[oldest]->used)
                oldest = i;
        }
        if (w->task_count == 0 || (bytes <= MAX_TASK_BYTES && w->task_count < MAX_TASKS))
            return;
        tl_run_task_destroy(w->tasks[oldest]);
        w->tasks[oldest] = w->tasks[--w->task_count];
    }
}

static bool prepare(worker *w, const tl_text *body)
{
    tl_unpacker u = tl_unpack(body);
    tl_text reply = { 0 };
    tl_diag diag = { 0 };
    int id = (int)tl_unpack_int(&u);
    bool is_new = false;
    w->current = find_task(w, id);
    if (w->current == NULL && !u.failed) {
        make_room(w);
        w->current = tl_run_task_create(&w->config, &u, &diag);
        if (w->current != NULL) {
            w->current->id = id;
            w->tasks[w->task_count++] = w->current;
            is_new = true;
        }
    }
    if (w->current != NULL)
        w->current->used = ++w->turn;
    tl_pack_int(&reply, w->current != NULL);
    tl_pack_text(&reply, diag.text);
    tl_pack_real(&reply, is_new ? w->current->reference_ns : 0);
    bool sent = tl_frame_send(w->fd, TL_FRAME_READY, &reply);
    tl_text_free(&reply);
    return sent;
}

static bool configure(worker *w, const tl_text *body)
{
    tl_unpacker u = tl_unpack(body);
    return tl_worker_config_unpack(&u, &w->config);
}

int tl_worker_main(int argc, char **argv, const tl_worker_options *options)
{
    static const tl_worker_options none;
    static worker w; /* large */
    if (argc != 2 || (strcmp(argv[0], "builder") != 0 && strcmp(argv[0], "runner") != 0))
        return 2;
    w.is_runner = strcmp(argv[0], "runner") == 0;
    w.fd = atoi(argv[1]);
    w.options = options != NULL ? options : &none;

    struct rlimit no_core = { 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    static const int by_default[] = { SIGALRM, SIGTERM, SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGABRT };
    for (size_t i = 0; i < sizeof by_default / sizeof *by_default; i++)
        signal(by_default[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* a Ctrl-C is the tuner's business */
    signal(SIGPIPE, SIG_IGN);
    sigset_t nothing;
    sigemptyset(&nothing);
    sigprocmask(SIG_SETMASK, &nothing, NULL);

    tl_text body = { 0 };
    tl_frame_kind kind;
    bool go_on = true;
    while (go_on && tl_frame_receive(w.fd, &kind, &body)) {
        if (kind == TL_FRAME_CONFIG)
            go_on = configure(&w, &body);
        else if (kind == TL_FRAME_PREPARE && w.is_runner)
            go_on = prepare(&w, &body);
        else if (kind == TL_FRAME_START)
            go_on = run_children(&w);
        else
            go_on = false;
    }
    tl_text_free(&body);
    return 0;
}
