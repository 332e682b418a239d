/* driver/study/schedule_html.c: --html: one page, with nothing loaded from elsewhere, that steps through a schedule. */
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/study/footprint.h"
#include "driver/study/inner_loop.h"
#include "driver/study/page_template.h"
#include "driver/study/schedule_verb.h"
#include "driver/cli/session.h"
#include "runtime/base/file.h"

static void add_footprint(const tl_study *study, const tl_program *program, tl_text *out)
{
    const tl_footprint_level *levels;
    int count = tl_footprint(study->arena, program, &levels);
    tl_text_add(out, ",\"buffers\":["); /* the first level has all that are touched */
    for (int b = 0; b < levels[0].count; b++) {
        tl_text_add(out, b ? "," : "");
        tl_json_add_text(out, levels[0].touches[b].buffer->name);
    }
    tl_text_add(out, "],\"levels\":[");
    for (int i = 0; i < count; i++) {
        const tl_footprint_level *l = &levels[i];
        tl_text_add(out, i ? ",{\"loop\":" : "{\"loop\":");
        tl_json_add_text(out, l->name);
        tl_text_format(out, ",\"depth\":%d,\"total\":%lld,\"bytes\":[", l->loop ? l->depth + 1 : 0,
                       (long long)l->total);
        for (int b = 0; b < levels[0].count; b++) {
            int64_t bytes = 0;
            for (int t = 0; t < l->count; t++)
                if (l->touches[t].buffer == levels[0].touches[b].buffer)
                    bytes = l->touches[t].bytes;
            tl_text_format(out, "%s%lld", b ? "," : "", (long long)bytes);
        }
        tl_text_add(out, "]}");
    }
    tl_text_add(out, "]");
}

static void add_inner_loop(const tl_study *study, const tl_program *program, tl_text *out)
{
    tl_text assembly = { 0 };
    tl_descriptor descriptor;
    const char *loop = "";
    if (tl_codegen_compile(study->arena, program, false, &study->target, TL_EMIT_ASSEMBLY,
                           &assembly, &descriptor, NULL) == TL_OK)
        loop = tl_inner_loop(study->arena, tl_text_get(&assembly));
    tl_text_free(&assembly);
    tl_text_add(out, ",\"asm\":");
    tl_json_add_text(out, loop);
}

static void add_step(const tl_study *study, const tl_script_line *line, const tl_line_diff *diff,
                     const tl_program *program, const tl_findings *f, tl_text *out)
{
    tl_text_format(out, "%s{\"line\":%d,\"text\":", line ? "," : "", line ? line->line : 0);
    tl_json_add_text(out, line ? line->text : "");
    tl_text_add(out, ",\"comment\":");
    tl_json_add_text(out, line ? line->comment : "");
    tl_text_add(out, ",\"lines\":[");
    for (int i = 0; i < diff->count; i++) {
        tl_text_format(out, "%s[\"%c\",", i ? "," : "", diff->lines[i].mark);
        tl_json_add_text(out, diff->lines[i].text);
        tl_text_add(out, "]");
    }
    tl_text_add(out, "]");
    if (f->timed)
        tl_text_format(out, ",\"gflops\":%.6g,\"percent\":%.4g", f->speed.gflops,
                       f->speed.percent_of_peak);
    else
        tl_text_add(out, ",\"gflops\":null,\"percent\":null");
    tl_text_add(out, ",\"problem\":");
    tl_json_add_text(out, f->problem);
    tl_text_format(out, ",\"defect\":\"%s\"", f->defect ? f->defect : "");
    add_footprint(study, program, out);
    add_inner_loop(study, program, out);
    tl_text_add(out, "}");
}

static tl_status add_steps(const tl_study *study, tl_walk *walk, const tl_schedule_options *o,
                           double *peak, tl_text *out, tl_diag *diag)
{
    tl_findings f;
    const tl_program *before = study->naive;
    tl_line_diff diff = tl_program_diff(study->arena, before, before);
    tl_findings_make(study, before, true, false, o->seconds, &f);
    add_step(study, NULL, &diff, before, &f, out);
    for (; walk->done < walk->script->count; before = tl_walk_program(walk)) {
        const tl_script_line *line = &walk->script->lines[walk->done];
        *peak = f.speed.peak_gflops > *peak ? f.speed.peak_gflops : *peak;
        tl_progress("line %d: %s", line->line, line->text);
        TL_TRY(tl_walk_next(walk, diag));
        const tl_program *after = tl_walk_program(walk);
        diff = tl_program_diff(study->arena, before, after);
        if (diff.removed + diff.added > 0)
            tl_findings_make(study, after, true, o->verify, o->seconds, &f);
        add_step(study, line, &diff, after, &f, out);
    }
    *peak = f.speed.peak_gflops > *peak ? f.speed.peak_gflops : *peak;
    return TL_OK;
}

/* In a page, data must not look like the end of a script. */
static void add_escaped(tl_text *page, const char *json)
{
    while (*json != '\0') {
        size_t size = strcspn(json, "<");
        tl_text_add_bytes(page, json, size);
        json += size;
        if (*json == '<') {
            tl_text_add(page, "\\u003c");
            json++;
        }
    }
}

static void add_page(tl_text *page, const char *json)
{
    for (int i = 0; tl_page_before[i] != NULL; i++)
        tl_text_add(page, tl_page_before[i]);
    add_escaped(page, json);
    for (int i = 0; tl_page_after[i] != NULL; i++)
        tl_text_add(page, tl_page_after[i]);
}

tl_status tl_schedule_page(const tl_study *study, tl_walk *walk, const tl_schedule_options *o,
                           tl_diag *diag)
{
    tl_text data = { 0 }, steps = { 0 }, page = { 0 };
    double peak = 0;
    tl_status status = add_steps(study, walk, o, &peak, &steps, diag);
    tl_progress_done();
    if (status == TL_OK) {
        const tl_target *t = &study->target;
        tl_text_add(&data, "{\"kernel\":");
        tl_json_add_text(&data, study->naive->name);
        tl_text_add(&data, ",\"file\":");
        tl_json_add_text(&data, study->kernel_file);
        tl_text_add(&data, ",\"trace\":");
        tl_json_add_text(&data, walk->script->file);
        tl_text_format(&data,
                       ",\"isa\":\"%s\",\"threads\":%d,\"flops\":%lld,\"l1\":%lld,\"l2\":%lld,"
                       "\"l3\":%lld,\"peak\":%.6g,\"steps\":[",
                       tl_isa_infos[t->isa].text, study->threads, (long long)study->flops,
                       (long long)t->l1_bytes, (long long)t->l2_bytes, (long long)t->l3_bytes,
                       peak);
        tl_text_add_bytes(&data, tl_text_get(&steps), steps.size);
        tl_text_add(&data, "]}");
        add_page(&page, tl_text_get(&data));
        if (data.failed || steps.failed || page.failed)
            status = tl_fail(diag, TL_NO_MEMORY, "no memory for the page");
        else
            status = tl_file_write(o->html, tl_text_get(&page), page.size, diag);
    }
    tl_text_free(&data);
    tl_text_free(&steps);
    tl_text_free(&page);
    return status;
}
