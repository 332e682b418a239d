/* driver/reduce/infer_types.c: what is known of a model's tensors, written into its declarations. */
#include "driver/reduce/infer_types.h"
#include <string.h>
#include "runtime/base/file.h"

enum { MOST_FOLDED = 256 }; /* elements of a constant that a node becomes */

static bool static_type(const tl_value *v, tl_draft_type *out)
{
    if (v == NULL || !v->dtype_known || v->shape.rank < 0 || !tl_shape_is_static(&v->shape))
        return false;
    *out = (tl_draft_type){ .elem_type = tl_dtype_infos[v->dtype].onnx,
                            .dtype = v->dtype,
                            .rank = v->shape.rank,
                            .elements = tl_shape_elements(&v->shape) };
    for (int i = 0; i < v->shape.rank; i++)
        out->dims[i] = v->shape.dims[i].extent;
    return out->elements >= 0;
}

void tl_draft_bind(tl_draft *d, const tl_shape_override *shapes, int count)
{
    for (size_t i = 0; i < d->graph->n_input; i++)
        for (int k = 0; k < count; k++) {
            Onnx__ValueInfoProto *info = d->graph->input[i];
            const tl_shape *shape = &shapes[k].shape;
            if (info->type == NULL || info->type->tensor_type == NULL ||
                strcmp(tl_draft_name(info->name), shapes[k].name) != 0)
                continue;
            tl_draft_type type = { .elem_type = info->type->tensor_type->elem_type,
                                   .rank = shape->rank };
            for (int axis = 0; axis < shape->rank; axis++)
                type.dims[axis] = shape->dims[axis].extent;
            d->graph->input[i] = tl_draft_declare(d, info->name, &type);
        }
}

static void retype(tl_draft *d, const tl_map *values, size_t count, Onnx__ValueInfoProto **infos)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = tl_draft_name(infos[i]->name);
        tl_draft_type type;
        if (static_type(tl_map_find(values, name), &type))
            infos[i] = tl_draft_declare(d, name, &type);
    }
}

static void declare_values(tl_draft *d, const tl_map *values)
{
    Onnx__GraphProto *g = d->graph;
    tl_map *declared = tl_map_create(d->arena);
    retype(d, values, g->n_input, g->input);
    retype(d, values, g->n_output, g->output);
    retype(d, values, g->n_value_info, g->value_info);
    for (size_t i = 0; i < g->n_value_info; i++)
        tl_map_put(declared, tl_draft_name(g->value_info[i]->name), d);
    size_t count = g->n_value_info, most = count;
    for (size_t i = 0; i < g->n_node; i++)
        most += g->node[i]->n_output;
    Onnx__ValueInfoProto **infos = TL_NEW_ARRAY(d->arena, Onnx__ValueInfoProto *, most + 1);
    if (count > 0)
        memcpy(infos, g->value_info, count * sizeof *infos);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            const char *name = g->node[i]->output[k];
            tl_draft_type type;
            if (!tl_map_has(declared, name) && static_type(tl_map_find(values, name), &type))
                infos[count++] = tl_draft_declare(d, name, &type);
        }
    g->value_info = infos;
    g->n_value_info = count;
}

/* Whether all that the node makes are small constants. */
static bool is_constant(const Onnx__NodeProto *node, const tl_map *values)
{
    for (size_t k = 0; k < node->n_output; k++) {
        const tl_value *v = tl_map_find(values, node->output[k]);
        tl_draft_type type;
        if (!static_type(v, &type) || v->data == NULL || type.elements > MOST_FOLDED ||
            tl_dtype_infos[type.dtype].digits == 4)
            return false;
    }
    return node->n_output > 0;
}

static bool fold_constants(tl_draft *d, const tl_map *values)
{
    Onnx__GraphProto *g = d->graph;
    size_t kept = 0, count = g->n_node;
    for (size_t i = 0; i < count; i++) {
        Onnx__NodeProto *node = g->node[i];
        if (!is_constant(node, values)) {
            g->node[kept++] = node;
            continue;
        }
        for (size_t k = 0; k < node->n_output; k++) {
            const tl_value *v = tl_map_find(values, node->output[k]);
            tl_draft_type type;
            static_type(v, &type);
            Onnx__TensorProto *t = tl_draft_tensor(d, node->output[k], &type);
            memcpy(t->raw_data.data, v->data, t->raw_data.len);
            TL_DRAFT_APPEND(d, g->initializer, g->n_initializer, t);
        }
    }
    g->n_node = kept;
    tl_draft_tidy(d);
    return kept < count;
}

static tl_status write_draft(const tl_draft *d, const char *folder, const char *name)
{
    tl_text out;
    if (!tl_draft_write(d, &out))
        return TL_NO_MEMORY;
    tl_status status =
        tl_file_write(tl_arena_format(d->arena, "%s/%s", folder, name), out.data, out.size, NULL);
    tl_text_free(&out);
    return status;
}

static tl_status infer(tl_arena *arena, const tl_text *model, const char *folder)
{
    tl_onnx *onnx;
    tl_graph *graph;
    tl_draft draft;
    tl_diag diag = { 0 };
    if (TL_ARENA_GUARD(arena))
        return TL_NO_MEMORY;
    TL_TRY(
        tl_onnx_read_memory(arena, model->data, model->size, NULL, NULL, 0, &onnx, &graph, &diag));
    tl_infer_shapes(graph, &diag);
    tl_map *values = tl_map_create(arena);
    for (int i = 0; i < graph->value_count; i++)
        tl_map_put(values, graph->values[i]->name, graph->values[i]);
    if (!tl_draft_read(arena, model, &draft))
        return TL_BAD_MODEL;
    declare_values(&draft, values);
    tl_status status = write_draft(&draft, folder, "typed.onnx");
    if (status == TL_OK && fold_constants(&draft, values))
        status = write_draft(&draft, folder, "folded.onnx");
    tl_onnx_close(onnx);
    return status;
}

tl_status tl_infer_types(const tl_text *model, const char *folder)
{
    tl_arena *arena = tl_arena_create(0);
    tl_status status = arena != NULL ? infer(arena, model, folder) : TL_NO_MEMORY;
    tl_arena_destroy(arena);
    return status;
}
