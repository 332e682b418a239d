/* driver/inspect/inspect_operators.c: which operators tilth reads, from the tables of the reader. frontend/OPERATORS.md is
 * what it writes as Markdown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/inspect/inspect.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tl_onnx_operator *)a)->name, ((const tl_onnx_operator *)b)->name);
}

/* By name; the caller's. */
static tl_onnx_operator *sorted_operators(int *count)
{
    tl_onnx_operator one;
    *count = 0;
    while (tl_onnx_find_operator(*count, &one))
        (*count)++;
    tl_onnx_operator *all = calloc((size_t)*count + 1, sizeof *all);
    for (int i = 0; all != NULL && i < *count; i++)
        tl_onnx_find_operator(i, &all[i]);
    if (all != NULL)
        qsort(all, (size_t)*count, sizeof *all, by_name);
    return all;
}

/* By name, whatever its opset. */
static bool is_refused(const char *name)
{
    tl_onnx_operator one;
    for (int i = 0; tl_onnx_find_operator(i, &one); i++)
        if (one.reason != NULL && strcmp(one.name, name) == 0)
            return true;
    return false;
}

static const char *opsets_text(const tl_onnx_operator *op, char *out, size_t size)
{
    if (op->until == 0)
        snprintf(out, size, "%d and later", op->since);
    else if (op->until == op->since)
        snprintf(out, size, "%d", op->since);
    else
        snprintf(out, size, "%d to %d", op->since, op->until);
    return out;
}

static const char *inputs_text(const tl_onnx_operator *op, char *out, size_t size)
{
    if (op->max_inputs < 0)
        snprintf(out, size, "%d or more", op->min_inputs);
    else if (op->max_inputs == op->min_inputs)
        snprintf(out, size, "%d", op->min_inputs);
    else
        snprintf(out, size, "%d to %d", op->min_inputs, op->max_inputs);
    return out;
}

static void add_dtypes(tl_text *out)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++)
        tl_text_format(out, "%s%s", d > 0 ? ", " : "", tl_dtype_infos[d].text);
}

static void add_heading(tl_operators_form form, int read, tl_text *out)
{
    if (form == TL_OPERATORS_TEXT) {
        tl_text_format(out, "%-28s %-14s %5s  %-10s %s\n", "operator", "opsets", "forms", "inputs",
                       "counted");
        return;
    }
    tl_text_format(
        out,
        "# Operators\n\n"
        "Written by `tilth inspect --operators --markdown` from `import/import_ops.def` and\n"
        "`import/import_refused.def`; a test holds it to them, and `make golden` writes it "
        "anew.\n\n"
        "tilth reads these %d operators. A form is what one or several opsets give an operator; "
        "the inputs\n"
        "are those of the newest. Tensors are of ",
        read);
    add_dtypes(out);
    tl_text_add(out, ";\na model that has others is refused, and they are named.\n\n"
                     "Those that are counted take values whose extents data decide, too.\n\n"
                     "| operator | opsets | forms | inputs | counted |\n|---|---|---|---|---|\n");
}

static void add_read(tl_operators_form form, const tl_onnx_operator *op, tl_text *out)
{
    char opsets[48], inputs[48];
    opsets_text(op, opsets, sizeof opsets);
    inputs_text(op, inputs, sizeof inputs);
    if (form == TL_OPERATORS_MARKDOWN) {
        tl_text_format(out, "| %s | %s | %d | %s | %s |\n", op->name, opsets, op->forms, inputs,
                       op->takes_counted ? "yes" : "");
    } else if (form == TL_OPERATORS_TEXT) {
        tl_text_format(out,
                       op->takes_counted ? "%-28s %-14s %5d  %-10s yes\n" : "%-28s %-14s %5d  %s\n",
                       op->name, opsets, op->forms, inputs);
    } else {
        tl_text_format(out,
                       "{\"record\":\"operator\",\"name\":\"%s\",\"since\":%d,\"until\":", op->name,
                       op->since);
        tl_text_format(out, op->until == 0 ? "null" : "%d", op->until);
        tl_text_format(out, ",\"forms\":%d,\"min_inputs\":%d,\"max_inputs\":", op->forms,
                       op->min_inputs);
        tl_text_format(out, op->max_inputs < 0 ? "null" : "%d", op->max_inputs);
        tl_text_format(out, ",\"takes_counted\":%s}\n", op->takes_counted ? "true" : "false");
    }
}

static void add_refused(tl_operators_form form, const tl_onnx_operator *op, tl_text *out)
{
    if (form == TL_OPERATORS_MARKDOWN)
        tl_text_format(out, "| %s | %s |\n", op->name, op->reason);
    else if (form == TL_OPERATORS_TEXT)
        tl_text_format(out, "%-28s refused: %s\n", op->name, op->reason);
    else
        tl_text_format(out, "{\"record\":\"refused\",\"name\":\"%s\",\"reason\":\"%s\"}\n",
                       op->name, op->reason);
}

/* The forms that opsets gave ONNX's own operators, and which of them are not read. */
static void add_versions(tl_operators_form form, tl_text *out)
{
    tl_onnx_version v;
    int count = 0, read = 0, named = 0;
    for (; tl_onnx_find_version(count, &v); count++) {
        read += v.reason == NULL;
        if (form != TL_OPERATORS_JSON)
            continue;
        tl_text_format(out, "{\"record\":\"version\",\"name\":\"%s\",\"since\":%d,\"read\":%s",
                       v.name, v.since, v.reason == NULL ? "true" : "false");
        tl_text_format(out, v.reason != NULL ? ",\"reason\":\"%s\"}\n" : "}\n", v.reason);
    }
    if (form == TL_OPERATORS_JSON)
        return;
    for (int i = 0; tl_onnx_find_version(i, &v); i++)
        named += v.reason != NULL && is_refused(v.name);
    if (form == TL_OPERATORS_MARKDOWN)
        tl_text_add(out, "\n## By the opsets that changed them\n\n");
    tl_text_format(out,
                   "ONNX's own opsets up to 28 give its operators %d forms (`onnx_versions.def`). "
                   "%d of them are read, %d\n"
                   "belong to operators that are refused by name; the others are%s\n",
                   count, read, named, count == read + named ? " none." : ":");
    if (form == TL_OPERATORS_MARKDOWN)
        tl_text_add(out, "\n| operator | since | reason |\n|---|---|---|\n");
    for (int i = 0; tl_onnx_find_version(i, &v); i++)
        if (v.reason != NULL && !is_refused(v.name))
            tl_text_format(out,
                           form == TL_OPERATORS_MARKDOWN ? "| %s | %d | %s |\n"
                                                         : "%-28s since %d: %s\n",
                           v.name, v.since, v.reason);
}

void tl_inspect_operators(tl_operators_form form, tl_text *out)
{
    int count, read = 0;
    tl_onnx_operator *all = sorted_operators(&count);
    for (int i = 0; all != NULL && i < count; i++)
        read += all[i].reason == NULL;
    if (form != TL_OPERATORS_JSON)
        add_heading(form, read, out);
    for (int i = 0; all != NULL && i < count; i++)
        if (all[i].reason == NULL)
            add_read(form, &all[i], out);
    if (form == TL_OPERATORS_MARKDOWN)
        tl_text_add(out, "\nThese are refused by name; every other operator is not implemented.\n\n"
                         "| operator | reason |\n|---|---|\n");
    for (int i = 0; all != NULL && i < count; i++)
        if (all[i].reason != NULL)
            add_refused(form, &all[i], out);
    add_versions(form, out);
    if (form == TL_OPERATORS_TEXT) {
        tl_text_format(out, "%d are read, in ", read);
        add_dtypes(out);
        tl_text_add(out, "; others are not implemented\n");
    }
    out->failed |= all == NULL;
    free(all);
}
