/* tests/bench/policy_jobs.c: the runs of a study. Evolution thinks longer than its candidates take: in several processes, one
 * measures while the others think, on the other cores. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/bench/policy_study.h"

/* What `--policies auto:100,auto+model:40,evolution` says of an arm; 0: it is not wanted. */
static int trials_of(const study_options *o, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = o->policies; at != NULL; at = *at != '\0' ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        if (strncmp(at, name, size) == 0 && (length == size || at[size] == ':'))
            return length == size ? (int)o->trials : atoi(at + size + 1);
        at += length;
    }
    return 0;
}

static void list_arms(study *s)
{
    const study_options *o = &s->options;
    s->arms = TL_NEW_ARRAY(s->arena, study_arm, 2 * tl_policy_count);
    for (int p = 0; p < tl_policy_count; p++)
        for (int with = 0; with < 2; with++) {
            const char *name =
                tl_arena_format(s->arena, "%s%s", tl_policies[p]->name, with > 0 ? "+model" : "");
            int trials = o->policies != NULL ? trials_of(o, name) : with == 0 ? (int)o->trials : 0;
            if (trials > 0)
                s->arms[s->arm_count++] = (study_arm){ name, tl_policies[p], with > 0, trials };
        }
}

static void list_runs(study *s)
{
    const study_options *o = &s->options;
    list_arms(s);
    s->runs = TL_NEW_ARRAY(s->arena, study_run, s->subject_count * s->arm_count * o->seeds);
    for (int i = 0; i < s->subject_count; i++)
        for (int a = 0; a < s->arm_count; a++)
            for (int64_t k = 0; k < o->seeds; k++)
                s->runs[s->run_count++] = (study_run){ .subject = &s->subjects[i],
                                                       .arm = &s->arms[a],
                                                       .seed = (int)(o->seed + k),
                                                       .wanted = s->arms[a].trials };
}

static void run(study *s, study_run *r)
{
    study_run_policy(s, r);
    fprintf(stderr, "%-36s %-10s seed %d: %4d trials, %4d measured in %.1f s\n", r->subject->name,
            r->arm->name, r->seed, r->count, r->measured, r->wall_ns * 1e-9);
}

/* What a process says of a run; the trials are in the database. */
typedef struct {
    int index, measured;
    double think_ns, wall_ns;
} news;

/* Runs whatever nobody has begun. */
static void work(study *s, int *next, int out)
{
    study_open_records(s);
    for (int i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < s->run_count;) {
        study_run *r = &s->runs[i];
        if (study_is_late(s))
            break;
        run(s, r);
        news n = { i, r->measured, r->think_ns, r->wall_ns };
        if (write(out, &n, sizeof n) != sizeof n)
            break;
    }
    tl_records_close(s->records, NULL);
    _exit(0);
}

static void run_in_processes(study *s)
{
    int pipes[2], failed = 0;
    int *next = mmap(NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (next == MAP_FAILED || pipe(pipes) != 0) {
        fprintf(stderr, "policy_study: %s\n", strerror(errno));
        exit(1);
    }
    tl_records_close(s->records, NULL); /* a connection does not outlive a fork */
    for (int64_t i = 0; i < s->options.jobs; i++) {
        pid_t child = fork();
        failed += child < 0;
        if (child == 0)
            work(s, next, pipes[1]);
    }
    close(pipes[1]);
    news n;
    while (read(pipes[0], &n, sizeof n) == sizeof n) {
        study_run *r = &s->runs[n.index];
        r->measured = n.measured;
        r->think_ns = n.think_ns;
        r->wall_ns = n.wall_ns;
    }
    for (int status; wait(&status) > 0;)
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    close(pipes[0]);
    munmap(next, sizeof *next);
    study_open_records(s);
    if (failed > 0) {
        fprintf(stderr, "policy_study: %d processes failed\n", failed);
        exit(1);
    }
    for (int i = 0; i < s->run_count; i++) {
        s->runs[i].trials = TL_NEW_ARRAY(s->arena, study_trial, s->runs[i].wanted);
        study_recall(s, &s->runs[i]);
    }
}

void study_run_all(study *s)
{
    list_runs(s);
    if (s->options.jobs > 1 && !s->options.offline) {
        run_in_processes(s);
        return;
    }
    for (int i = 0; i < s->run_count && !study_is_late(s); i++)
        run(s, &s->runs[i]);
}
