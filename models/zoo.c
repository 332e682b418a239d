/* models/zoo.c: the table of models. */
#include "models/zoo.h"
#include <stdio.h>
#include <string.h>
#include "models/builders.h"

const tl_zoo_model tl_zoo[] = {
#define ZOO(name, builder, description) { name, tl_zoo_##builder, description },
#include "models/zoo.def"
#undef ZOO
};
const int tl_zoo_count = sizeof tl_zoo / sizeof tl_zoo[0];

const tl_zoo_model *tl_zoo_find(const char *name)
{
    for (int i = 0; i < tl_zoo_count; i++)
        if (strcmp(tl_zoo[i].name, name) == 0)
            return &tl_zoo[i];
    return NULL;
}

static tl_status fail_unknown(const char *name, tl_diag *diag)
{
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; i < tl_zoo_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 tl_zoo[i].name);
    return tl_fail(diag, TL_BAD_ARGUMENT, "no model is called '%.100s'; there are %s", name, names);
}

tl_status tl_zoo_write(const char *name, uint64_t seed, bool external, const char *path,
                       tl_diag *diag)
{
    const tl_zoo_model *model = tl_zoo_find(name);
    if (model == NULL)
        return fail_unknown(name, diag);
    tl_onnx_build *b = tl_onnx_build_create(name, 17, seed);
    if (b == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while building the model");
    model->build(b, name);
    tl_onnx_build_external(b, external);
    tl_status status = tl_onnx_build_write(b, path, diag);
    tl_onnx_build_destroy(b);
    return status;
}
