/* tests/support/long_models.c: writes models of any length as texts, and those as files. */
#include "tests/support/long_models.h"
#include <assert.h>
#include "tests/frontend/onnx_text.h"

static const struct {
    const char *name, *begin, *each, *end;
} chains[] = {
#define LONG_MODEL(name, begin, each, end) { #name, begin, each, end },
#include "tests/support/long_models.def"
#undef LONG_MODEL
};

/* Lists: `each` is repeated between commas. */
static const struct {
    const char *name, *begin, *each, *end;
} lists[] = {
    { "concat", "input x f32 4,3; node Concat ", "x", " -> y axis=0; output y" },
    { "concat_each", "input x f32 4,3; node Neg x -> t1; node Concat ", "t@",
      " -> y axis=0; output y" },
    { "sum", "input x f32 4,3; node Sum ", "x", " -> y; output y" },
    { "split", "node Split x,sizes -> ", "t@", " axis=0; node Add t1,t2 -> y; output y" },
};
enum {
    CHAINS = sizeof chains / sizeof chains[0],
    LISTS = sizeof lists / sizeof lists[0],
};

const char *long_model_name(int index)
{
    if (index < CHAINS)
        return chains[index].name;
    return index < CHAINS + LISTS ? lists[index - CHAINS].name : NULL;
}

/* The pattern for one link. */
static void add_link(tl_text *out, const char *pattern, int link)
{
    for (size_t plain; *pattern != '\0'; pattern += plain + (pattern[plain] != '\0')) {
        plain = strcspn(pattern, "@~");
        tl_text_add_bytes(out, pattern, plain);
        if (pattern[plain] != '\0')
            tl_text_format(out, "%d", pattern[plain] == '@' ? link : link - 1);
    }
}

static void write_chain(tl_text *out, int chain, int length)
{
    tl_text_format(out, "opset 17; %s", chains[chain].begin);
    for (int i = 1; i <= length; i++) {
        tl_text_add(out, "; ");
        add_link(out, chains[chain].each, i);
    }
    if (chains[chain].end[0] != '\0')
        add_link(out, chains[chain].end, length);
    else
        tl_text_format(out, "; output t%d", length);
}

static void write_list(tl_text *out, int list, int length)
{
    const char *name = lists[list].name;
    tl_text_add(out, "opset 17; ");
    for (int i = 2; i <= length && strcmp(name, "concat_each") == 0; i++)
        tl_text_format(out, "node Neg x -> t%d; ", i);
    if (strcmp(name, "split") == 0) {
        tl_text_format(out, "input x f32 %d; init sizes i64 %d = ", length, length);
        for (int i = 1; i <= length; i++)
            tl_text_add(out, i > 1 ? ",1" : "1");
        tl_text_add(out, "; ");
    }
    tl_text_add(out, lists[list].begin);
    for (int i = 1; i <= length; i++) {
        tl_text_add(out, i > 1 ? "," : "");
        add_link(out, lists[list].each, i);
    }
    tl_text_add(out, lists[list].end);
}

tl_text long_model(const char *name, int length)
{
    int index = 0;
    while (strcmp(long_model_name(index), name) != 0)
        index++;
    tl_text text = { 0 };
    if (index < CHAINS)
        write_chain(&text, index, length);
    else
        write_list(&text, index - CHAINS, length);
    tl_text model = text_model(tl_text_get(&text));
    tl_text_free(&text);
    return model;
}
