/* tests/bench/scaling.c: time and memory to compile models of tests/support/long_models.h, against their length: each ten
 * times as long as the one before should take ten times as long. Usage: scaling [LONGEST [NAME...]]
 *
 * Each model is compiled in a process of its own, which is given a minute and 8 GB. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "driver/pipeline/model.h"
#include "runtime/base/clock.h"
#include "tests/bench/program.h"
#include "tests/support/long_models.h"

enum { SECONDS = 60, SHORTEST = 100 };

static void compile(const tl_text *file)
{
    tl_diag diag = { 0 };
    tl_pool *pool;
    tl_model *model;
    bench_must(tl_pool_create(&(tl_pool_options){ 0 }, &pool, &diag), &diag);
    const tl_model_options options = { .pool = pool, .no_cache = true, .no_database = true };
    bench_must(tl_model_load_memory(file->data, file->size, NULL, &options, &model, &diag), &diag);
    _exit(0);
}

/* Prints the seconds and the largest size of the process; whether it ended well. */
static bool measure(const char *name, int length)
{
    tl_text file = long_model(name, length);
    int64_t start = tl_clock_ns();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_AS, &(struct rlimit){ (rlim_t)8 << 30, (rlim_t)8 << 30 });
        alarm(SECONDS);
        compile(&file);
    }
    int status = -1;
    struct rusage usage = { 0 };
    wait4(child, &status, 0, &usage);
    double seconds = (double)(tl_clock_ns() - start) * 1e-9;
    tl_text_free(&file);
    if (WIFSIGNALED(status))
        printf(WTERMSIG(status) == SIGALRM ? "     over a minute" : "           crashed");
    else if (WEXITSTATUS(status) != 0)
        printf("            failed");
    else
        printf(" %7.2f s %5ld MB", seconds, usage.ru_maxrss / 1024);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 2;
}

int main(int argc, char **argv)
{
    int longest = argc > 1 ? atoi(argv[1]) : 10000;
    bool good = true;
    printf("%-16s", "model");
    for (int length = SHORTEST; length <= longest; length *= 10)
        printf(" %18d", length);
    printf("\n");
    for (int i = 0; long_model_name(i) != NULL; i++) {
        const char *name = long_model_name(i);
        if (!is_wanted(name, argc, argv))
            continue;
        printf("%-16s", name);
        bool fine = true;
        for (int length = SHORTEST; fine && length <= longest; length *= 10)
            fine = measure(name, length);
        printf("\n");
        good = good && fine;
    }
    return good ? 0 : 1;
}
