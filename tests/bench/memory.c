/* tests/bench/memory.c: the most that `tilth run` has resident, beside what it may. Usage: memory MODEL.onnx...
 *
 * Each model runs twice in a process of its own, with a cache that is empty before: cold, then from what the first run left
 * there. Inputs are those in the model's folder, as far as there are any. Sizes are in MB of 10^6 bytes; the bars are
 *
 *     cached    1.15 * (packed + plan) + 40      packed: weights as kernels read them; plan: temporaries
 *     cold      100 more
 *
 * "as they are": weights that no kernel packs, in constants.bin or the model's own files. They are mapped, and in neither bar. */
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/text.h"
#include "tests/bench/program.h"

typedef struct {
    bool good;
    double packed, plan, plain, peak; /* MB */
} footprint;

static double get_mb(const json_t *record, const char *key)
{
    return (double)json_integer_value(json_object_get(record, key)) * 1e-6;
}

/* The record "memory" among the lines that the run printed. */
static void read_record(FILE *lines, footprint *out)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, lines) >= 0) {
        json_t *record = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(record, "record"));
        if (kind != NULL && strcmp(kind, "memory") == 0) {
            out->packed = get_mb(record, "prepared_bytes");
            out->plan = get_mb(record, "plan_bytes");
            out->plain = get_mb(record, "constant_bytes") + get_mb(record, "external_bytes");
            out->good = true;
        }
        json_decref(record);
    }
    free(line);
}

static bool has_inputs(const char *folder)
{
    tl_text command = { 0 };
    tl_text_format(&command, "ls '%s'/input_*.npy >/dev/null 2>&1", folder);
    bool found = system(tl_text_get(&command)) == 0;
    tl_text_free(&command);
    return found;
}

static footprint run(const char *model, const char *folder, const char *cache)
{
    footprint out = { 0 };
    int ends[2], status = -1;
    struct rusage usage = { 0 };
    const char *data = has_inputs(folder) ? "--data" : NULL; /* the list of arguments ends there */
    if (pipe(ends) != 0)
        exit(1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(bench_tilth(), "tilth", "run", "--json", "--no-db", "--cache", cache, model, data,
              folder, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    read_record(lines, &out);
    fclose(lines);
    wait4(child, &status, 0, &usage);
    out.good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    out.peak = (double)usage.ru_maxrss * 1024e-6;
    return out;
}

static void remove_folder(const char *folder)
{
    tl_text command = { 0 };
    tl_text_format(&command, "rm -rf '%s'", folder);
    if (system(tl_text_get(&command)) != 0)
        fprintf(stderr, "memory: %s stays\n", folder);
    tl_text_free(&command);
}

/* The folder that the model is in, for short. */
static const char *name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL ? slash + 1 : folder;
}

static bool measure(const char *model)
{
    char cache[] = "/tmp/tilth-memory-XXXXXX", *copy = strdup(model);
    if (copy == NULL || mkdtemp(cache) == NULL)
        exit(1);
    const char *folder = dirname(copy);
    footprint cold = run(model, folder, cache), cached = run(model, folder, cache);
    remove_folder(cache);
    double bar = 1.15 * (cached.packed + cached.plan) + 40;
    bool good = cold.good && cached.good && cold.peak <= bar + 100 && cached.peak <= bar;
    printf("%-20s %8.1f %7.1f %10.1f %8.1f %8.1f %6s %8.1f %8.1f %6s\n", name_of(folder),
           cached.packed, cached.plan, cached.plain, cached.peak, bar,
           !cached.good         ? "failed"
           : cached.peak <= bar ? "pass"
                                : "OVER",
           cold.peak, bar + 100,
           !cold.good               ? "failed"
           : cold.peak <= bar + 100 ? "pass"
                                    : "OVER");
    free(copy);
    return good;
}

int main(int argc, char **argv)
{
    int good = 0;
    printf("%-20s %8s %7s %10s %8s %8s %6s %8s %8s %6s\n", "MB", "packed", "plan", "as they are",
           "cached", "bar", "", "cold", "bar", "");
    for (int i = 1; i < argc; i++)
        good += measure(argv[i]);
    printf("%d of %d networks keep to their bars\n", good, argc - 1);
    return good == argc - 1 ? 0 : 1;
}
