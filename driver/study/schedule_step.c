/* driver/study/schedule_step.c: --step: a schedule line by line: what each changed, how fast it made the kernel, whether the
 * result is still right. */
#include <stdio.h>
#include <string.h>
#include "driver/study/schedule_verb.h"
#include "driver/cli/session.h"

void tl_findings_make(const tl_study *study, const tl_program *program, bool bench, bool verify,
                      double seconds, tl_findings *out)
{
    tl_diag diag = { 0 };
    *out = (tl_findings){ 0 };
    if (verify) {
        tl_status status = tl_verify_schedule(study, program, &out->verdict, &diag);
        out->verified = status == TL_OK;
        out->failed = status == TL_WRONG_RESULT;
        out->defect = out->failed ? "WRONG" : "cannot be checked yet";
    }
    if (bench && diag.text[0] == '\0') {
        out->defect = "cannot be run yet";
        out->timed = tl_measure_program(study, program, seconds, &out->speed, &diag) == TL_OK;
    }
    snprintf(out->problem, sizeof out->problem, "%.*s", (int)sizeof out->problem - 1, diag.text);
}

void tl_findings_print(const tl_findings *f, const char *indent, FILE *out)
{
    if (f->verified && f->verdict.interpreted && f->verdict.elements == 0)
        fprintf(out, "%sright: both programs interpreted", indent);
    else if (f->verified && f->verdict.interpreted)
        fprintf(out, "%sright: both programs interpreted, %lld elements of the compiled code too",
                indent, (long long)f->verdict.elements);
    else if (f->verified)
        fprintf(out, "%sright: %lld points interpreted, %lld elements as in the naive code", indent,
                (long long)f->verdict.points, (long long)f->verdict.elements);
    if (f->verified)
        fprintf(out, ", largest error %.2g of the largest\n", f->verdict.max_relative);
    if (f->timed) {
        fputs(indent, out);
        tl_print_styled(out, TL_STYLE_BOLD, "%.1f GFLOP/s, %.1f %% of peak", f->speed.gflops,
                        f->speed.percent_of_peak);
        fprintf(out, " (%.3f ms; peak %.1f GFLOP/s)\n", f->speed.ns * 1e-6, f->speed.peak_gflops);
    }
    if (f->problem[0] != '\0') {
        fputs(indent, out);
        tl_print_styled(out, f->failed ? TL_STYLE_RED : TL_STYLE_PLAIN, "%s", f->defect);
        fprintf(out, ": %s\n", f->problem);
    }
}

void tl_findings_json(const tl_findings *f, tl_text *out)
{
    if (f->verified || f->failed)
        tl_text_format(out,
                       ",\"verified\":%s,\"interpreted\":%s,\"points\":%lld,\"elements\":%lld,"
                       "\"max_error\":%.9g,\"relative_error\":%.9g",
                       f->verified ? "true" : "false", f->verdict.interpreted ? "true" : "false",
                       (long long)f->verdict.points, (long long)f->verdict.elements,
                       f->verdict.max_error, f->verdict.max_relative);
    else
        tl_text_add(out, ",\"verified\":null");
    if (f->timed)
        tl_text_format(out,
                       ",\"min_ns\":%.0f,\"runs\":%d,\"gflops\":%.6g,\"peak_gflops\":%.6g,"
                       "\"percent_of_peak\":%.4g",
                       f->speed.ns, f->speed.runs, f->speed.gflops, f->speed.peak_gflops,
                       f->speed.percent_of_peak);
    else
        tl_text_add(out, ",\"percent_of_peak\":null");
    if (f->problem[0] != '\0') {
        tl_text_add(out, ",\"problem\":");
        tl_json_add_text(out, f->problem);
    }
}

tl_line_diff tl_program_diff(tl_arena *arena, const tl_program *before, const tl_program *after)
{
    return tl_line_diff_make(arena, tl_program_text(arena, before), tl_program_text(arena, after));
}

static void print_json(const tl_script_line *line, const tl_line_diff *diff, const tl_findings *f)
{
    tl_text out = { 0 };
    tl_text_format(&out, "{\"record\":\"step\",\"line\":%d,\"text\":", line ? line->line : 0);
    tl_json_add_text(&out, line ? line->text : "");
    tl_text_format(&out, ",\"removed\":%d,\"added\":%d", diff ? diff->removed : 0,
                   diff ? diff->added : 0);
    tl_findings_json(f, &out);
    printf("%s}\n", tl_text_get(&out));
    tl_text_free(&out);
}

tl_status tl_schedule_steps(const tl_study *study, tl_walk *walk, const tl_schedule_options *o,
                            tl_diag *diag)
{
    tl_findings f;
    bool look = o->bench || o->verify;
    const tl_script *script = walk->script;
    tl_findings_make(study, study->naive, o->bench, false, o->seconds, &f);
    if (o->json) {
        print_json(NULL, NULL, &f);
    } else {
        fputs(tl_program_text(study->arena, study->naive), stdout);
        tl_findings_print(&f, "  ", stdout);
    }
    while (walk->done < script->count) {
        const tl_program *before = tl_walk_program(walk);
        const tl_script_line *line = &script->lines[walk->done];
        if (!o->json) {
            printf("\n");
            tl_print_styled(stdout, TL_STYLE_BOLD, "%s:%d: %s", script->file, line->line,
                            line->text);
            printf("\n");
        }
        TL_TRY(tl_walk_next(walk, diag));
        tl_line_diff diff = tl_program_diff(study->arena, before, tl_walk_program(walk));
        bool changed = diff.removed + diff.added > 0;
        f = (tl_findings){ 0 };
        if (changed && look)
            tl_findings_make(study, tl_walk_program(walk), o->bench, o->verify, o->seconds, &f);
        if (o->json) {
            print_json(line, &diff, &f);
        } else if (changed) {
            tl_line_diff_print(&diff, 2, "  ", stdout);
            tl_findings_print(&f, "  ", stdout);
        }
        fflush(stdout);
    }
    return TL_OK;
}
