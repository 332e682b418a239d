/* tests/structural/graphs.c: random graphs: any number of them, one again, or a model that may still be bad (README.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/tensor/npy.h"
#include "tests/frontend/onnx_text.h"
#include "tests/structural/draw.h"
#include "tests/structural/run.h"

static const char usage[] =
    "usage: graphs [--seed S] [--count N] [--jobs N] [--family NAME] [--ways N] [--most N] "
    "[--folder DIR] [--operators]\n"
    "       graphs --print S                     the text of a seed's graph\n"
    "       graphs --write DIR [--seed S] [--count N]   models, inputs and what they give, for "
    "peers\n"
    "       graphs [--is VERDICT VARIANT] [--extents N,M,K] --model FILE   ends with 0 when the "
    "model is as bad as that\n";

static void print_operators(void)
{
    int64_t count;
    const char *name, *last = "";
    int never = 0, drawn = 0;
    for (int i = 0; (name = graph_operator(i, &count)) != NULL; i++) {
        if (strcmp(name, last) != 0)
            count > 0 ? drawn++ : never++;
        if (strcmp(name, last) != 0)
            printf("%8lld %s\n", (long long)count, name);
        last = name;
    }
    printf("%d operators drawn, %d never\n", drawn, never);
}

static int check_here(const char *path, const char *verdict, graph_check *check)
{
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    const char *where = "";
    if (tl_file_read(path, &file, &diag) != TL_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    if (strstr(path, ".txt") != NULL) {
        tl_text model = text_model(tl_text_get(&file));
        tl_text_free(&file);
        file = model;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        graph_verdict found = graph_check_model(check, &file, &where, &diag);
        if (found != GRAPH_GOOD)
            printf("%s, %s: %s\n", graph_verdicts[found], where, diag.text);
        fflush(stdout);
        _exit(10 + (int)found);
    }
    int status;
    waitpid(pid, &status, 0);
    graph_verdict got =
        WIFEXITED(status) ? (graph_verdict)(WEXITSTATUS(status) - 10) : GRAPH_CRASHED;
    tl_text_free(&file);
    if (verdict != NULL)
        return strcmp(verdict, graph_verdicts[got]) == 0 ? 0 : 1;
    printf("%s: %s\n", path, graph_verdicts[got]);
    return got == GRAPH_GOOD ? 0 : 1;
}

static int print_seed(uint64_t seed, const char *family)
{
    tl_arena *arena = tl_arena_create(0);
    draw_result_graph g;
    if (arena == NULL || TL_ARENA_GUARD(arena))
        return 4;
    draw_graph(arena, seed, family, &g);
    printf("%s# n = %lld, then %lld and %lld\n", g.text, (long long)g.open_extent,
           (long long)g.other_extent, (long long)g.third_extent);
    tl_arena_destroy(arena);
    return 0;
}

/* DIR/SEED: the model, its inputs, what the oracle makes of them, and a line an output: how far off others may be. */
static tl_status write_seed(tl_arena *arena, const char *folder, uint64_t seed, const char *family,
                            tl_diag *diag)
{
    graph_check check = { 0 };
    tl_text file, allowed = { 0 };
    const char *text;
    oracle o;
    const char *at = tl_arena_format(arena, "%s/%llu", folder, (unsigned long long)seed);
    graph_make(arena, seed, family, &file, &text, &check);
    mkdir(at, 0777);
    tl_status status = oracle_make(arena, &file, check.extents[0], &o, diag);
    if (status == TL_OK)
        status =
            tl_file_write(tl_arena_format(arena, "%s/model.onnx", at), file.data, file.size, diag);
    if (status == TL_OK)
        status =
            tl_file_write(tl_arena_format(arena, "%s/model.txt", at), text, strlen(text), diag);
    for (int i = 0; status == TL_OK && i < o.input_count; i++)
        status = tl_npy_write(tl_arena_format(arena, "%s/input_%d.npy", at, i), &o.inputs[i], diag);
    for (int i = 0; status == TL_OK && i < o.output_count; i++) {
        const oracle_output *y = &o.outputs[i];
        tl_tensor loose;
        status = tl_npy_write(tl_arena_format(arena, "%s/output_%d.npy", at, i), &y->value, diag);
        tl_text_format(&allowed, "%.17g\n", y->allowed);
        if (status != TL_OK || y->loose == NULL)
            continue;
        status = tl_tensor_borrow(TL_BOOL, y->value.rank, y->value.shape,
                                  (void *)(uintptr_t)y->loose, &loose, diag);
        if (status == TL_OK)
            status = tl_npy_write(tl_arena_format(arena, "%s/loose_%d.npy", at, i), &loose, diag);
    }
    if (status == TL_OK)
        status = tl_file_write(tl_arena_format(arena, "%s/allowed.txt", at), tl_text_get(&allowed),
                               allowed.size, diag);
    tl_text_free(&allowed);
    tl_text_free(&file);
    return status;
}

static tl_status write_guarded(tl_arena *arena, const char *folder, uint64_t seed,
                               const char *family, tl_diag *diag)
{
    if (arena == NULL || TL_ARENA_GUARD(arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return write_seed(arena, folder, seed, family, diag);
}

static int write_seeds(const char *folder, const graph_run *run)
{
    int failed = 0;
    mkdir(folder, 0777);
    for (int64_t i = 0; i < run->count; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        uint64_t seed = run->first + (uint64_t)i;
        if (write_guarded(arena, folder, seed, run->family, &diag) != TL_OK) {
            fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, diag.text);
            failed++;
        }
        tl_arena_destroy(arena);
    }
    return failed == 0 ? 0 : 1;
}

static const char *variant_named(const char *name)
{
    for (int i = 0; graph_variant(i) != NULL; i++)
        if (strcmp(graph_variant(i), name) == 0)
            return name;
    return NULL; /* of the oracle itself */
}

int main(int argc, char **argv)
{
    graph_run run = { .first = 1,
                      .count = 1000,
                      .jobs = 1,
                      .limit_s = 600,
                      .folder = "build/failures",
                      .ways = 2,
                      .program = argv[0],
                      .tells = true };
    graph_check check = { .extents = { 3, 5, 12 }, .ways = 100 };
    const char *verdict = NULL, *written = NULL;
    bool tells_operators = false;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--operators") == 0) {
            tells_operators = true;
            continue;
        }
        if (value == NULL) {
            fputs(usage, stderr);
            return 2;
        }
        i++;
        if (strcmp(option, "--seed") == 0)
            run.first = strtoull(value, NULL, 10);
        else if (strcmp(option, "--count") == 0)
            run.count = strtoll(value, NULL, 10);
        else if (strcmp(option, "--jobs") == 0)
            run.jobs = atoi(value);
        else if (strcmp(option, "--ways") == 0)
            run.ways = atoi(value);
        else if (strcmp(option, "--most") == 0)
            run.most = strtoll(value, NULL, 10);
        else if (strcmp(option, "--family") == 0)
            run.family = value;
        else if (strcmp(option, "--folder") == 0)
            run.folder = value;
        else if (strcmp(option, "--write") == 0)
            written = value;
        else if (strcmp(option, "--print") == 0)
            return print_seed(strtoull(value, NULL, 10), run.family);
        else if (strcmp(option, "--is") == 0 && i + 1 < argc) {
            verdict = value;
            check.variant = variant_named(argv[++i]);
        } else if (strcmp(option, "--extents") == 0)
            sscanf(value, "%ld,%ld,%ld", &check.extents[0], &check.extents[1], &check.extents[2]);
        else if (strcmp(option, "--model") == 0)
            return check_here(value, verdict, &check);
        else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (written != NULL)
        return write_seeds(written, &run);
    graph_totals totals;
    int64_t failures = graph_run_all(&run, &totals);
    if (tells_operators)
        print_operators();
    printf("%lld graphs, %lld nodes, %lld with open axes, %.0f s: %lld good, %lld wrong, %lld "
           "refused, %lld crashed\n",
           (long long)totals.graphs, (long long)totals.nodes, (long long)totals.open,
           totals.seconds, (long long)totals.verdicts[GRAPH_GOOD],
           (long long)totals.verdicts[GRAPH_WRONG], (long long)totals.verdicts[GRAPH_REFUSED],
           (long long)totals.verdicts[GRAPH_CRASHED]);
    return failures == 0 ? 0 : 1;
}
