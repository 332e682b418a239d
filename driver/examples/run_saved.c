/* run_saved.c: runs a compiled model with libtilth_rt alone: no compiler, no LLVM, ready in
 * milliseconds.
 *
 *     cc run_saved.c -o run_saved $(pkg-config --cflags --libs libtilth_rt)
 *     ./run_saved resnet50.tilth [runs]
 *
 * The folder is what save.c writes, or `tilth compile -o resnet50.tilth`; `tilth compile -o
 * resnet50.so` writes a library that will do as well. Inputs are zeros; prints the fastest run. */
#include <stdio.h>
#include <stdlib.h>
#include <tilth_rt.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    tilth_model *model = NULL;
    tilth_runner *runner = NULL;
    tilth_tensor_info info;
    tilth_error error = { "" };
    double best = 1e9, start = now();
    int result = 1, runs = argc > 2 ? atoi(argv[2]) : 10;

    if (argc < 2 || runs < 1) {
        fprintf(stderr, "usage: run_saved FOLDER|LIBRARY [RUNS]\n");
        return 2;
    }
    if (tilth_model_open(argv[1], NULL, &model, &error) != TILTH_OK ||
        tilth_runner_create(model, 0, &runner, &error) != TILTH_OK)
        goto done;
    printf("ready in %.1f ms, temporaries %.1f MB\n", (now() - start) * 1e3,
           (double)tilth_runner_memory(runner) / 1e6);
    for (int i = 0; i < tilth_model_input_count(model); i++) {
        if (tilth_model_input(model, i, &info, &error) != TILTH_OK)
            goto done;
        void *zeros = calloc(1, info.size);
        tilth_status status = tilth_runner_write_input(runner, i, zeros, info.size, &error);
        free(zeros);
        if (status != TILTH_OK)
            goto done;
    }
    for (int i = 0; i < runs; i++) {
        start = now();
        if (tilth_runner_run(runner, &error) != TILTH_OK)
            goto done;
        best = now() - start < best ? now() - start : best;
    }
    printf("%d runs, the fastest %.3f ms\n", runs, best * 1e3);
    result = 0;
done:
    if (result != 0)
        fprintf(stderr, "run_saved: %s\n", error.text);
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
    return result;
}
