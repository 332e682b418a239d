/* driver/study/schedule_show.c: --show: the forms of a schedule that can be looked at. */
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/object/ptxas.h"
#include "driver/study/footprint.h"
#include "driver/study/inner_loop.h"
#include "driver/study/schedule_verb.h"
#include "driver/cli/session.h"

typedef tl_status form(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag);

static tl_status show_naive(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    (void)walk;
    (void)diag;
    tl_program_print(study->naive, out);
    return TL_OK;
}

static tl_status show_program(const tl_study *study, const tl_walk *walk, tl_text *out,
                              tl_diag *diag)
{
    (void)study;
    (void)diag;
    tl_program_print(tl_walk_program(walk), out);
    return TL_OK;
}

static tl_status show_trace(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    (void)study;
    (void)diag;
    tl_trace_print(tl_schedule_trace(walk->schedule), out);
    return TL_OK;
}

/* Bytes with a unit, for people. */
static void add_bytes(tl_text *out, int64_t bytes)
{
    if (bytes < 10 << 10)
        tl_text_format(out, "%lld B", (long long)bytes);
    else if (bytes < 10 << 20)
        tl_text_format(out, "%.1f KiB", (double)bytes / 1024);
    else
        tl_text_format(out, "%.1f MiB", (double)bytes / (1 << 20));
}

static tl_status show_footprint(const tl_study *study, const tl_walk *walk, tl_text *out,
                                tl_diag *diag)
{
    (void)diag;
    const tl_footprint_level *levels;
    int count = tl_footprint(study->arena, tl_walk_program(walk), &levels);
    for (int i = 0; i < count; i++) {
        tl_text_indent(out, 2 * (levels[i].loop != NULL ? levels[i].depth + 1 : 0));
        tl_text_format(out, "%s: ", levels[i].name);
        add_bytes(out, levels[i].total);
        for (int t = 0; t < levels[i].count; t++) {
            tl_text_format(out, "%s%s ", t ? ", " : " = ", levels[i].touches[t].buffer->name);
            add_bytes(out, levels[i].touches[t].bytes);
        }
        tl_text_add(out, "\n");
    }
    return TL_OK;
}

static void add_pass(void *context, int number, const char *pass, const char *text)
{
    tl_text_format(context, "# %d %s\n%s", number, pass, text);
}

static tl_status show_passes(const tl_study *study, const tl_walk *walk, tl_text *out,
                             tl_diag *diag)
{
    tl_codegen_observer observer = { add_pass, out };
    return tl_codegen_observe(tl_walk_program(walk), false, &study->target, &observer, diag);
}

static tl_status emit(const tl_study *study, const tl_walk *walk, tl_emit what, tl_text *out,
                      tl_diag *diag)
{
    tl_descriptor descriptor;
    return tl_codegen_compile(study->arena, tl_walk_program(walk), false, &study->target, what, out,
                              &descriptor, diag);
}

static tl_status show_llvm(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    return emit(study, walk, TL_EMIT_LLVM, out, diag);
}

static tl_status show_asm(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    return emit(study, walk, TL_EMIT_ASSEMBLY, out, diag);
}

/* Behind the PTX, as comments of it: what ptxas says that its kernels take. */
static void add_uses(const tl_study *study, tl_text *out)
{
    tl_diag diag = { "" };
    const tl_ptx_use *uses;
    int count;
    tl_status status =
        tl_ptxas_run(study->arena, tl_text_get(out), study->target.cpu, NULL, &uses, &count, &diag);
    if (status != TL_OK)
        tl_text_format(out, "// %.*s\n", (int)strcspn(diag.text, "\n"), diag.text);
    for (int i = 0; i < count && status == TL_OK; i++)
        tl_text_format(out,
                       "// %s: %d registers, %lld bytes of shared memory, %lld of stack, %lld of "
                       "spills (%s)\n",
                       uses[i].kernel, uses[i].registers, (long long)uses[i].shared_bytes,
                       (long long)uses[i].stack_bytes, (long long)uses[i].spill_bytes,
                       study->target.cpu);
}

static tl_status show_ptx(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    if (!tl_target_is_gpu(&study->target))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--show ptx: the target %s is a CPU, whose code is shown by asm",
                       tl_isa_infos[study->target.isa].text);
    TL_TRY(emit(study, walk, TL_EMIT_ASSEMBLY, out, diag));
    add_uses(study, out);
    return TL_OK;
}

static tl_status show_loop(const tl_study *study, const tl_walk *walk, tl_text *out, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_status status = emit(study, walk, TL_EMIT_ASSEMBLY, &text, diag);
    if (status == TL_OK)
        tl_text_add(out, tl_inner_loop(study->arena, tl_text_get(&text)));
    tl_text_free(&text);
    return status;
}

static const struct {
    const char *name;
    form *show;
} forms[] = {
    { "program", show_program }, { "naive", show_naive },
    { "trace", show_trace },     { "footprint", show_footprint },
    { "passes", show_passes },   { "llvm", show_llvm },
    { "asm", show_asm },         { "loop", show_loop },
    { "ptx", show_ptx },
};
enum { FORM_COUNT = sizeof forms / sizeof *forms };

const char *tl_show_item(int index)
{
    return index >= 0 && index < FORM_COUNT ? forms[index].name : NULL;
}

static int find_form(const char *item, size_t size)
{
    for (int i = 0; i < FORM_COUNT; i++)
        if (strlen(forms[i].name) == size && strncmp(forms[i].name, item, size) == 0)
            return i;
    return -1;
}

tl_status tl_show_check(const char *list, tl_diag *diag)
{
    for (const char *item = list;; item++) {
        size_t size = strcspn(item, ",");
        if (find_form(item, size) < 0) {
            tl_text names = { 0 };
            for (int i = 0; i < FORM_COUNT; i++)
                tl_text_format(&names, "%s%s", i ? ", " : "", forms[i].name);
            tl_fail(diag, TL_BAD_ARGUMENT, "show: there is no '%.*s' to show; there are %s",
                    (int)(size < 60 ? size : 60), item, tl_text_get(&names));
            tl_text_free(&names);
            return TL_BAD_ARGUMENT;
        }
        item += size;
        if (*item == '\0')
            return TL_OK;
    }
}

tl_status tl_show(const tl_study *study, const tl_walk *walk, const char *list, bool json,
                  tl_diag *diag)
{
    TL_TRY(tl_show_check(list, diag));
    bool several = strchr(list, ',') != NULL;
    for (const char *item = list;; item++) {
        size_t size = strcspn(item, ",");
        int i = find_form(item, size);
        tl_text text = { 0 };
        tl_status status = forms[i].show(study, walk, &text, diag);
        if (status == TL_OK && json) {
            printf("{\"record\":\"show\",\"what\":\"%s\",\"text\":", forms[i].name);
            tl_print_json_text(tl_text_get(&text));
            printf("}\n");
        } else if (status == TL_OK) {
            if (several) {
                tl_print_styled(stdout, TL_STYLE_BOLD, "# %s", forms[i].name);
                printf("\n");
            }
            fputs(tl_text_get(&text), stdout);
        }
        tl_text_free(&text);
        TL_TRY(status);
        item += size;
        if (*item == '\0')
            return TL_OK;
    }
}
