/* tests/structural/operands.c: numbers for the inputs of a random graph. */
#include "tests/structural/operands.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tl_number given_number(const char *list, int64_t index, bool is_float)
{
    int64_t count = 1;
    for (const char *at = list; *at != '\0'; at++)
        count += *at == '_';
    for (index %= count; index > 0; index--)
        list += strcspn(list, "_") + 1;
    return is_float ? (tl_number){ .f = strtod(list, NULL) }
                    : (tl_number){ .i = strtoll(list, NULL, 10) };
}

tl_number operand_number(const char *name, tl_dtype dtype, int64_t index, tl_random *random)
{
    const char *domain = strstr(name, "__");
    bool is_float = tl_dtype_is_float(dtype);
    char kind = domain != NULL ? domain[2] : is_float ? 'q' : 'w';
    double low = is_float ? -2 : 0, high = is_float ? 2 : dtype == TL_BOOL ? 1 : 3, value;
    if (domain != NULL && kind != 'v') {
        char *end;
        low = strtod(domain + 3, &end);
        high = strtod(end + (*end == '_'), NULL);
    }
    if (kind == 'v')
        return given_number(domain + 3, index, is_float);
    if (kind == 'r')
        value = low + (high - low) * tl_random_unit(random);
    else if (kind == 'q')
        value = low + 0.25 * (double)tl_random_below(random, (int64_t)((high - low) * 4) + 1);
    else
        value = low + (double)tl_random_below(random, (int64_t)(high - low) + 1);
    return is_float ? (tl_number){ .f = value } : (tl_number){ .i = (int64_t)value };
}

tl_status operand_fill(const char *name, tl_dtype dtype, int rank, const int64_t *shape,
                       tl_tensor *out, tl_diag *diag)
{
    tl_random random = tl_random_make(0x5eed);
    for (const char *at = name; *at != '\0'; at++)
        random.state = random.state * 31 + (unsigned char)*at;
    TL_TRY(tl_tensor_create(dtype, rank, shape, out, diag));
    for (int64_t i = 0; i < tl_tensor_elements(out); i++)
        tl_number_store(dtype, out->data, (size_t)i, operand_number(name, dtype, i, &random));
    return TL_OK;
}
