/* linked.c: a program with a compiled model in it: no files to find, no compiler, no LLVM.
 *
 *     tilth compile resnet50.onnx -o model.o
 *     cc linked.c model.o -o linked $(pkg-config --cflags --libs libtilth_rt)
 *     ./linked image.raw
 *
 * model.h, which lies beside model.o, declares model_model and lists what goes in and out. Takes a
 * file of raw bytes for every input, and writes every output as output_NUMBER.raw. */
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

static int read_input(tilth_runner *runner, int index, size_t size, const char *path,
                      tilth_error *error)
{
    char *bytes = malloc(size);
    FILE *file = fopen(path, "rb");
    int good = bytes != NULL && file != NULL && fread(bytes, 1, size, file) == size;

    if (!good)
        snprintf(error->text, sizeof error->text, "%s does not hold the %zu bytes of input %d",
                 path, size, index);
    else
        good = tilth_runner_write_input(runner, index, bytes, size, error) == TILTH_OK;
    if (file != NULL)
        fclose(file);
    free(bytes);
    return good;
}

static int write_output(tilth_runner *runner, int index, size_t size, tilth_error *error)
{
    char path[32], *bytes = malloc(size);
    int good =
        bytes != NULL && tilth_runner_read_output(runner, index, bytes, size, error) == TILTH_OK;

    snprintf(path, sizeof path, "output_%d.raw", index);
    FILE *file = good ? fopen(path, "wb") : NULL;
    good = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        good = 0;
    if (good)
        printf("wrote %s, %zu bytes\n", path, size);
    free(bytes);
    return good;
}

int main(int argc, char **argv)
{
    tilth_model *model = NULL;
    tilth_runner *runner = NULL;
    tilth_tensor_info info;
    tilth_error error = { "cannot write the outputs" };
    int good = tilth_model_open_linked(&model_model, NULL, &model, &error) == TILTH_OK &&
               tilth_runner_create(model, 0, &runner, &error) == TILTH_OK;

    if (good && argc - 1 != tilth_model_input_count(model)) {
        fprintf(stderr, "usage: linked, and a file for each of %d inputs\n",
                tilth_model_input_count(model));
        tilth_runner_destroy(runner);
        tilth_model_destroy(model);
        return 2;
    }
    for (int i = 0; good && i < argc - 1; i++)
        good = tilth_model_input(model, i, &info, &error) == TILTH_OK &&
               read_input(runner, i, info.size, argv[i + 1], &error);
    good = good && tilth_runner_run(runner, &error) == TILTH_OK;
    for (int i = 0; good && i < tilth_model_output_count(model); i++)
        good = tilth_model_output(model, i, &info, &error) == TILTH_OK &&
               write_output(runner, i, info.size, &error);
    if (!good)
        fprintf(stderr, "linked: %s\n", error.text);
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
    return good ? 0 : 1;
}
