/* driver/verb/verb_schedule.c: tilth schedule KERNEL.tk [TRACE.tr]: a kernel and a schedule, looked at step by step, checked
 * and measured. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "driver/verb/verbs.h"
#include "driver/study/schedule_verb.h"
#include "driver/tune/schedule_moves.h"
#include "driver/cli/session.h"
#include "schedule/sketch/sketch.h"

typedef struct {
    tl_study_options study;
    tl_schedule_options how;
    bool prompt, by_default;
} options;

static const char *shown_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

/* The text of the trace that was asked for: a file's, the default schedule's, or none. */
static tl_status trace_text(const tl_study *study, const char *path, bool by_default,
                            const char **file, const char **text, tl_diag *diag)
{
    *file = path != NULL ? shown_name(path) : by_default ? "<default>" : "<empty>";
    *text = "";
    if (path != NULL)
        return tl_study_read(study->arena, path, text, diag);
    if (!by_default)
        return TL_OK;
    tl_schedule *s = tl_schedule_create(study->arena, study->naive, &study->target, false);
    TL_TRY(tl_schedule_default(s, diag));
    *text = tl_trace_text(study->arena, tl_schedule_trace(s));
    return TL_OK;
}

static void print_summary(const tl_study *study, const tl_walk *walk, const tl_findings *f,
                          bool json)
{
    const tl_program *program = tl_walk_program(walk);
    if (!json) {
        tl_print_styled(stdout, TL_STYLE_BOLD, "%s", study->naive->name);
        printf(" under %s: %d line%s, %lld FLOP, %s, %d thread%s\n", walk->script->file, walk->done,
               walk->done == 1 ? "" : "s", (long long)study->flops,
               tl_isa_infos[study->target.isa].text, study->threads,
               study->threads == 1 ? "" : "s");
        tl_findings_print(f, "  ", stdout);
        return;
    }
    tl_text out = { 0 };
    tl_text_add(&out, "{\"record\":\"schedule\"");
    tl_findings_json(f, &out);
    tl_text_add(&out, ",\"kernel\":");
    tl_json_add_text(&out, study->naive->name);
    tl_text_add(&out, ",\"file\":");
    tl_json_add_text(&out, study->kernel_file);
    tl_text_add(&out, ",\"trace\":");
    tl_json_add_text(&out, walk->script->file);
    for (int d = 0; d < study->naive->dim_count; d++) {
        tl_text_add(&out, d ? "," : ",\"dims\":{");
        tl_json_add_text(&out, study->naive->dims[d]->name);
        tl_text_format(&out, ":%lld%s", (long long)study->dims[d],
                       d + 1 == study->naive->dim_count ? "}" : "");
    }
    tl_text_format(&out,
                   ",\"lines\":%d,\"steps\":%d,\"hash\":\"%016llx\",\"isa\":\"%s\","
                   "\"threads\":%d,\"flops\":%lld}\n",
                   walk->done, walk->script->trace->count,
                   (unsigned long long)tl_program_hash(program),
                   tl_isa_infos[study->target.isa].text, study->threads, (long long)study->flops);
    fputs(tl_text_get(&out), stdout);
    tl_text_free(&out);
}

static tl_status run(tl_study *study, const char *trace, const options *o, tl_diag *diag)
{
    const tl_schedule_options *how = &o->how;
    const char *file, *text;
    tl_script script;
    TL_TRY(tl_study_open(study, &o->study, diag));
    TL_TRY(trace_text(study, trace, o->by_default, &file, &text, diag));
    if (o->prompt)
        return tl_schedule_prompt(study, file, text, how->seconds, diag);

    TL_TRY(tl_script_parse(study, file, text, &script, diag));
    tl_walk walk = tl_walk_start(study, &script);
    if (how->html != NULL)
        TL_TRY(tl_schedule_page(study, &walk, how, diag));
    else if (how->step)
        TL_TRY(tl_schedule_steps(study, &walk, how, diag));
    TL_TRY(tl_walk_to_end(&walk, diag));
    if (how->moves)
        return tl_schedule_moves(study, &walk, how, diag);
    if (how->show != NULL)
        TL_TRY(tl_show(study, &walk, how->show, how->json, diag));

    tl_findings f;
    tl_findings_make(study, tl_walk_program(&walk), how->bench, how->verify, how->seconds, &f);
    if (how->verify || how->bench || how->json) {
        if (how->step && !how->json)
            printf("\n");
        print_summary(study, &walk, &f, how->json);
    } else if (how->show == NULL && !how->step && how->html == NULL) {
        TL_TRY(tl_show(study, &walk, "program", false, diag));
    }
    if (f.failed)
        return tl_fail(diag, TL_WRONG_RESULT, "%s", f.problem);
    if (f.problem[0] != '\0')
        return tl_fail(diag, TL_UNSUPPORTED, "%s", f.problem);
    return TL_OK;
}

/* tilth schedule diff A.tr B.tr K.tk */
static tl_status compare(tl_study *study, const char *const paths[2], const options *o,
                         tl_diag *diag)
{
    tl_walk walks[2];
    tl_script scripts[2];
    tl_findings f[2];
    const char *texts[2];
    TL_TRY(tl_study_open(study, &o->study, diag));
    for (int i = 0; i < 2; i++) {
        TL_TRY(tl_study_read(study->arena, paths[i], &texts[i], diag));
        TL_TRY(tl_script_parse(study, shown_name(paths[i]), texts[i], &scripts[i], diag));
        walks[i] = tl_walk_start(study, &scripts[i]);
        TL_TRY(tl_walk_to_end(&walks[i], diag));
        texts[i] = tl_trace_text(study->arena, tl_schedule_trace(walks[i].schedule));
    }
    const tl_program *a = tl_walk_program(&walks[0]), *b = tl_walk_program(&walks[1]);
    tl_line_diff steps = tl_line_diff_make(study->arena, texts[0], texts[1]),
                 lines = tl_program_diff(study->arena, a, b);
    bool same = tl_program_hash(a) == tl_program_hash(b);
    for (int i = 0; i < 2; i++)
        tl_findings_make(study, tl_walk_program(&walks[i]), o->how.bench, o->how.verify,
                         o->how.seconds, &f[i]);
    if (o->how.json) {
        for (int i = 0; i < 2; i++)
            print_summary(study, &walks[i], &f[i], true);
        printf("{\"record\":\"diff\",\"same_program\":%s,\"trace_removed\":%d,\"trace_added\":%d,"
               "\"program_removed\":%d,\"program_added\":%d}\n",
               same ? "true" : "false", steps.removed, steps.added, lines.removed, lines.added);
        return TL_OK;
    }
    printf("--- %s\n+++ %s\n", scripts[0].file, scripts[1].file);
    tl_line_diff_print(&steps, 2, "", stdout);
    if (same)
        printf("\nthe programs are the same (but for names)\n");
    else
        printf("\n");
    if (!same)
        tl_line_diff_print(&lines, 3, "", stdout);
    if (o->how.bench || o->how.verify)
        for (int i = 0; i < 2; i++)
            print_summary(study, &walks[i], &f[i], false);
    return TL_OK;
}

static tl_status check(const options *o, int count, const char *const *paths, bool diff,
                       tl_diag *diag)
{
    int from_stdin = 0;
    for (int i = 0; i < count; i++)
        from_stdin += strcmp(paths[i], "-") == 0;
    if (from_stdin > 1)
        return tl_fail(diag, TL_BAD_ARGUMENT, "only one file can come from standard input");
    if (from_stdin > 0 && o->prompt)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "-i reads commands from standard input, so no file can come from there");
    if (diff && count != 3)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "diff takes two traces and a kernel: "
                       "tilth schedule diff A.tr B.tr K.tk");
    if (diff && (o->prompt || o->how.step || o->how.html || o->how.show || o->by_default))
        return tl_fail(diag, TL_BAD_ARGUMENT, "diff goes with --bench, --verify and --json only");
    if (!diff && count > 2)
        return tl_fail(diag, TL_BAD_ARGUMENT, "one argument too many: '%s'", paths[2]);
    if (count > 1 && o->by_default)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--default stands in the place of a trace: '%s'",
                       paths[1]);
    if (o->prompt && (o->how.json || o->how.html != NULL || o->how.show != NULL || o->how.step ||
                      o->how.bench || o->how.verify))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "-i has commands for --show, --bench, --verify and the like: try help");
    if (o->how.moves && (o->prompt || diff || o->how.step || o->how.html != NULL ||
                         o->how.show != NULL || o->how.bench || o->how.verify))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--moves goes with --try, --limit, --model, --default and --json only");
    if (o->how.moves)
        TL_TRY(tl_schedule_moves_check(&o->how, diag));
    if (!(o->how.seconds > 0 && o->how.seconds <= 3600))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--seconds: %g is not between 0 and 3600",
                       o->how.seconds);
    if (o->how.show != NULL)
        return tl_show_check(o->how.show, diag);
    return TL_OK;
}

static int guarded(int count, const char *const *positional, const options *o)
{
    tl_diag diag = { 0 };
    tl_study study = { 0 };
    bool diff = strcmp(positional[0], "diff") == 0;
    const char *const *paths = positional + diff;
    options own = *o;
    own.how.moves = o->how.moves || o->how.tries != 0;
    tl_status status = check(&own, count - diff, paths, diff, &diag);
    if (status == TL_OK) {
        own.study.kernel = paths[diff ? 2 : 0];
        study.arena = tl_arena_create(0);
        if (study.arena == NULL || TL_ARENA_GUARD(study.arena)) {
            status = tl_fail(&diag, TL_NO_MEMORY, "out of memory");
        } else {
            if (own.how.json)
                tl_print_env_json();
            status = diff ? compare(&study, paths, &own, &diag)
                          : run(&study, count > 1 ? paths[1] : NULL, &own, &diag);
        }
        tl_study_close(&study);
        tl_arena_destroy(study.arena);
    }
    return status == TL_OK ? 0 : tl_report_failure("schedule", status, &diag);
}

int tl_verb_schedule(int argc, char **argv)
{
    options o = { .how = { .seconds = 0.5, .model = "analytic" } };
    const tl_option table[] = {
        { "--show", NULL, TL_OPTION_TEXT, "FORM,..",
          "program, naive, trace, footprint, passes, llvm, asm, loop (the innermost), ptx",
          &o.how.show },
        { "--step", NULL, TL_OPTION_FLAG, NULL, "what every line of the trace changes",
          &o.how.step },
        { "--verify", NULL, TL_OPTION_FLAG, NULL, "compare with the naive program, interpreted",
          &o.how.verify },
        { "--bench", NULL, TL_OPTION_FLAG, NULL, "measure; with --step after every line",
          &o.how.bench },
        { "--seconds", "-s", TL_OPTION_REAL, "S", "how long to measure each program (0.5)",
          &o.how.seconds },
        { "--set", NULL, TL_OPTION_LIST, "DIM=N", "a dim (default: its largest); may be repeated",
          &o.study.sets },
        { "--interactive", "-i", TL_OPTION_FLAG, NULL, "a prompt: type steps, look, undo, save",
          &o.prompt },
        { "--html", NULL, TL_OPTION_TEXT, "FILE", "write one page that steps through the schedule",
          &o.how.html },
        { "--moves", NULL, TL_OPTION_FLAG, NULL,
          "every legal next step, and of a sketch's schedule every other answer, with what a cost "
          "model expects",
          &o.how.moves },
        { "--try", NULL, TL_OPTION_INT, "N",
          "with --moves: check the first N and time each beside what it is now", &o.how.tries },
        { "--limit", NULL, TL_OPTION_INT, "N", "with --moves: show only N (0: all)", &o.how.limit },
        { "--model", NULL, TL_OPTION_TEXT, "NAME", "with --moves: whose expectation (analytic)",
          &o.how.model },
        { "--default", NULL, TL_OPTION_FLAG, NULL, "the schedule a kernel gets without tuning",
          &o.by_default },
        { "--threads", NULL, TL_OPTION_INT, "N", "threads to run on (default: one a usable core)",
          &o.study.threads },
        { "--target", NULL, TL_OPTION_TEXT, tl_target_words,
          "what to compile for (cpu: this machine)", &o.study.target },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &o.how.json },
        { 0 },
    };
    const tl_verb_help help = {
        "schedule",
        "KERNEL.tk [TRACE.tr]",
        "Applies a schedule to a kernel and shows what becomes of it: loops, code, speed, "
        "correctness.",
        "A kernel is the text of a naive program, a trace a list of primitives, one a line; \"-\" "
        "reads either from\n"
        "standard input. Without a trace the kernel stays as written. `tilth schedule diff A.tr "
        "B.tr KERNEL.tk` compares\n"
        "two traces. --verify interprets both programs under all checks where that takes seconds, "
        "else the naive one at a\n"
        "thousand points, and compares the compiled code with both. Percent of peak is the "
        "shortest time against the best\n"
        "sample of a loop of multiply-adds on as many threads, taken in the same rounds.",
        "  tilth schedule gemm.tk gemm.tr --step --bench\n"
        "  tilth schedule gemm.tk gemm.tr --verify --bench --json\n"
        "  tilth schedule gemm.tk gemm.tr --show program,loop\n"
        "  echo 'i, j, k = loops(gemm)' | tilth schedule gemm.tk - --show program\n"
        "  tilth schedule gemm.tk gemm.tr --moves --try 5 --json\n"
        "  tilth schedule gemm.tk -i",
        table,
        1,
        4,
        NULL,
    };
    int count, code;
    const char *positional[4];
    if (!tl_verb_begin(&help, argc, argv, positional, &count, &code))
        return code;
    return guarded(count, positional, &o);
}
