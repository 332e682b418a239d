/* threads.c: two models on one pool, called from several threads at once.
 *
 *     cc threads.c -o threads $(pkg-config --cflags --libs libtilth) -lpthread
 *     ./threads a.onnx b.onnx [callers]
 *
 * The pool belongs to nobody in particular: both models use it. Every caller has runners of its
 * own; a model is shared. Half of the callers run on their own thread only, and all of those at
 * the same time; the others use the whole pool, and take turns. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilth.h>

enum { MAX_CALLERS = 64, RUNS = 4, MODELS = 2 };

typedef struct {
    tilth_model *const *models;
    int threads; /* of a run: 0: the whole pool */
    int done;    /* runs that were right */
    tilth_error error;
} caller;

/* Runs a model RUNS times on zeros; every run must give the same bytes. 0 when one fails. */
static int call_model(caller *self, tilth_model *model)
{
    tilth_runner *runner = NULL;
    tilth_tensor_info info;
    void *first = NULL, *again = NULL, *zeros = NULL;
    int runs = 0;

    if (tilth_runner_create(model, self->threads, &runner, &self->error) != TILTH_OK)
        return 0;
    for (int i = 0; i < tilth_model_input_count(model); i++) {
        if (tilth_model_input(model, i, &info, &self->error) != TILTH_OK ||
            (zeros = calloc(1, info.size)) == NULL ||
            tilth_runner_write_input(runner, i, zeros, info.size, &self->error) != TILTH_OK)
            goto done;
        free(zeros);
        zeros = NULL;
    }
    if (tilth_model_output(model, 0, &info, &self->error) != TILTH_OK ||
        (first = malloc(info.size)) == NULL || (again = malloc(info.size)) == NULL)
        goto done;
    for (runs = 0; runs < RUNS; runs++) {
        void *to = runs == 0 ? first : again;
        if (tilth_runner_run(runner, &self->error) != TILTH_OK ||
            tilth_runner_read_output(runner, 0, to, info.size, &self->error) != TILTH_OK)
            break;
        if (memcmp(first, to, info.size) != 0) {
            snprintf(self->error.text, sizeof self->error.text, "two runs differ");
            break;
        }
        self->done++;
    }
done:
    tilth_runner_destroy(runner);
    free(first);
    free(again);
    free(zeros);
    return runs == RUNS;
}

static void *call_all(void *argument)
{
    caller *self = argument;
    for (int m = 0; m < MODELS; m++)
        if (!call_model(self, self->models[m]))
            break;
    return NULL;
}

int main(int argc, char **argv)
{
    tilth_pool_options size = { .struct_size = sizeof size, .threads = 2 };
    tilth_load_options options = { .struct_size = sizeof options };
    tilth_model *models[MODELS] = { NULL };
    tilth_pool *pool = NULL;
    tilth_error error = { "" };
    pthread_t threads[MAX_CALLERS];
    caller callers[MAX_CALLERS];
    int done = 0, count = argc > 3 ? atoi(argv[3]) : 4;

    if (argc < 3 || count < 1 || count > MAX_CALLERS) {
        fprintf(stderr, "usage: threads A.onnx B.onnx [CALLERS]\n");
        return 2;
    }
    int ok = tilth_pool_create(&size, &pool, &error) == TILTH_OK;
    options.pool = pool;
    for (int m = 0; ok && m < MODELS; m++)
        ok = tilth_model_load(argv[1 + m], &options, &models[m], &error) == TILTH_OK;
    if (!ok)
        fprintf(stderr, "threads: %s\n", error.text);

    int started = 0;
    for (int i = 0; ok && i < count; i++, started++) {
        memset(&callers[i], 0, sizeof callers[i]);
        callers[i].models = models;
        callers[i].threads = i % 2 == 0 ? 1 : 0;
        if (pthread_create(&threads[i], NULL, call_all, &callers[i]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        done += callers[i].done;
        if (callers[i].error.text[0] != '\0')
            fprintf(stderr, "threads: caller %d: %s\n", i, callers[i].error.text);
    }
    printf("%d callers, %d of %d runs\n", started, done, count * MODELS * RUNS);
    for (int m = 0; m < MODELS; m++)
        tilth_model_destroy(models[m]);
    tilth_pool_destroy(pool);
    return done == count * MODELS * RUNS ? 0 : 1;
}
