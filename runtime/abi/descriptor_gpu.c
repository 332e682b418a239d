/* runtime/abi/descriptor_gpu.c: what a GPU's kernel says of itself, as members of its descriptor's JSON,
 *     "code":"ptx","arch":"sm_80","launches":[{"grid":[32,"d0 127 + 128 /",1],"block":[256,1,1],"cluster":[1,1,1],
 *      "shared":16384,"dynamic":0,"registers":-1,"spills":-1}],"maps":[{"buffer":0,"dtype":"bf16","extents":[4096,64],
 *      "strides":[2,8192],"box":[64,64],"swizzle":128}]
 * and back, and its formulas for given dims. */
#include <string.h>
#include "runtime/abi/descriptor_private.h"
#include "runtime/abi/formula.h"

/* What every device takes: threads of a block, its shared memory, blocks of a cluster, maps; blocks along x, and along y
 * and z. */
enum { MAX_THREADS = 1024, MAX_SHARED = 1 << 20, MAX_CLUSTER = 16, MAX_MAPS = 16, MAX_BOX = 256 };
static const int64_t max_grid[TL_LAUNCH_AXES] = { INT32_MAX, 65535, 65535 };

/* ---- writing ---- */

static void print_ints(const char *key, const int *values, int count, tl_text *out)
{
    tl_text_format(out, "\"%s\":[", key);
    for (int i = 0; i < count; i++)
        tl_text_format(out, "%s%d", i > 0 ? "," : "", values[i]);
    tl_text_add(out, "]");
}

static void print_wide(const char *key, const int64_t *values, int count, tl_text *out)
{
    tl_text_format(out, "\"%s\":[", key);
    for (int i = 0; i < count; i++)
        tl_text_format(out, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
    tl_text_add(out, "]");
}

static void print_launch(const tl_launch *l, tl_text *out)
{
    tl_text_add(out, "{\"grid\":[");
    for (int i = 0; i < TL_LAUNCH_AXES; i++)
        if (l->grid_formula[i] != NULL)
            tl_text_format(out, "%s\"%s\"", i > 0 ? "," : "", l->grid_formula[i]);
        else
            tl_text_format(out, "%s%lld", i > 0 ? "," : "", (long long)l->grid[i]);
    tl_text_add(out, "],");
    print_ints("block", l->block, TL_LAUNCH_AXES, out);
    tl_text_add(out, ",");
    print_ints("cluster", l->cluster, TL_LAUNCH_AXES, out);
    tl_text_format(out, ",\"shared\":%lld,\"dynamic\":%lld,\"registers\":%d,\"spills\":%d}",
                   (long long)l->shared_bytes, (long long)l->dynamic_shared_bytes, l->registers,
                   l->spill_bytes);
}

static void print_map(const tl_tensor_map *m, tl_text *out)
{
    tl_text_format(out, "{\"buffer\":%d,", m->buffer);
    if (m->buffer == TL_MAP_SCRATCH)
        tl_text_format(out, "\"offset\":%lld,", (long long)m->offset);
    tl_text_format(out, "\"dtype\":\"%s\",", tl_dtype_infos[m->dtype].text);
    print_wide("extents", m->extents, m->rank, out);
    tl_text_add(out, ",");
    print_wide("strides", m->strides, m->rank, out);
    tl_text_add(out, ",");
    print_ints("box", m->box, m->rank, out);
    tl_text_format(out, ",\"swizzle\":%d}", m->swizzle);
}

void tl_gpu_part_print(const tl_descriptor *d, tl_text *out)
{
    tl_text_format(out, ",\"code\":\"%s\",\"arch\":\"%s\",\"launches\":[",
                   tl_form_infos[d->form].text, d->arch);
    for (int i = 0; i < d->phase_count; i++) {
        tl_text_add(out, i > 0 ? "," : "");
        print_launch(&d->launches[i], out);
    }
    tl_text_add(out, "]");
    if (d->scratch_formula != NULL)
        tl_text_format(out, ",\"scratch_formula\":\"%s\"", d->scratch_formula);
    if (d->map_count == 0)
        return;
    tl_text_add(out, ",\"maps\":[");
    for (int i = 0; i < d->map_count; i++) {
        tl_text_add(out, i > 0 ? "," : "");
        print_map(&d->maps[i], out);
    }
    tl_text_add(out, "]");
}

/* ---- reading ---- */

/* The numbers of a list into out[]: at least `fewest` and at most `most` of them, each in 1..high. */
static tl_status read_list(const json_t *object, const char *key, int fewest, int most,
                           int64_t high, int64_t *out, tl_diag *diag)
{
    const json_t *list = json_object_get(object, key);

    if (!json_is_array(list) || json_array_size(list) < (size_t)fewest ||
        json_array_size(list) > (size_t)most)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\" is not a list of %d..%d", key,
                       fewest, most);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (!json_is_integer(entry) || json_integer_value(entry) < 1 ||
            json_integer_value(entry) > high)
            return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\": %zu is not in 1..%lld",
                           key, i, (long long)high);
        out[i] = json_integer_value(entry);
    }
    return TL_OK;
}

static tl_status read_small(const json_t *object, const char *key, int count, int high, int *out,
                            tl_diag *diag)
{
    int64_t wide[TL_MAP_AXES];

    TL_TRY(read_list(object, key, count, count, high, wide, diag));
    for (int i = 0; i < count; i++)
        out[i] = (int)wide[i];
    return TL_OK;
}

static tl_status read_formula(tl_arena *arena, const json_t *text, const tl_descriptor *d,
                              const char **out, tl_diag *diag)
{
    if (!json_is_string(text) || !d->has_sizes)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: what should be a number is not one");
    TL_TRY(tl_formula_check(json_string_value(text), d->dim_count, diag));
    *out = tl_arena_strdup(arena, json_string_value(text));
    return TL_OK;
}

static tl_status read_grid(tl_arena *arena, const json_t *entry, const tl_descriptor *d,
                           tl_launch *l, tl_diag *diag)
{
    const json_t *grid = json_object_get(entry, "grid");

    if (!json_is_array(grid) || json_array_size(grid) != TL_LAUNCH_AXES)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"grid\" is not a list of 3");
    for (int i = 0; i < TL_LAUNCH_AXES; i++) {
        const json_t *blocks = json_array_get(grid, (size_t)i);
        if (!json_is_integer(blocks)) {
            TL_TRY(read_formula(arena, blocks, d, &l->grid_formula[i], diag));
            continue;
        }
        l->grid[i] = json_integer_value(blocks);
        if (l->grid[i] < 0 || l->grid[i] > max_grid[i])
            return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: a grid of %lld blocks on axis %d",
                           (long long)l->grid[i], i);
    }
    return TL_OK;
}

static tl_status read_launch(tl_arena *arena, const json_t *entry, const tl_descriptor *d,
                             tl_launch *l, tl_diag *diag)
{
    int64_t registers, spills;

    TL_TRY(read_grid(arena, entry, d, l, diag));
    TL_TRY(read_small(entry, "block", TL_LAUNCH_AXES, MAX_THREADS, l->block, diag));
    TL_TRY(read_small(entry, "cluster", TL_LAUNCH_AXES, MAX_CLUSTER, l->cluster, diag));
    TL_TRY(tl_descriptor_integer(entry, "shared", 0, MAX_SHARED, &l->shared_bytes, diag));
    TL_TRY(tl_descriptor_integer(entry, "dynamic", 0, MAX_SHARED, &l->dynamic_shared_bytes, diag));
    TL_TRY(tl_descriptor_integer(entry, "registers", -1, MAX_SHARED, &registers, diag));
    TL_TRY(tl_descriptor_integer(entry, "spills", -1, MAX_SHARED, &spills, diag));
    l->registers = (int)registers;
    l->spill_bytes = (int)spills;
    if (l->block[0] * l->block[1] * l->block[2] > MAX_THREADS ||
        l->cluster[0] * l->cluster[1] * l->cluster[2] > MAX_CLUSTER)
        return tl_fail(diag, TL_BAD_TEXT,
                       "kernel descriptor: a block of %dx%dx%d threads, clusters of %dx%dx%d",
                       l->block[0], l->block[1], l->block[2], l->cluster[0], l->cluster[1],
                       l->cluster[2]);
    return TL_OK;
}

#define MOST_OFFSET (INT64_C(1) << 40)

static tl_status read_map(const json_t *entry, const tl_descriptor *d, tl_tensor_map *m,
                          tl_diag *diag)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    int64_t buffer, swizzle, offset = 0;

    TL_TRY(tl_descriptor_integer(entry, "buffer", TL_MAP_SCRATCH, (int64_t)d->buffer_count - 1,
                                 &buffer, diag));
    if (buffer == TL_MAP_SCRATCH)
        TL_TRY(tl_descriptor_integer(entry, "offset", 0,
                                     d->scratch_formula == NULL ? d->scratch_bytes : MOST_OFFSET,
                                     &offset, diag));
    TL_TRY(tl_descriptor_integer(entry, "swizzle", 0, 128, &swizzle, diag));
    TL_TRY(read_list(entry, "extents", 1, TL_MAP_AXES, INT64_C(1) << 32, m->extents, diag));
    m->rank = (int)json_array_size(json_object_get(entry, "extents"));
    TL_TRY(read_list(entry, "strides", m->rank, m->rank, INT64_C(1) << 40, m->strides, diag));
    TL_TRY(read_small(entry, "box", m->rank, MAX_BOX, m->box, diag));
    m->buffer = (int)buffer;
    m->offset = offset;
    m->swizzle = (int)swizzle;
    if (dtype == NULL || !tl_dtype_from_text(dtype, &m->dtype) ||
        (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: a tensor map of no dtype or swizzle");
    return TL_OK;
}

static tl_status read_maps(tl_arena *arena, const json_t *root, tl_descriptor *out, tl_diag *diag)
{
    const json_t *list = json_object_get(root, "maps");

    if (list == NULL)
        return TL_OK;
    if (!json_is_array(list) || json_array_size(list) > MAX_MAPS)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"maps\" is not a list of 0..%d",
                       MAX_MAPS);
    tl_tensor_map *maps = TL_NEW_ARRAY(arena, tl_tensor_map, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        TL_TRY(read_map(json_array_get(list, i), out, &maps[i], diag));
    out->maps = maps;
    out->map_count = (int)json_array_size(list);
    return TL_OK;
}

static bool is_arch(const char *text)
{
    static const char digits[] = "0123456789";
    if (text == NULL || strncmp(text, "sm_", 3) != 0)
        return false;
    size_t count = strspn(text + 3, digits);
    return count >= 2 && count <= 3 &&
           (text[3 + count] == '\0' || strcmp(text + 3 + count, "a") == 0);
}

tl_status tl_gpu_part_read(tl_arena *arena, const json_t *root, tl_descriptor *out, tl_diag *diag)
{
    const char *arch = json_string_value(json_object_get(root, "arch"));
    const json_t *list = json_object_get(root, "launches"),
                 *scratch = json_object_get(root, "scratch_formula");

    if (!is_arch(arch))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"arch\" is not one such as sm_80");
    if (!json_is_array(list) || json_array_size(list) != (size_t)out->phase_count)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"launches\" is not a list of %d",
                       out->phase_count);
    tl_launch *launches = TL_NEW_ARRAY(arena, tl_launch, out->phase_count);
    for (int i = 0; i < out->phase_count; i++)
        TL_TRY(read_launch(arena, json_array_get(list, (size_t)i), out, &launches[i], diag));
    out->arch = tl_arena_strdup(arena, arch);
    out->launches = launches;
    if (scratch != NULL)
        TL_TRY(read_formula(arena, scratch, out, &out->scratch_formula, diag));
    return read_maps(arena, root, out, diag);
}

static const char *copy_formula(tl_arena *arena, const char *formula)
{
    return formula != NULL ? tl_arena_strdup(arena, formula) : NULL;
}

void tl_gpu_part_copy(tl_arena *arena, const tl_descriptor *from, tl_descriptor *out)
{
    tl_launch *launches =
        tl_arena_copy(arena, from->launches, sizeof *from->launches * (size_t)from->phase_count,
                      _Alignof(tl_launch));
    for (int i = 0; i < from->phase_count; i++)
        for (int k = 0; k < TL_LAUNCH_AXES; k++)
            launches[i].grid_formula[k] = copy_formula(arena, launches[i].grid_formula[k]);
    out->arch = tl_arena_strdup(arena, from->arch);
    out->launches = launches;
    out->scratch_formula = copy_formula(arena, from->scratch_formula);
    out->maps = tl_arena_copy(arena, from->maps, sizeof *from->maps * (size_t)from->map_count,
                              _Alignof(tl_tensor_map));
}

/* ---- for given dims ---- */

tl_status tl_descriptor_grid(const tl_descriptor *d, int phase, const int64_t *dims,
                             int64_t grid[TL_LAUNCH_AXES], tl_diag *diag)
{
    const tl_launch *l = &d->launches[phase];

    for (int i = 0; i < TL_LAUNCH_AXES; i++) {
        grid[i] = l->grid[i];
        if (l->grid_formula[i] != NULL)
            TL_TRY(tl_formula_evaluate(l->grid_formula[i], dims, &grid[i], diag));
        if (grid[i] < 0 || grid[i] > max_grid[i])
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "kernel %s: a grid of %lld blocks on axis %d, more than a device takes",
                           d->name, (long long)grid[i], i);
    }
    return TL_OK;
}

tl_status tl_descriptor_scratch(const tl_descriptor *d, const int64_t *dims, int64_t *out,
                                tl_diag *diag)
{
    *out = d->scratch_bytes;
    if (d->scratch_formula != NULL)
        TL_TRY(tl_formula_evaluate(d->scratch_formula, dims, out, diag));
    if (*out < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s: scratch of %lld bytes", d->name,
                       (long long)*out);
    return TL_OK;
}
