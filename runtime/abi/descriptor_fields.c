/* runtime/abi/descriptor_fields.c: the forms of code, and the integers of a descriptor's text. */
#include "runtime/abi/descriptor_private.h"

const tl_form_info tl_form_infos[TL_FORM_COUNT] = {
#define FORM(name, text, gpu) [TL_FORM_##name] = { text, gpu },
#include "runtime/abi/code_forms.def"
#undef FORM
};

tl_status tl_descriptor_integer(const json_t *object, const char *key, int64_t low, int64_t high,
                                int64_t *out, tl_diag *diag)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\" is not an integer", key);
    int64_t number = json_integer_value(value);
    if (number < low || number > high)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\" is %lld, not in %lld..%lld",
                       key, (long long)number, (long long)low, (long long)high);
    *out = number;
    return TL_OK;
}
