/* driver/verb/verb_model.c: tilth model NAME: writes a network of the zoo. */
#include <stdio.h>
#include <sys/stat.h>
#include "driver/verb/verbs.h"
#include "driver/cli/shape_option.h"
#include "models/zoo.h"

static const char *name_at(int index)
{
    return index < tl_zoo_count ? tl_zoo[index].name : NULL;
}

static void print_model(const tl_zoo_model *m)
{
    printf("%-16s %s", m->name, m->description);
    switch (m->input) {
    case TL_ZOO_IMAGE:
        printf("; images of %lldx%lld", (long long)m->size, (long long)m->size);
        break;
    case TL_ZOO_TOKENS:
        printf("; %lld tokens", (long long)m->size);
        break;
    case TL_ZOO_SEQUENCE:
        printf("; %lld steps", (long long)m->size);
        break;
    }
    if (m->multiple > 1)
        printf(" (multiples of %lld to %lld)\n", (long long)m->multiple, (long long)m->most);
    else
        printf(" (%lld to %lld)\n", (long long)m->least, (long long)m->most);
}

static tl_status write_model(const char *name, const tl_text_list *list, uint64_t seed,
                             bool external, const char *path, tl_diag *diag)
{
    const tl_shape_override *shapes;
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_status status = tl_shape_options_parse(arena, list, &shapes, diag);
    if (status == TL_OK)
        status = tl_zoo_write(name, shapes, list->count, seed, external, path, diag);
    tl_arena_destroy(arena);
    return status;
}

int tl_verb_model(int argc, char **argv)
{
    const char *output = NULL;
    int64_t seed = 1;
    bool list = false, external = false;
    tl_text_list shapes = { 0 };
    const tl_option options[] = {
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "where to write it (NAME.onnx)", &output },
        { "--seed", NULL, TL_OPTION_INT, "S", "of the weights (1)", &seed },
        { "--shape", NULL, TL_OPTION_LIST, "IN=D,D,..",
          "gives an input a batch, image size or length", &shapes },
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
        "the same file. Inputs have batch 1 and the size that --list shows; --shape gives another.",
        "  tilth model --list\n  tilth model resnet18 -o resnet18.onnx --seed 7\n"
        "  tilth model unet --shape input=4,3,128,192",
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
            print_model(&tl_zoo[i]);
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
    tl_status status = write_model(positional[0], &shapes, (uint64_t)seed, external, output, &diag);
    if (status != TL_OK)
        return tl_report_failure("model", status, &diag);
    struct stat info;
    if (tl_is_stdout(output))
        return 0;
    printf("wrote %s, %s", output, positional[0]);
    if (stat(output, &info) == 0)
        printf(", %.1f MB", (double)info.st_size * 1e-6);
    printf("\n");
    return 0;
}
