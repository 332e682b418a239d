/* save.c: compiles a model and saves the result, for programs that only run it (run_saved.c).
 *
 *     cc save.c -o save $(pkg-config --cflags --libs libtilth)
 *     ./save resnet50.onnx resnet50.tilth [x86-64-v3]
 *
 * The folder can be taken to any machine with the features of the target; without one, it is made
 * for this machine. Shows progress, too. */
#include <stdio.h>
#include <tilth.h>

static void show(void *user, const char *stage, int done, int total)
{
    (void)user;
    if (total > 0)
        fprintf(stderr, "%s: %d of %d\n", stage, done, total);
    else
        fprintf(stderr, "%s\n", stage);
}

int main(int argc, char **argv)
{
    tilth_load_options options = { .struct_size = sizeof options, .progress = show };
    tilth_model *model = NULL;
    tilth_model_facts facts;
    tilth_error error = { "" };
    int result = 1;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: save MODEL.onnx FOLDER [TARGET]\n");
        return 2;
    }
    options.target = argc == 4 ? argv[3] : NULL;
    if (tilth_model_load(argv[1], &options, &model, &error) == TILTH_OK &&
        tilth_model_save(model, argv[2], &error) == TILTH_OK &&
        tilth_model_get_facts(model, &facts, &error) == TILTH_OK) {
        printf("%s: %d kernels, %.1f MB of weights, %.0f KB of code\n", argv[2], facts.kernel_count,
               (double)facts.constant_bytes / 1e6, (double)facts.code_bytes / 1e3);
        result = 0;
    } else {
        fprintf(stderr, "save: %s\n", error.text);
    }
    tilth_model_destroy(model);
    return result;
}
