/* runtime/executable/executable_places.c: where values lie: names of places, which values share storage, and
 * whether those that are prepared are there yet. */
#include "runtime/base/checked.h"
#include "runtime/executable/executable_private.h"

const char *const tl_place_texts[TL_PLACE_COUNT] = {
#define PLACE(name, text) [TL_PLACE_##name] = text,
#include "runtime/executable/places.def"
#undef PLACE
};

int tl_executable_storage(const tl_executable_spec *spec, int value)
{
    return spec->values[value].place == TL_PLACE_WINDOW ? spec->values[value].whole : value;
}

bool tl_executable_size_at(const tl_executable_value *v, int dim_count, const int64_t *dims,
                           int64_t *out)
{
    int64_t size = v->factor_count > 0 ? v->unit : v->size, factor;

    for (int i = 0; i < v->factor_count; i++)
        if (!tl_varying_at(&v->factors[i], dim_count, dims, &factor) || factor < 0 ||
            tl_mul_overflows(size, factor, &size))
            return false;
    *out = size;
    return size >= 0;
}

bool tl_executable_is_prepared(const tl_executable *x)
{
    return atomic_load(&x->is_prepared);
}

void tl_executable_mark(const tl_executable_spec *spec, const tl_executable_step *steps, int count,
                        bool *used)
{
    for (int s = 0; s < count; s++)
        for (int i = 0; i < steps[s].value_count; i++) {
            int value = steps[s].values[i];
            if (value == TL_NO_VALUE)
                continue;
            used[value] = true;
            used[tl_executable_storage(spec, value)] = true;
        }
}

void tl_executable_mark_counts(const tl_executable_spec *spec, bool *used)
{
    for (int i = 0; i < spec->output_count; i++)
        for (int a = 0; spec->outputs[i].counts != NULL && a < spec->outputs[i].rank; a++) {
            int value = spec->outputs[i].counts[a];
            if (value == TL_NO_VALUE)
                continue;
            used[value] = true;
            used[tl_executable_storage(spec, value)] = true;
        }
}
