/* driver/verb_model.c: tilth model NAME: writes a network of the zoo. */
#include <stdio.h>
#include <sys/stat.h>
#include "driver/cli.h"
#include "models/zoo.h"

static const char *name_at(int index)
{
    return index < tl_zoo_count ? tl_zoo[index].name : NULL;
}

int tl_verb_model(int argc, char **argv)
{
    const char *output = NULL;
    int64_t seed = 1;
    bool list = false, external = false;
    const tl_option options[] = {
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "where to write it (NAME.onnx)", &output },
        { "--seed", NULL, TL_OPTION_INT, "S", "of the weights (1)", &seed },
        { "--external", NULL, TL_OPTION_FLAG, NULL, "put the weights in a file beside the model",
          &external },
        { "--list", NULL, TL_OPTION_FLAG, NULL, "list the networks", &list },
        { 0 },
    };
    const tl_verb_help help = {
        "model",
        "NAME",
        "Writes a network of the zoo as an .onnx file with seeded weights.",
        "The weights are random, of the size that keeps activations in bounds; the same seed gives "
        "the "
        "same file.",
        "  tilth model --list\n  tilth model resnet18 -o resnet18.onnx --seed 7",
        options,
        0,
        1,
        name_at,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;
    if (list) {
        for (int i = 0; i < tl_zoo_count; i++)
            printf("%-12s %s\n", tl_zoo[i].name, tl_zoo[i].description);
        return 0;
    }

    tl_diag diag = { 0 };
    char path[256];
    if (positional_count == 0) {
        tl_status status =
            tl_fail(&diag, TL_BAD_ARGUMENT, "a name is missing: tilth model --list shows them");
        return tl_report_failure("model", status, &diag);
    }
    if (output == NULL) {
        snprintf(path, sizeof path, "%s.onnx", positional[0]);
        output = path;
    }
    tl_status status = tl_zoo_write(positional[0], (uint64_t)seed, external, output, &diag);
    if (status != TL_OK)
        return tl_report_failure("model", status, &diag);
    struct stat info;
    printf("wrote %s, %s", output, positional[0]);
    if (stat(output, &info) == 0)
        printf(", %.1f MB", (double)info.st_size * 1e-6);
    printf("\n");
    return 0;
}
