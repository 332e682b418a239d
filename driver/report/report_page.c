/* driver/report/report_page.c: the page of `tilth report`. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "driver/cli/line_diff.h"
#include "driver/report/html.h"
#include "driver/report/report_chart.h"

enum { MOST_DOTS = 300, MOST_REASONS = 12, MOST_DIFF_LINES = 400 };

/* clang-format off */
static const char *const style[] = {
    ":root{color-scheme:light dark;--bg:#faf9f7;--card:#fff;--ink:#20242b;--soft:#666c76;--line:#e2dfd9;--accent:#2f6db5;\n",
    "--fill:#2f6db5;--track:#e8e5de;--dot:#9db4cf;--good:#1d7a43;--bad:#b3372f;--add:#e0f3e2;--addink:#14582a;\n",
    "--del:#fbe4e2;--delink:#8c1d18;--roof:#a06a00}\n",
    "@media(prefers-color-scheme:dark){:root{--bg:#15171b;--card:#1d2025;--ink:#dfe2e7;--soft:#9aa1ac;--line:#31353d;\n",
    "--accent:#7fb0ee;--fill:#5b93da;--track:#2b2f36;--dot:#47617f;--good:#6cc48a;--bad:#ef8f87;--add:#16351f;\n",
    "--addink:#9fe0ae;--del:#40201f;--delink:#f0a8a2;--roof:#d9a441}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\n",
    "header,main{max-width:1180px;margin:0 auto;padding:0 18px}\n",
    "header{padding-top:26px}\n",
    "h1{font-size:25px;margin:0 0 2px;overflow-wrap:anywhere}\n",
    "h2{font-size:19px;margin:38px 0 10px}\n",
    "h3{font-size:15px;margin:0;overflow-wrap:anywhere}\n",
    "p{margin:4px 0 12px;max-width:78ch}\n",
    ".soft{color:var(--soft)}\n",
    "nav{margin:10px 0 0;display:flex;flex-wrap:wrap;gap:2px 14px}\n",
    "a{color:var(--accent)}\n",
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:18px 0}\n",
    ".tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px;min-width:0}\n",
    ".tile b{display:block;font-size:23px;line-height:1.25;font-variant-numeric:tabular-nums}\n",
    ".tile span{color:var(--soft);font-size:13px}\n",
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr));gap:14px}\n",
    ".card .pair{display:grid;grid-template-columns:1fr 1fr;gap:6px;margin-top:8px}\n",
    "@media(max-width:560px){.card .pair{grid-template-columns:1fr}}\n",
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}\n",
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}\n",
    "th,td{padding:6px 12px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}\n",
    "tr:last-child td{border-bottom:0}\n",
    "th{color:var(--soft);font-weight:600;font-size:13px}\n",
    ".l{text-align:left}.wrap{white-space:normal;min-width:220px;overflow-wrap:anywhere}\n",
    "td svg.bar{width:90px;height:8px}td svg.interval{width:180px;height:24px;vertical-align:middle}\n",
    "svg{display:block;width:100%;height:auto}\n",
    "svg text{font:11px system-ui,sans-serif;fill:var(--soft)}\n",
    "#roofline svg text{font-size:10px}\n",
    ".grid{stroke:var(--line);stroke-width:1}.one{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3}\n",
    ".dot{fill:var(--dot)}.best{fill:none;stroke:var(--accent);stroke-width:2}\n",
    ".roof{fill:none;stroke:var(--roof);stroke-width:2}.gain{stroke:var(--dot);stroke-width:2}\n",
    ".untuned{fill:var(--card);stroke:var(--soft);stroke-width:1.5}.tuned{fill:var(--fill)}\n",
    ".track{fill:var(--track)}.fill{fill:var(--fill)}\n",
    ".good{stroke:var(--good);stroke-width:3}.unsure{stroke:var(--soft);stroke-width:3}\n",
    ".goodfill{fill:var(--good)}.unsurefill{fill:var(--soft)}\n",
    ".up{color:var(--good)}.down{color:var(--bad)}\n",
    "details{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 10px}\n",
    "summary{padding:9px 14px;cursor:pointer;overflow-wrap:anywhere}\n",
    "pre{margin:0;padding:8px 0;overflow-x:auto;font:12.5px/1.5 ui-monospace,'DejaVu Sans Mono',monospace;\n",
    "border-top:1px solid var(--line)}\n",
    "pre div{padding:0 14px;white-space:pre;min-width:max-content;min-height:1.5em}\n",
    ".add{background:var(--add);color:var(--addink)}.del{background:var(--del);color:var(--delink)}\n",
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:0}\n",
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n",
    "footer{color:var(--soft);font-size:13px;margin:34px 0 30px}\n",
    NULL,
};
/* clang-format on */

static void add_time(tl_text *out, double ns)
{
    if (!(ns > 0))
        tl_text_add(out, "–");
    else if (ns < 1e6)
        tl_text_format(out, "%.2f µs", ns * 1e-3);
    else
        tl_text_format(out, "%.3f ms", ns * 1e-6);
}

static void add_date(tl_text *out, int64_t us)
{
    time_t t = (time_t)(us / 1000000);
    struct tm utc;
    char text[64];
    if (gmtime_r(&t, &utc) == NULL || strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc) == 0)
        snprintf(text, sizeof text, "?");
    tl_text_add(out, text);
}

static void add_duration(tl_text *out, double s)
{
    if (s < 120)
        tl_text_format(out, "%.1f s", s);
    else if (s < 7200)
        tl_text_format(out, "%.1f min", s / 60);
    else
        tl_text_format(out, "%.1f h", s / 3600);
}

static void add_ratio(tl_text *out, double gain)
{
    const char *kind = gain > 1.005 ? "up" : gain < 0.995 ? "down" : "";
    tl_text_format(out, "<b class=\"%s\">%.2f×</b>", kind, gain);
}

static void add_tile(tl_text *out, const char *number, const char *words)
{
    tl_text_add(out, "<div class=\"tile\"><b>");
    tl_html_add(out, number);
    tl_text_add(out, "</b><span>");
    tl_html_add(out, words);
    tl_text_add(out, "</span></div>\n");
}

static void add_tiles(tl_text *out, const tl_report *r)
{
    char number[64], words[96];
    tl_text duration = { 0 };
    tl_text_add(out, "<div class=\"tiles\">\n");
    snprintf(number, sizeof number, "%d", r->task_count);
    snprintf(words, sizeof words, "task%s in %d session%s", r->task_count == 1 ? "" : "s",
             r->session_count, r->session_count == 1 ? "" : "s");
    add_tile(out, number, words);
    snprintf(number, sizeof number, "%" PRId64, r->trials);
    snprintf(words, sizeof words, "trials, %" PRId64 " of them failed",
             r->trials - r->by_status[TL_RECORD_OK]);
    add_tile(out, number, words);
    add_duration(&duration, r->seconds);
    snprintf(words, sizeof words, "of tuning; %.1f trials a second",
             r->seconds > 0 ? (double)r->trials / r->seconds : 0);
    add_tile(out, tl_text_get(&duration), words);
    tl_text_free(&duration);
    snprintf(number, sizeof number, "%.2f×", r->mean_gain);
    add_tile(out, number, "geometric mean gain of a task over its default schedule");
    tl_text_add(out, "</div>\n");
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void add_choices(tl_text *out, const tl_report *r)
{
    tl_text_add(out, "<section id=\"models\"><h2>Whole models</h2>\n");
    if (r->choice_count == 0) {
        tl_text_add(out, "<p class=\"soft\">No model was compared as a whole.</p></section>\n");
        return;
    }
    tl_text_add(
        out, "<p class=\"soft\">Tuned and untuned were run in alternation at the end of tuning. "
             "The tuned "
             "set is kept only when the 95 % confidence interval of the ratio lies below "
             "1.</p>\n<div class=\"scroll\"><table><tr><th class=\"l\">model</th><th>untuned</th>"
             "<th>tuned</th><th>gain</th><th class=\"l\">time, tuned over untuned</th><th "
             "class=\"l\"></th><th>kernels</th><th>kept</th><th>largest difference</th>"
             "<th>threads</th></tr>\n");
    for (int i = 0; i < r->choice_count; i++) {
        const tl_choice *c = &r->choices[i];
        tl_text_add(out, "<tr><td class=\"l\">");
        tl_html_add(out, c->name);
        tl_text_add(out, "</td><td>");
        add_time(out, c->untuned_ns);
        tl_text_add(out, "</td><td>");
        add_time(out, c->tuned_ns);
        tl_text_add(out, "</td><td>");
        const char *kind = c->ratio_high < 1 ? "up" : c->ratio_low > 1 ? "down" : "";
        tl_text_format(out, "<b class=\"%s\">%.2f×</b>", kind, c->ratio > 0 ? 1 / c->ratio : 1);
        tl_text_format(out, "</td><td class=\"l\">%.4f (%.4f to %.4f)</td><td>", c->ratio,
                       c->ratio_low, c->ratio_high);
        tl_chart_add_interval(out, c->ratio_low, c->ratio, c->ratio_high);
        tl_text_format(out, "</td><td>%d</td><td>%s</td><td>%.1e</td><td>%d</td></tr>\n",
                       count_lines(c->picks), c->kept ? "tuned" : "default", c->max_error,
                       c->threads);
    }
    tl_text_add(out, "</table></div></section>\n");
}

static double percent_of_peak(const tl_report *r, const tl_report_task *t)
{
    bool known = r->peak_gflops > 0 && t->has_best && t->flops > 0;
    return known ? 100 * (double)t->flops / t->best.score_ns / r->peak_gflops : -1;
}

static void add_task_row(tl_text *out, const tl_report *r, int index)
{
    const tl_report_task *t = &r->tasks[index];
    char key[9];
    snprintf(key, sizeof key, "%s", t->workload);
    tl_text_format(out, "<tr><td class=\"l\"><a href=\"#task%d\">", index);
    tl_html_add(out, t->name);
    tl_text_add(out, "</a></td><td>");
    add_ratio(out, t->gain);
    tl_text_add(out, "</td><td>");
    add_time(out, t->has_best ? t->first.score_ns : 0);
    tl_text_add(out, "</td><td>");
    add_time(out, t->has_best ? t->best.score_ns : 0);
    double percent = percent_of_peak(r, t);
    if (percent >= 0) {
        tl_text_format(out, "</td><td>%.1f %%</td><td>", percent);
        tl_chart_add_bar(out, percent / 100);
    } else {
        tl_text_add(out, "</td><td>–</td><td>");
    }
    tl_text_format(out, "</td><td>%d</td><td>%d</td><td>%.2f</td><td class=\"l\">", t->count,
                   t->failed, (double)t->flops * 1e-6);
    tl_html_add(out, t->has_best ? t->best.lowering : "");
    tl_text_format(out, "</td><td class=\"l\">%s cold, %d thread%s</td><td class=\"l\"><code>",
                   tl_cold_infos[t->cold].text, t->threads, t->threads == 1 ? "" : "s");
    tl_html_add(out, key);
    tl_text_add(out, "</code></td></tr>\n");
}

static void add_tasks(tl_text *out, const tl_report *r)
{
    tl_text_add(out,
                "<section id=\"tasks\"><h2>Tasks</h2>\n<p class=\"soft\">Untuned is the default "
                "schedule, the first that is measured; times are corrected by what the incumbent "
                "took in the same rounds. Percent of peak counts the work of the direct "
                "lowering: one that multiplies less may exceed it.</p>\n<div "
                "class=\"scroll\"><table><tr><th "
                "class=\"l\">kernel</th><th>gain</th><th>untuned</th><th>best</th><th>of peak</th>"
                "<th></th><th>trials</th><th>failed</th><th>MFLOP</th><th class=\"l\">lowering</th>"
                "<th class=\"l\">measured</th><th class=\"l\">workload</th></tr>\n");
    for (int i = 0; i < r->task_count; i++)
        add_task_row(out, r, i);
    tl_text_add(out, "</table></div></section>\n");
}

/* 0: it has none. */
static double gain_of(const tl_report_trial *trial)
{
    return trial->score_ns > 0 ? trial->first->score_ns / trial->score_ns : 0;
}

/* The best so far as steps, over trials or seconds; and each trial. */
static void add_curves(tl_text *out, const tl_report *r, const tl_report_task *t)
{
    tl_chart_point *steps = TL_NEW_ARRAY(r->arena, tl_chart_point, t->count);
    tl_chart_point *times = TL_NEW_ARRAY(r->arena, tl_chart_point, t->count);
    tl_chart_point *dots = TL_NEW_ARRAY(r->arena, tl_chart_point, t->count);
    int steps_count = 0, dot_count = 0, every = 1 + t->count / MOST_DOTS;
    double best = 0;
    for (int i = 0; i < t->count; i++) {
        const tl_report_trial *trial = &t->trials[i];
        if (trial->score_ns == 0)
            continue;
        double gain = gain_of(trial);
        bool is_better = gain > best;
        best = is_better ? gain : best;
        if (i % every == 0 || is_better)
            dots[dot_count++] = (tl_chart_point){ i + 1, gain };
        if (!is_better)
            continue;
        steps[steps_count] = (tl_chart_point){ i + 1, best };
        times[steps_count++] = (tl_chart_point){ trial->seconds, best };
    }
    tl_text_add(out, "<div class=\"pair\">");
    tl_chart_add_curve(out, &(tl_chart_curve){ .x_label = "trials",
                                               .y_label = "gain",
                                               .dots = dots,
                                               .line = steps,
                                               .dot_count = dot_count,
                                               .line_count = steps_count,
                                               .x_max = t->count });
    tl_chart_add_curve(out, &(tl_chart_curve){ .x_label = "seconds of the run",
                                               .y_label = "gain",
                                               .line = times,
                                               .line_count = steps_count,
                                               .x_max = r->seconds });
    tl_text_add(out, "</div>");
}

typedef struct {
    int64_t created_us, sequence;
    int task;
    double seconds, gain;
} moment;

static int by_moment(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* All tasks in one: the geometric mean of the gains so far, over all trials; or over those of one policy (-1: all). */
static void add_overall(tl_text *out, const tl_report *r, int policy)
{
    int total = 0, n = 0, judged = 0;
    for (int t = 0; t < r->task_count; t++)
        total += r->tasks[t].has_best ? r->tasks[t].count : 0;
    moment *all = TL_NEW_ARRAY(r->arena, moment, total);
    double *best = TL_NEW_ARRAY(r->arena, double, r->task_count);
    for (int t = 0; t < r->task_count; t++) {
        for (int i = 0; i < r->tasks[t].count && r->tasks[t].has_best; i++) {
            const tl_report_trial *trial = &r->tasks[t].trials[i];
            if (policy >= 0 && trial->policy != policy)
                continue;
            best[t] = 1;
            all[n++] =
                (moment){ trial->created_us, trial->sequence, t, trial->seconds, gain_of(trial) };
        }
        judged += best[t] > 0;
    }
    if (n == 0)
        return;
    qsort(all, (size_t)n, sizeof *all, by_moment);
    tl_chart_point *steps = TL_NEW_ARRAY(r->arena, tl_chart_point, n + 1);
    tl_chart_point *times = TL_NEW_ARRAY(r->arena, tl_chart_point, n + 1);
    int count = 0;
    double sum = 0;
    steps[count] = (tl_chart_point){ 0, 1 };
    times[count++] = (tl_chart_point){ 0, 1 };
    for (int i = 0; i < n; i++) {
        if (all[i].gain <= best[all[i].task])
            continue;
        sum += log(all[i].gain / best[all[i].task]);
        best[all[i].task] = all[i].gain;
        steps[count] = (tl_chart_point){ i + 1, exp(sum / judged) };
        times[count++] = (tl_chart_point){ all[i].seconds, exp(sum / judged) };
    }
    tl_text_format(out,
                   "<div class=\"card\"><h3>All tasks%s%s: geometric mean of the gains</h3><div "
                   "class=\"pair\">",
                   policy >= 0 ? ", policy " : "", policy >= 0 ? r->policies[policy] : "");
    tl_chart_add_curve(out, &(tl_chart_curve){ .x_label = "trials of all tasks",
                                               .y_label = "gain",
                                               .line = steps,
                                               .line_count = count,
                                               .x_max = total });
    tl_chart_add_curve(out, &(tl_chart_curve){ .x_label = "seconds of the run",
                                               .y_label = "gain",
                                               .line = times,
                                               .line_count = count,
                                               .x_max = r->seconds });
    tl_text_add(out, "</div></div>\n");
}

static void add_search(tl_text *out, const tl_report *r)
{
    tl_text_add(out,
                "<section id=\"search\"><h2>Search</h2>\n<p class=\"soft\">The best so far against "
                "the default schedule (1, dashed); a dot is a trial, those far slower lie on the "
                "bottom line. Sessions follow one another without the time between them.</p>\n");
    add_overall(out, r, -1);
    for (int i = 0; i < r->policy_count && r->policy_count > 1; i++)
        add_overall(out, r, i);
    tl_text_add(out, "<br><div class=\"cards\">\n");
    for (int i = 0; i < r->task_count; i++) {
        const tl_report_task *t = &r->tasks[i];
        tl_text_format(out, "<div class=\"card\" id=\"task%d\"><h3>", i);
        tl_html_add(out, t->name);
        tl_text_add(out, " ");
        add_ratio(out, t->gain);
        tl_text_add(out, "</h3>");
        if (t->has_best) {
            add_curves(out, r, t);
            tl_text_format(out, "<a href=\"#schedule%d\">schedule</a>", i);
        } else {
            tl_text_add(out, "<p class=\"soft\">Nothing right was measured.</p>");
        }
        tl_text_add(out, "</div>\n");
    }
    tl_text_add(out, "</div></section>\n");
}

static void add_failures(tl_text *out, const tl_report *r)
{
    int64_t most = 1, failed = r->trials - r->by_status[TL_RECORD_OK];
    tl_text_add(out, "<section id=\"failures\"><h2>Failures</h2>\n");
    if (failed == 0) {
        tl_text_add(out, "<p class=\"soft\">No trial failed.</p></section>\n");
        return;
    }
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++)
        if (i != TL_RECORD_OK && r->by_status[i] > most)
            most = r->by_status[i];
    tl_text_format(
        out,
        "<p class=\"soft\">%" PRId64 " of %" PRId64 " trials (%.1f %%).</p>\n<div "
        "class=\"scroll\"><table><tr><th class=\"l\">kind</th><th>trials</th><th></th><th "
        "class=\"l\">what it means</th></tr>\n",
        failed, r->trials, 100.0 * (double)failed / (double)r->trials);
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++) {
        if (i == TL_RECORD_OK || r->by_status[i] == 0)
            continue;
        tl_text_format(out, "<tr><td class=\"l\">%s</td><td>%" PRId64 "</td><td>",
                       tl_record_status_infos[i].text, r->by_status[i]);
        tl_chart_add_bar(out, (double)r->by_status[i] / (double)most);
        tl_text_format(out, "</td><td class=\"l wrap\">%s</td></tr>\n",
                       tl_record_status_infos[i].words);
    }
    tl_text_add(out, "</table></div>\n<br><div class=\"scroll\"><table><tr><th>trials</th><th "
                     "class=\"l\">kind</th>"
                     "<th class=\"l\">reason (N: any number)</th></tr>\n");
    for (int i = 0; i < r->reason_count && i < MOST_REASONS; i++) {
        tl_text_format(out, "<tr><td>%" PRId64 "</td><td class=\"l\">%s</td><td class=\"l wrap\">",
                       r->reasons[i].count, tl_record_status_infos[r->reasons[i].status].text);
        tl_html_add(out, r->reasons[i].text);
        tl_text_add(out, "</td></tr>\n");
    }
    tl_text_add(out, "</table></div></section>\n");
}

/* The winner's trace, marked where it differs from the default's. */
static void add_schedule(tl_text *out, const tl_report *r, int index)
{
    const tl_report_task *t = &r->tasks[index];
    tl_line_diff diff = tl_line_diff_make(r->arena, t->first.trace, t->best.trace);
    tl_text_format(out, "<details id=\"schedule%d\"><summary>", index);
    tl_html_add(out, t->name);
    tl_text_add(out, " ");
    add_ratio(out, t->gain);
    tl_text_add(out, " <span class=\"soft\">");
    if (diff.added + diff.removed == 0)
        tl_text_add(out, "the default schedule");
    else
        tl_text_format(out, "%d lines added, %d removed", diff.added, diff.removed);
    tl_text_add(out, ", lowering ");
    tl_html_add(out, t->best.lowering);
    if (strcmp(t->best.lowering, t->first.lowering) != 0) {
        tl_text_add(out, " instead of ");
        tl_html_add(out, t->first.lowering);
    }
    tl_text_format(out, ", record %.8s</span></summary><pre>", t->best.uid);
    for (int i = 0; i < diff.count && i < MOST_DIFF_LINES; i++) {
        char mark = diff.lines[i].mark;
        tl_text_format(out, "<div%s>%c ",
                       mark == '+'   ? " class=\"add\""
                       : mark == '-' ? " class=\"del\""
                                     : "",
                       mark);
        tl_html_add(out, diff.lines[i].text);
        tl_text_add(out, "</div>");
    }
    if (diff.count > MOST_DIFF_LINES)
        tl_text_format(out, "<div>… %d lines more</div>", diff.count - MOST_DIFF_LINES);
    tl_text_add(out, "</pre></details>\n");
}

static void add_schedules(tl_text *out, const tl_report *r)
{
    tl_text_add(out, "<section id=\"schedules\"><h2>Schedules</h2>\n<p class=\"soft\">Each task's "
                     "fastest, as the "
                     "difference from its default schedule.</p>\n");
    for (int i = 0; i < r->task_count; i++)
        if (r->tasks[i].has_best)
            add_schedule(out, r, i);
    tl_text_add(out, "</section>\n");
}

static void add_fact(tl_text *out, const char *name, const char *value)
{
    tl_text_add(out, "<dt>");
    tl_html_add(out, name);
    tl_text_add(out, "</dt><dd>");
    tl_html_add(out, value);
    tl_text_add(out, "</dd>\n");
}

static void add_json_fact(tl_text *out, const char *name, const json_t *value)
{
    char number[64];
    size_t size = strlen(name);
    if (json_is_string(value)) {
        add_fact(out, name, json_string_value(value));
    } else if (json_is_number(value)) {
        double n = json_number_value(value);
        if (size > 6 && strcmp(name + size - 6, "_bytes") == 0)
            snprintf(number, sizeof number, "%.4g MiB", n / 1048576);
        else
            snprintf(number, sizeof number, "%.8g", n);
        add_fact(out, name, number);
    }
}

static void add_environment(tl_text *out, const tl_report *r)
{
    char text[96];
    const char *name;
    json_t *value, *root = json_loads(r->environment, JSON_REJECT_DUPLICATES, NULL);
    tl_text dates = { 0 };
    tl_text_add(out,
                "<section id=\"environment\"><h2>Environment</h2>\n<div class=\"card\"><dl>\n");
    json_object_foreach(root, name, value) add_json_fact(out, name, value);
    json_decref(root);
    if (r->task_count > 0) {
        add_fact(out, "target", r->tasks[0].target);
        add_fact(out, "numerics", r->tasks[0].numerics);
    }
    snprintf(text, sizeof text, "%d", r->revision);
    add_fact(out, "code generator", text);
    add_date(&dates, r->first_us);
    tl_text_add(&dates, " to ");
    add_date(&dates, r->last_us);
    add_fact(out, "measured", tl_text_get(&dates));
    tl_text_free(&dates);
    snprintf(text, sizeof text, "building %.1f s, checking and timing %.1f s", r->build_ns * 1e-9,
             r->run_ns * 1e-9);
    add_fact(out, "spent", text);
    if (r->stale > 0) {
        snprintf(text, sizeof text, "%" PRId64 " records of other revisions of the code generator",
                 r->stale);
        add_fact(out, "left out", text);
    }
    tl_text_add(out, "</dl></div></section>\n");
}

void tl_report_page(const tl_report *r, tl_text *out)
{
    tl_text_add(out,
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'\">\n<title>tilth: tuning report</title>\n<style>\n");
    for (int i = 0; style[i] != NULL; i++)
        tl_text_add(out, style[i]);
    tl_text_add(out,
                "</style>\n</head>\n<body>\n<header><h1>Tuning report</h1>\n<div class=\"soft\">");
    tl_html_add(out, r->path);
    tl_text_add(out, "</div>\n<nav><a href=\"#models\">models</a><a href=\"#tasks\">tasks</a><a "
                     "href=\"#search\">search</a><a href=\"#roofline\">roofline</a><a "
                     "href=\"#failures\">failures</a><a href=\"#schedules\">schedules</a><a "
                     "href=\"#environment\">environment</a></nav>\n</header>\n<main>\n");
    add_tiles(out, r);
    add_choices(out, r);
    add_tasks(out, r);
    add_search(out, r);
    tl_text_add(out,
                "<section id=\"roofline\"><h2>Roofline</h2>\n<p class=\"soft\">Each task untuned "
                "(hollow) and tuned (filled). Work in caches may lie above the line of the "
                "memory.</p>\n<div class=\"card\">");
    tl_chart_add_roofline(out, r);
    tl_text_add(out, "</div></section>\n");
    add_failures(out, r);
    add_schedules(out, r);
    add_environment(out, r);
    tl_text_add(
        out,
        "<footer>Made by tilth report. Nothing in this page is loaded from elsewhere.</footer>\n"
        "</main>\n</body>\n</html>\n");
}
