/* ir/text/words.c: the words of the text of Programs that cannot be names. */
#include <string.h>
#include "ir/text/text_private.h"

const char *const tl_iter_kind_texts[3] = {
    [TL_ITER_SPATIAL] = "spatial",
    [TL_ITER_REDUCE] = "reduce",
    [TL_ITER_ORDERED] = "ordered",
};

static const char *const words[] = {
    "alloc", "and",    "barrier", "block",   "body",    "call", "const",    "dim",     "else",
    "false", "for",    "from",    "if",      "in",      "inf",  "inout",    "kernel",  "max",
    "min",   "nan",    "not",     "or",      "ordered", "out",  "prefetch", "prepare", "prepared",
    "read",  "reduce", "select",  "spatial", "strides", "to",   "true",     "where",   "write",
};

static bool is_word(const char *word, const char *name)
{
    return word[0] == name[0] && strcmp(word, name) == 0;
}

bool tl_bits_from_text(const char *name, tl_dtype *out)
{
    size_t prefix = strlen(TL_BITS_PREFIX);
    return strncmp(name, TL_BITS_PREFIX, prefix) == 0 && tl_dtype_from_text(name + prefix, out);
}

bool tl_is_reserved(const char *name)
{
    tl_function function;
    tl_dtype dtype;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is_word(words[i], name))
            return true;
    for (int c = 0; c < TL_COMBINER_COUNT; c++)
        if (is_word(tl_combiner_infos[c].text, name))
            return true;
    return tl_dtype_from_text(name, &dtype) || tl_bits_from_text(name, &dtype) ||
           tl_function_from_text(name, &function);
}
