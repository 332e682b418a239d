/* driver/output/output_header.c: the header beside an object file: the name to link, the ports, how to call it. */
#include <string.h>
#include "driver/output/output.h"
#include "runtime/base/printable.h"
#include "runtime/api/tilth_rt.h"

const char *tl_output_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Names come from the model and from files: nothing of them ends the comment, or begins another. */
static void add_in_comment(tl_text *out, const char *text)
{
    tl_text shown = { 0 };
    tl_text_add_printable(&shown, text, strlen(text));
    for (const char *p = tl_text_get(&shown); *p != '\0'; p++) {
        tl_text_add_bytes(out, *p == '\n' || *p == '\t' ? "?" : p, 1);
        if ((p[0] == '*' && p[1] == '/') || (p[0] == '/' && p[1] == '*'))
            tl_text_add(out, " ");
    }
    tl_text_free(&shown);
}

/* Of a port that varies: its extents as functions of the dims. What is in front of it is that of the smallest ones. */
static void add_functions(tl_text *out, const tl_executable_spec *spec, const tl_port *port)
{
    const char *names[TL_MOST_DIMS] = { NULL };
    tl_text text = { 0 };
    for (int d = 0; d < spec->dim_count; d++)
        names[d] = spec->dims[d].name;
    for (int a = 0; port->varying != NULL && a < port->rank; a++) {
        tl_text_add(&text, a > 0 ? ", " : " [");
        tl_varying_print(&port->varying[a], spec->dim_count, names, &text);
    }
    if (text.size > 0)
        tl_text_add(&text, "]");
    add_in_comment(out, tl_text_get(&text));
    tl_text_free(&text);
}

static void add_dims(tl_text *out, const tl_executable_spec *spec)
{
    for (int d = 0; d < spec->dim_count; d++) {
        tl_text_format(out, " *     dim    %2d  %lld..%lld  ", d, (long long)spec->dims[d].min,
                       (long long)spec->dims[d].max);
        add_in_comment(out, spec->dims[d].name);
        tl_text_add(out, "\n");
    }
}

static void add_ports(tl_text *out, const tl_executable_spec *spec, const char *kind,
                      const tl_port *ports, int count)
{
    for (int i = 0; i < count; i++) {
        tl_text type = { 0 };
        int64_t size = 0;
        tl_shape_describe(ports[i].dtype, ports[i].rank, ports[i].shape, &type);
        (void)tl_tensor_bytes(ports[i].dtype, ports[i].rank, ports[i].shape, &size, NULL);
        tl_text_format(out, " *     %-6s %2d  %-26s %12lld bytes  ", kind, i, tl_text_get(&type),
                       (long long)size);
        add_in_comment(out, ports[i].name);
        add_functions(out, spec, &ports[i]);
        tl_text_add(out, "\n");
        tl_text_free(&type);
    }
}

void tl_output_print_header(const tl_model *model, const char *symbol, const char *path,
                            tl_text *out)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(model));
    const tl_target *target = tl_model_get_facts(model)->target;

    tl_text_add(out, "/* The model ");
    add_in_comment(out, spec->model);
    tl_text_format(out, ", compiled by tilth %s for %s. Link ", TILTH_VERSION, target->cpu);
    add_in_comment(out, tl_output_base(path));
    tl_text_format(out,
                   " and libtilth_rt:\n *\n"
                   " *     tilth_model_open_linked(&%s, NULL, &model, &error)\n *\n"
                   " * Inputs and outputs, by index (tilth_rt.h tells how to run it; tensors are "
                   "dense, row-major):\n *\n",
                   symbol);
    add_dims(out, spec);
    add_ports(out, spec, "input", spec->inputs, spec->input_count);
    add_ports(out, spec, "output", spec->outputs, spec->output_count);
    tl_text_format(
        out,
        " */\n#ifndef TILTH_LINKED_%s\n#define TILTH_LINKED_%s\n#include <tilth_rt.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "extern const tilth_linked %s;\n\n"
        "#ifdef __cplusplus\n}\n#endif\n#endif\n",
        symbol, symbol, symbol);
}
