/* from_memory.c: loads a model whose bytes are in memory, and runs it on the caller's buffers.
 *
 *     cc from_memory.c -o from_memory $(pkg-config --cflags --libs libtilth)
 *     ./from_memory bert.onnx [threads]
 *
 * Bound buffers are read and written by the model itself: nothing is copied. Here every input is
 * filled with ones; the program prints the inputs and outputs, and the sum of each float output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilth.h>

enum { MAX_PORTS = 16 };

/* The whole file, to be freed by the caller; NULL when it cannot be read. */
static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long end;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0 && (bytes = malloc((size_t)end)) != NULL) {
        *size = fread(bytes, 1, (size_t)end, file);
        if (*size != (size_t)end) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}

static void print_port(const char *word, const tilth_tensor_info *info)
{
    printf("%s %s: %s[", word, info->name, tilth_dtype_text(info->dtype));
    for (int a = 0; a < info->rank; a++)
        printf("%s%lld", a > 0 ? ", " : "", (long long)info->shape[a]);
    printf("]\n");
}

static void fill_with_ones(const tilth_tensor_info *info, void *buffer)
{
    size_t count = info->size / tilth_dtype_size(info->dtype);
    for (size_t i = 0; i < count; i++)
        switch (info->dtype) {
        case TILTH_F32:
            ((float *)buffer)[i] = 1;
            break;
        case TILTH_I64:
            ((int64_t *)buffer)[i] = 1;
            break;
        default: /* others stay 0, as tilth_buffer_create made them */
            break;
        }
}

int main(int argc, char **argv)
{
    tilth_load_options options = { .struct_size = sizeof options };
    tilth_model *model = NULL;
    tilth_runner *runner = NULL;
    tilth_tensor_info info;
    tilth_error error = { "" };
    void *inputs[MAX_PORTS] = { NULL }, *outputs[MAX_PORTS] = { NULL };
    int result = 1;
    size_t size = 0;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: from_memory MODEL.onnx [THREADS]\n");
        return 2;
    }
    void *bytes = read_file(argv[1], &size);
    if (bytes == NULL) {
        fprintf(stderr, "from_memory: cannot read %s\n", argv[1]);
        return 1;
    }
    options.threads = argc == 3 ? atoi(argv[2]) : 0; /* 0: one a core */
    options.no_cache = 1;                            /* and leave no trace on disk */
    tilth_status status = tilth_model_load_memory(bytes, size, NULL, &options, &model, &error);
    free(bytes); /* no longer needed */
    if (status != TILTH_OK || tilth_runner_create(model, 0, &runner, &error) != TILTH_OK)
        goto done;

    int input_count = tilth_model_input_count(model),
        output_count = tilth_model_output_count(model);
    if (input_count > MAX_PORTS || output_count > MAX_PORTS)
        goto done;
    for (int i = 0; i < input_count; i++) {
        if (tilth_model_input(model, i, &info, &error) != TILTH_OK)
            goto done;
        print_port("input", &info);
        inputs[i] = tilth_buffer_create(info.size); /* or any memory aligned to TILTH_ALIGNMENT */
        if (inputs[i] == NULL)
            goto done;
        fill_with_ones(&info, inputs[i]);
        if (tilth_runner_bind_input(runner, i, inputs[i], info.size, &error) != TILTH_OK)
            goto done;
    }
    for (int i = 0; i < output_count; i++) {
        if (tilth_model_output(model, i, &info, &error) != TILTH_OK)
            goto done;
        outputs[i] = tilth_buffer_create(info.size);
        if (outputs[i] == NULL ||
            tilth_runner_bind_output(runner, i, outputs[i], info.size, &error) != TILTH_OK)
            goto done;
    }

    if (tilth_runner_run(runner, &error) != TILTH_OK)
        goto done;
    for (int i = 0; i < output_count; i++) {
        double sum = 0;
        if (tilth_model_output(model, i, &info, &error) != TILTH_OK)
            goto done;
        print_port("output", &info);
        for (size_t e = 0; info.dtype == TILTH_F32 && e < info.size / sizeof(float); e++)
            sum += ((float *)outputs[i])[e];
        printf("  sum %g\n", sum);
    }
    result = 0;
done:
    if (result != 0)
        fprintf(stderr, "from_memory: %s\n", error.text[0] ? error.text : "out of memory");
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
    for (int i = 0; i < MAX_PORTS; i++) {
        tilth_buffer_destroy(inputs[i]);
        tilth_buffer_destroy(outputs[i]);
    }
    return result;
}
