/* classify.c: loads an image classifier and prints the five classes it finds likeliest.
 *
 *     cc classify.c -o classify $(pkg-config --cflags --libs libtilth)
 *     ./classify resnet50.onnx [image.f32]
 *
 * The image is the input tensor as raw 32-bit floats (for a ResNet 3x224x224 of them, normalised
 * as the network wants it); without one, a gray gradient stands in. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tilth.h>

enum { TOP = 5 };

/* Fills the image from a file of exactly its size; 0 when that fails. */
static int read_image(const char *path, float *image, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    int ok = fread(image, 1, size, file) == size && fgetc(file) == EOF;
    fclose(file);
    return ok;
}

static void print_top(float *scores, size_t count)
{
    double sum = 0;
    float max = scores[0];
    for (size_t i = 1; i < count; i++)
        max = scores[i] > max ? scores[i] : max;
    for (size_t i = 0; i < count; i++)
        sum += exp(scores[i] - max);
    for (int n = 0; n < TOP && (size_t)n < count; n++) {
        size_t best = 0;
        for (size_t i = 1; i < count; i++)
            if (scores[i] > scores[best])
                best = i;
        printf("class %4zu  %5.1f %%\n", best, 100 * exp(scores[best] - max) / sum);
        scores[best] = -INFINITY;
    }
}

int main(int argc, char **argv)
{
    tilth_model *model = NULL;
    tilth_runner *runner = NULL;
    tilth_tensor_info input, output;
    tilth_error error = { "" };
    float *image = NULL, *scores = NULL;
    int result = 1;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: classify MODEL.onnx [IMAGE.f32]\n");
        return 2;
    }
    /* The first load compiles; later ones find the result in the cache. */
    if (tilth_model_load(argv[1], NULL, &model, &error) != TILTH_OK ||
        tilth_model_input(model, 0, &input, &error) != TILTH_OK ||
        tilth_model_output(model, 0, &output, &error) != TILTH_OK)
        goto done;
    if (tilth_model_input_count(model) != 1 || input.dtype != TILTH_F32 ||
        output.dtype != TILTH_F32) {
        snprintf(error.text, sizeof error.text, "%s does not map one image to scores", argv[1]);
        goto done;
    }
    image = malloc(input.size);
    scores = malloc(output.size);
    if (image == NULL || scores == NULL)
        goto done;
    for (size_t i = 0; i < input.size / sizeof *image; i++)
        image[i] = (float)i / (float)(input.size / sizeof *image) - 0.5f;
    if (argc == 3 && !read_image(argv[2], image, input.size)) {
        snprintf(error.text, sizeof error.text, "%s does not hold the %zu bytes of %s", argv[2],
                 input.size, input.name);
        goto done;
    }

    if (tilth_runner_create(model, 0, &runner, &error) != TILTH_OK ||
        tilth_runner_write_input(runner, 0, image, input.size, &error) != TILTH_OK ||
        tilth_runner_run(runner, &error) != TILTH_OK ||
        tilth_runner_read_output(runner, 0, scores, output.size, &error) != TILTH_OK)
        goto done;
    print_top(scores, output.size / sizeof *scores);
    result = 0;
done:
    if (result != 0)
        fprintf(stderr, "classify: %s\n", error.text[0] ? error.text : "out of memory");
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
    free(image);
    free(scores);
    return result;
}
