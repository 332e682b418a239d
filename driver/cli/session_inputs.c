/* driver/cli/session_inputs.c: inputs for a model: from files by name, from a folder, or at random. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driver/cli/session.h"
#include "runtime/base/file.h"
#include "runtime/tensor/npy.h"

bool tl_data_file(const char *folder, const char *prefix, const char *name, int index,
                  tl_text *path)
{
    tl_text names = { 0 }, listed = { 0 };
    bool found = false;
    tl_text_format(&listed, "%s/names.txt", folder);
    if (tl_file_read(tl_text_get(&listed), &names, NULL) == TL_OK && names.data != NULL) {
        char *line_state, *word_state;
        for (char *line = strtok_r(names.data, "\n", &line_state); line && !found;
             line = strtok_r(NULL, "\n", &line_state)) {
            char *kind = strtok_r(line, " \t\r", &word_state),
                 *key = strtok_r(NULL, " \t\r", &word_state),
                 *file = strtok_r(NULL, " \t\r", &word_state);
            if (file != NULL && strcmp(kind, prefix) == 0 && strcmp(key, name) == 0 &&
                strchr(file, '/') == NULL) {
                tl_text_format(path, "%s/%s", folder, file);
                found = true;
            }
        }
    }
    tl_text_free(&names);
    tl_text_free(&listed);
    if (!found) {
        tl_text_format(path, "%s/%s_%s.npy", folder, prefix, name);
        found = access(tl_text_get(path), F_OK) == 0;
    }
    if (!found) {
        path->size = 0;
        tl_text_format(path, "%s/%s_%d.pb", folder, prefix, index);
        found = access(tl_text_get(path), F_OK) == 0;
    }
    return found;
}

static bool fits(const tl_port *port, const tl_tensor *tensor)
{
    bool same = tensor->dtype == port->dtype && tensor->rank == port->rank;
    for (int i = 0; same && i < port->rank; i++)
        same = tensor->shape[i] == port->shape[i];
    return same;
}

static tl_status check_port(const tl_executable_spec *spec, const tl_port *port,
                            const tl_tensor *tensor, const char *file, tl_diag *diag)
{
    if (fits(port, tensor))
        return TL_OK;
    tl_text have = { 0 }, want = { 0 };
    const char *other = NULL;
    for (int i = 0; i < spec->input_count; i++)
        if (fits(&spec->inputs[i], tensor))
            other = spec->inputs[i].name;
    tl_tensor_describe(tensor, &have);
    tl_shape_describe(port->dtype, port->rank, port->shape, &want);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "%s holds %s, but input %s is %s%s%s%s", file,
                tl_text_get(&have), port->name, tl_text_get(&want),
                other ? " (it would fit input " : "", other ? other : "", other ? ")" : "");
    tl_text_free(&have);
    tl_text_free(&want);
    return status;
}

static tl_status read_pb(const char *path, tl_tensor *out, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    }
    tl_dtype dtype;
    tl_shape shape;
    const void *data;
    int64_t extents[TL_MAX_RANK];
    tl_status status = tl_onnx_read_tensor_file(arena, path, &dtype, &shape, &data, diag);
    for (int a = 0; status == TL_OK && a < shape.rank; a++)
        extents[a] = shape.dims[a].extent;
    if (status == TL_OK)
        status = tl_tensor_create(dtype, shape.rank, extents, out, diag);
    if (status == TL_OK && out->size > 0)
        memcpy(out->data, data, (size_t)out->size);
    tl_arena_destroy(arena);
    return status;
}

tl_status tl_read_tensor(const char *path, tl_tensor *out, tl_diag *diag)
{
    size_t size = strlen(path);
    if (size > 3 && strcmp(path + size - 3, ".pb") == 0)
        return read_pb(path, out, diag);
    return tl_npy_read(path, out, diag);
}

/* What --input says of an input: what stands behind its '='; NULL: nothing. */
static tl_status find_given(const tl_text_list *given, const char *name, const char **out,
                            tl_diag *diag)
{
    size_t size = strlen(name);
    *out = NULL;
    for (int i = 0; given != NULL && i < given->count; i++)
        if (strncmp(given->items[i], name, size) == 0 && given->items[i][size] == '=') {
            if (*out != NULL)
                return tl_fail(diag, TL_BAD_ARGUMENT, "--input %s is given twice", name);
            *out = given->items[i] + size + 1;
        }
    return TL_OK;
}

static bool is_random(const char *source)
{
    return source != NULL && strncmp(source, "random:", 7) == 0;
}

static tl_status one_input(const tl_executable_spec *spec, const tl_port *port,
                           const tl_text_list *given, const char *folder, int64_t seed,
                           tl_tensor *out, tl_diag *diag)
{
    const char *source;
    TL_TRY(find_given(given, port->name, &source, diag));

    tl_text path = { 0 };
    tl_status status = TL_OK;
    if (is_random(source)) {
        char *end;
        seed = strtoll(source + 7, &end, 10);
        if (end == source + 7 || *end != '\0')
            return tl_fail(diag, TL_BAD_ARGUMENT, "--input %s=%s: random: takes a whole number",
                           port->name, source);
        source = NULL;
    } else if (source != NULL && *source == '\0') {
        return tl_fail(diag, TL_BAD_ARGUMENT, "--input %s=: a file is missing", port->name);
    } else if (source != NULL) {
        tl_text_add(&path, source);
    } else if (folder != NULL &&
               tl_data_file(folder, "input", port->name, (int)(port - spec->inputs), &path)) {
        source = tl_text_get(&path);
    } else if (folder != NULL) {
        status =
            tl_fail(diag, TL_BAD_ARGUMENT,
                    "%s: no file for input %s (neither input_%s.npy nor input_%d.pb nor a line in "
                    "names.txt)",
                    folder, port->name, port->name, (int)(port - spec->inputs));
    }
    if (status == TL_OK && source != NULL) {
        status = tl_read_tensor(tl_text_get(&path), out, diag);
        if (status == TL_OK)
            status = check_port(spec, port, out, tl_text_get(&path), diag);
    } else if (status == TL_OK) {
        status = tl_port_random(port, (uint64_t)seed, out, diag);
    }
    tl_text_free(&path);
    return status;
}

tl_status tl_session_inputs(const tl_executable_spec *spec, const tl_text_list *given,
                            const char *folder, int64_t seed, tl_tensor *inputs, tl_diag *diag)
{
    for (int i = 0; given != NULL && i < given->count; i++) {
        const char *equals = strchr(given->items[i], '=');
        bool known = false;
        for (int p = 0; equals != NULL && p < spec->input_count; p++) {
            size_t size = strlen(spec->inputs[p].name);
            known |= strncmp(given->items[i], spec->inputs[p].name, size) == 0 &&
                     given->items[i][size] == '=';
        }
        if (!known) {
            tl_text names = { 0 };
            for (int p = 0; p < spec->input_count; p++)
                tl_text_format(&names, "%s%s", p ? ", " : "", spec->inputs[p].name);
            tl_status status =
                tl_fail(diag, TL_BAD_ARGUMENT, "--input %s: %s (inputs: %s)", given->items[i],
                        equals ? "the model has no such input" : "not of the form NAME=FILE",
                        tl_text_get(&names));
            tl_text_free(&names);
            return status;
        }
    }
    struct stat info;
    if (folder != NULL && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--data %s: no such folder", folder);
    for (int i = 0; i < spec->input_count; i++)
        TL_TRY(one_input(spec, &spec->inputs[i], given, folder, seed, &inputs[i], diag));
    return TL_OK;
}

tl_status tl_session_bindings(const tl_session *session, const tl_executable *executable,
                              const int64_t *dims, const tl_text_list *given, const char *folder,
                              int64_t seed, tl_bindings *out, tl_diag *diag)
{
    tl_executable_spec spec = *tl_executable_info(executable);
    tl_tensor *inputs = TL_NEW_ARRAY(session->arena, tl_tensor, spec.input_count);
    tl_port *ports = TL_NEW_ARRAY(session->arena, tl_port, spec.input_count);
    *out = (tl_bindings){ .input_count = spec.input_count, .inputs = inputs };
    if (dims != NULL && !tl_ports_at(spec.inputs, spec.input_count, spec.dim_count, dims, ports))
        return tl_fail(diag, TL_BAD_ARGUMENT, "an input has no shape for these extents");
    if (dims != NULL)
        spec.inputs = ports;
    TL_TRY(tl_session_inputs(&spec, given, folder, seed, inputs, diag));
    return tl_bindings_make(session->arena, executable, dims, inputs, 0, out, diag);
}

/* Shape and, where a shape may depend on it, value of the file that an input will be read from; `found` false: there is
 * none. */
static tl_status read_given(tl_arena *arena, const tl_onnx_input *input, int index,
                            const tl_session_options *options, tl_shape_override *out, bool *found,
                            tl_diag *diag)
{
    const char *source;
    tl_text path = { 0 };
    tl_tensor tensor = { 0 };
    TL_TRY(find_given(options->given, input->name, &source, diag));
    *found = source != NULL && !is_random(source);
    if (*found)
        tl_text_add(&path, source);
    else if (source == NULL && options->data != NULL)
        *found = tl_data_file(options->data, "input", input->name, index, &path);
    tl_status status = *found ? tl_read_tensor(tl_text_get(&path), &tensor, diag) : TL_OK;
    if (status == TL_OK && *found)
        *out = (tl_shape_override){ .name = input->name,
                                    .shape = tl_shape_of(tensor.rank, tensor.shape),
                                    .dtype = tensor.dtype };
    if (status == TL_OK && *found && tl_tensor_elements(&tensor) <= TL_DECIDING_ELEMENTS)
        out->value = tl_arena_copy(arena, tensor.data, (size_t)tensor.size, 8);
    tl_tensor_free(&tensor);
    tl_text_free(&path);
    return status;
}

tl_status tl_session_bind_signature(const tl_session *session, const tl_onnx_signature *signature,
                                    const tl_session_options *options, tl_model_options *model,
                                    tl_diag *diag)
{
    int count = model->shape_count;
    tl_shape_override *known =
        TL_NEW_ARRAY(session->arena, tl_shape_override, count + signature->input_count);
    for (int i = 0; i < count; i++)
        known[i] = model->shapes[i];
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        tl_shape_override read, *said = NULL;
        bool found;
        for (int k = 0; k < model->shape_count; k++)
            if (strcmp(known[k].name, input->name) == 0)
                said = &known[k];
        TL_TRY(read_given(session->arena, input, i, options, &read, &found, diag));
        if (found && said == NULL)
            known[count++] = read;
        else if (found && tl_shape_equal(&said->shape, &read.shape))
            *said = read;
    }
    return tl_onnx_bind_shapes(session->arena, signature, known, count, &model->shapes,
                               &model->shape_count, diag);
}

tl_status tl_session_bind_shapes(const tl_session *session, const char *path,
                                 const tl_session_options *options, tl_model_options *model,
                                 tl_diag *diag)
{
    tl_onnx_signature signature;
    TL_TRY(tl_onnx_read_signature(session->arena, path, &signature, diag));
    tl_status status = tl_session_bind_signature(session, &signature, options, model, diag);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    return status;
}
