/* tests/structural/run.c: workers, each of which draws and checks every n-th seed; one that fails says so in memory that all
 * share and ends, one that dies has failed, and the next one goes on behind its seed. */
#include "tests/structural/run.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "tests/frontend/onnx_text.h"
#include "tests/structural/draw.h"

enum { MOST_JOBS = 64, FAILED = 7 };

static const char *const operators[] = {
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) type,
#include "frontend/import/import_ops.def"
#undef IMPORT
};
enum { OPERATOR_COUNT = sizeof operators / sizeof operators[0] };

/* Of one worker; the parent reads it when the worker has ended. */
typedef struct {
    uint64_t seed; /* at work */
    bool at_work;
    graph_verdict verdict;
    /* a name of the program itself: the same in all processes, and known when one crashes */
    const char *where;
    char said[2048];
    int64_t graphs, nodes, open;
} slot;
typedef struct {
    slot slots[MOST_JOBS];
    int64_t drawn[OPERATOR_COUNT];
} shared_memory;
static shared_memory *shared;

const char *graph_operator(int index, int64_t *count)
{
    if (index >= OPERATOR_COUNT)
        return NULL;
    *count = shared != NULL ? shared->drawn[index] : 0;
    return operators[index];
}

static void count_operators(const char *text)
{
    for (const char *at = text; (at = strstr(at, "node ")) != NULL; at += 5) {
        size_t size = strcspn(at + 5, " ");
        for (int i = 0; i < OPERATOR_COUNT; i++)
            if (strlen(operators[i]) == size && memcmp(operators[i], at + 5, size) == 0) {
                __atomic_add_fetch(&shared->drawn[i], 1, __ATOMIC_RELAXED);
                break;
            }
    }
}

void graph_make(tl_arena *arena, uint64_t seed, const char *family, tl_text *file,
                const char **text, graph_check *check)
{
    draw_result_graph g;
    draw_graph(arena, seed, family, &g);
    *text = g.text;
    *file = text_model(g.text);
    check->extents[0] = g.open_extent;
    check->extents[1] = g.other_extent;
    check->extents[2] = g.third_extent;
    check->seed = seed;
}

static bool check_seed(const graph_run *run, graph_check *check, slot *s)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text file;
    const char *text;
    tl_diag diag = { 0 };
    if (arena == NULL || TL_ARENA_GUARD(arena))
        abort();
    graph_make(arena, s->seed, run->family, &file, &text, check);
    count_operators(text);
    s->verdict = graph_check_model(check, &file, &s->where, &diag);
    snprintf(s->said, sizeof s->said, "%s", diag.text);
    for (const char *at = text; (at = strstr(at, "node ")) != NULL; at++)
        s->nodes++;
    s->open +=
        strstr(text, " n;") != NULL || strstr(text, " n,") != NULL || strstr(text, ",n") != NULL;
    tl_text_free(&file);
    tl_arena_destroy(arena);
    return s->verdict == GRAPH_GOOD;
}

static _Noreturn void work(const graph_run *run, slot *s, uint64_t seed)
{
    graph_check check = { .ways = run->ways };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
    for (; seed < run->first + (uint64_t)run->count; seed += (uint64_t)run->jobs) {
        s->seed = seed;
        s->where = "drawing";
        s->at_work = true;
        alarm((unsigned)run->limit_s);
        bool good = check_seed(run, &check, s);
        s->graphs++;
        if (!good)
            _exit(FAILED);
        s->at_work = false;
    }
    _exit(0);
}

static pid_t start(const graph_run *run, int job, uint64_t seed)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        work(run, &shared->slots[job], seed);
    return pid;
}

/* ---- failures ---- */

static void write_text(const char *path, const char *text, size_t size)
{
    tl_diag diag = { 0 };
    if (tl_file_write(path, text, size, &diag) != TL_OK)
        fprintf(stderr, "%s\n", diag.text);
}

/* The model, its text, and what to do with them; then the smallest model that fails the same way. */
static void write_failure(const graph_run *run, const slot *s)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text file, note = { 0 };
    const char *text;
    graph_check check = { 0 };
    char folder[512], path[600];
    if (arena == NULL || TL_ARENA_GUARD(arena))
        return;
    graph_make(arena, s->seed, run->family, &file, &text, &check);
    mkdir("build", 0777);
    mkdir(run->folder, 0777);
    snprintf(folder, sizeof folder, "%s/graph_%llu", run->folder, (unsigned long long)s->seed);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    write_text(path, file.data, file.size);
    snprintf(path, sizeof path, "%s/model.txt", folder);
    write_text(path, text, strlen(text));
    tl_text_format(&note, "seed %llu: %s, %s: %s\n", (unsigned long long)s->seed,
                   graph_verdicts[s->verdict], s->where, s->said);
    if (run->program != NULL)
        tl_text_format(&note, "again: %s --seed %llu --count 1%s%s\n", run->program,
                       (unsigned long long)s->seed, run->family != NULL ? " --family " : "",
                       run->family != NULL ? run->family : "");
    printf("%s", tl_text_get(&note));
    snprintf(path, sizeof path, "%s/what.txt", folder);
    write_text(path, tl_text_get(&note), note.size);
    const char *tilth = getenv("TILTH");
    if (run->program != NULL && tilth != NULL) {
        const char *command = tl_arena_format(
            arena,
            "%s reduce %s/model.onnx -o %s/reduced.onnx --time-limit 30 --seconds 60 --check '%s "
            "--is %s %s --extents %lld,%lld,%lld --model' >%s/reduce.txt 2>&1",
            tilth, folder, folder, run->program, graph_verdicts[s->verdict], s->where,
            (long long)check.extents[0], (long long)check.extents[1], (long long)check.extents[2],
            folder);
        if (system(command) == 0)
            printf("reduced: %s/reduced.onnx\n", folder);
    }
    fflush(stdout);
    tl_text_free(&note);
    tl_text_free(&file);
    tl_arena_destroy(arena);
}

static void take_end(const graph_run *run, slot *s, int status, graph_totals *totals)
{
    if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        s->verdict = GRAPH_CRASHED;
        s->graphs++;
        if (sig == SIGALRM)
            snprintf(s->said, sizeof s->said, "it takes longer than %g s", run->limit_s);
        else
            snprintf(s->said, sizeof s->said, "signal %d (%s)", sig, strsignal(sig));
    } else if (WEXITSTATUS(status) != FAILED) {
        s->verdict = GRAPH_CRASHED;
        snprintf(s->said, sizeof s->said, "the process ended with %d", WEXITSTATUS(status));
    }
    totals->verdicts[s->verdict]++;
    write_failure(run, s);
}

static void wake(int number)
{
    (void)number;
}

static void tell(const graph_run *run, int64_t failures)
{
    int64_t graphs = 0;
    for (int j = 0; j < run->jobs; j++)
        graphs += shared->slots[j].graphs;
    fprintf(stderr, "%lld of %lld graphs, %lld failures\n", (long long)graphs,
            (long long)run->count, (long long)failures);
}

int64_t graph_run_all(const graph_run *given, graph_totals *out)
{
    graph_run r = *given;
    pid_t pids[MOST_JOBS] = { 0 };
    int64_t start_ns = tl_clock_ns(), failures = 0;
    r.jobs = r.jobs < 1 ? 1 : r.jobs > MOST_JOBS ? MOST_JOBS : r.jobs;
    *out = (graph_totals){ 0 };
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    if (r.tells) { /* every half a minute the wait below is interrupted */
        sigaction(SIGALRM, &(struct sigaction){ .sa_handler = wake }, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){ { 30, 0 }, { 30, 0 } }, NULL);
    }
    int running = 0;
    for (int j = 0; j < r.jobs; j++, running++)
        pids[j] = start(&r, j, r.first + (uint64_t)j);
    while (running > 0) {
        int status, j = 0;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) {
            tell(&r, failures);
            continue;
        }
        if (pid < 0)
            break;
        while (j < r.jobs && pids[j] != pid)
            j++;
        if (j == r.jobs)
            continue;
        slot *s = &shared->slots[j];
        bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!ended) {
            take_end(&r, s, status, out);
            failures++;
        }
        uint64_t next = s->seed + (uint64_t)r.jobs;
        bool enough = r.most > 0 && failures >= r.most;
        if (!ended && !enough && next < r.first + (uint64_t)r.count)
            pids[j] = start(&r, j, next);
        else
            running--;
    }
    for (int j = 0; j < r.jobs; j++) {
        out->graphs += shared->slots[j].graphs;
        out->nodes += shared->slots[j].nodes;
        out->open += shared->slots[j].open;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    out->verdicts[GRAPH_GOOD] = out->graphs - failures;
    out->seconds = (double)(tl_clock_ns() - start_ns) * 1e-9;
    return failures;
}
