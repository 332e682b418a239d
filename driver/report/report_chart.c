/* driver/report/report_chart.c: charts as inline SVG. Colours are the page's classes, so that they follow light and dark. */
#include <math.h>
#include <stdio.h>
#include "driver/report/html.h"
#include "driver/report/report_chart.h"

enum { WIDTH = 340, HEIGHT = 190, LEFT = 40, RIGHT = 14, TOP = 10, BOTTOM = 32 };
enum { ROOF_WIDTH = 760, ROOF_HEIGHT = 400, ROOF_LEFT = 62, ROOF_BOTTOM = 44 };

/* What charts draw: what lies beyond is at their edge. */
#define LARGEST  1e15
#define SMALLEST 1e-9

/* From values to places on the drawing. */
typedef struct {
    double low, high; /* values at the ends */
    double from, to;  /* places of the ends */
    bool is_log;
} scale;

static double place(const scale *s, double value)
{
    double low = s->low, high = s->high;
    if (s->is_log) {
        low = log10(low);
        high = log10(high);
        value = log10(value);
    }
    double share = high > low ? (value - low) / (high - low) : 0;
    share = !(share > 0) ? 0 : share > 1 ? 1 : share;
    return s->from + share * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten: about so many steps in the range. */
static double nice_step(double range, int steps)
{
    double raw = range / steps, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void add_label(tl_text *out, double x, double y, const char *anchor, const char *text)
{
    tl_text_format(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    tl_html_add(out, text);
    tl_text_add(out, "</text>");
}

static void add_line(tl_text *out, const char *kind, double x1, double y1, double x2, double y2)
{
    tl_text_format(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                   kind, x1, y1, x2, y2);
}

/* A grid line and its number for each step of a linear scale. */
static void add_ticks(tl_text *out, const scale *s, bool is_y, int steps)
{
    double step = nice_step(s->high - s->low, steps), start = ceil(s->low / step) * step;
    for (int i = 0; i <= 3 * steps && start + i * step <= s->high * (1 + 1e-9); i++) {
        char text[32];
        double v = start + i * step, at = place(s, v);
        snprintf(text, sizeof text, "%.6g", fabs(v) < step / 2 ? 0 : v);
        if (is_y) {
            add_line(out, "grid", LEFT, at, WIDTH - RIGHT, at);
            add_label(out, LEFT - 5, at + 3.5, "end", text);
        } else {
            add_line(out, "grid", at, TOP, at, HEIGHT - BOTTOM);
            add_label(out, at, HEIGHT - BOTTOM + 13, "middle", text);
        }
    }
}

/* The scale of gains: as far below 1 as tells slower trials from faster ones, and no further, so that small gains show. */
static scale gains(double best)
{
    double gain = best - 1;
    return (scale){ fmax(0, 1 - fmax(0.1, 2 * gain)), 1 + fmax(0.02, 1.15 * gain), HEIGHT - BOTTOM,
                    TOP, false };
}

void tl_chart_add_curve(tl_text *out, const tl_chart_curve *c)
{
    double x_max = c->x_max, y_max = 1;
    for (int i = 0; i < c->line_count; i++) {
        x_max = c->x_max > 0 ? x_max : fmax(x_max, c->line[i].x);
        y_max = fmax(y_max, c->line[i].y);
    }
    for (int i = 0; i < c->dot_count; i++)
        x_max = c->x_max > 0 ? x_max : fmax(x_max, c->dots[i].x);
    x_max = x_max > 0 && x_max < LARGEST ? x_max : 1;
    y_max = y_max < LARGEST ? y_max : LARGEST;
    const scale x = { 0, x_max, LEFT, WIDTH - RIGHT, false };
    const scale y = gains(y_max);
    tl_text_format(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">", WIDTH, HEIGHT);
    add_ticks(out, &x, false, 4);
    add_ticks(out, &y, true, 4);
    add_line(out, "one", LEFT, place(&y, 1), WIDTH - RIGHT, place(&y, 1));
    for (int i = 0; i < c->dot_count; i++)
        tl_text_format(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.4\"/>",
                       place(&x, c->dots[i].x), place(&y, c->dots[i].y));
    if (c->line_count > 0) {
        tl_text_format(out, "<path class=\"best\" d=\"M%.1f %.1f", place(&x, c->line[0].x),
                       place(&y, c->line[0].y));
        for (int i = 1; i < c->line_count; i++)
            tl_text_format(out, "H%.1fV%.1f", place(&x, c->line[i].x), place(&y, c->line[i].y));
        tl_text_format(out, "H%.1f\"/>", place(&x, x.high));
    }
    add_label(out, WIDTH - RIGHT, HEIGHT - 3, "end", c->x_label);
    add_label(out, 2, HEIGHT - 3, "start", c->y_label);
    tl_text_add(out, "</svg>");
}

/* The roof: bandwidth's slope up to the peak. */
static void add_roof(tl_text *out, const tl_report *r, const scale *x, const scale *y)
{
    double ridge = r->copy_gbs > 0 ? r->peak_gflops / r->copy_gbs : x->low;
    double start = ridge < x->low ? x->low : ridge;
    if (r->copy_gbs > 0 && ridge > x->low)
        tl_text_format(out, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fH%.1f\"/>",
                       place(x, x->low), place(y, fmax(r->copy_gbs * x->low, y->low)),
                       place(x, start), place(y, r->peak_gflops), place(x, x->high));
    else
        add_line(out, "roof", place(x, x->low), place(y, r->peak_gflops), place(x, x->high),
                 place(y, r->peak_gflops));
    char text[80];
    snprintf(text, sizeof text, "peak %.0f GFLOP/s", r->peak_gflops);
    add_label(out, place(x, x->high) - 4, place(y, r->peak_gflops) - 6, "end", text);
    if (r->copy_gbs > 0) {
        snprintf(text, sizeof text, "memory %.1f GB/s", r->copy_gbs);
        double at = sqrt(x->low * fmax(ridge, x->low * 1.01));
        add_label(out, place(x, at) - 6, place(y, fmax(r->copy_gbs * at, y->low)) - 8, "end", text);
    }
}

static bool has_place(const tl_report_task *t)
{
    return t->has_best && t->flops > 0 && t->bytes > 0;
}

static void add_task(tl_text *out, const tl_report_task *t, const scale *x, const scale *y)
{
    double work = (double)t->flops, at = place(x, work / (double)t->bytes);
    double before = place(y, work / t->first.score_ns), after = place(y, work / t->best.score_ns);
    add_line(out, "gain", at, before, at, after);
    tl_text_format(out,
                   "<circle class=\"untuned\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/><circle "
                   "class=\"tuned\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>",
                   at, before, at, after);
    tl_html_add(out, t->name);
    tl_text_format(out, ": %.1f to %.1f GFLOP/s</title></circle>", work / t->first.score_ns,
                   work / t->best.score_ns);
}

/* Powers of ten. */
static void add_log_grid(tl_text *out, const scale *s, bool is_y, double low, double high)
{
    int first = (int)ceil(log10(s->low) - 1e-9), last = (int)floor(log10(s->high) + 1e-9);
    for (int power = first; power <= last; power++) {
        char text[32];
        double v = pow(10, power);
        snprintf(text, sizeof text, "%g", v);
        if (is_y) {
            add_line(out, "grid", low, place(s, v), high, place(s, v));
            add_label(out, low - 6, place(s, v) + 4, "end", text);
        } else {
            add_line(out, "grid", place(s, v), low, place(s, v), high);
            add_label(out, place(s, v), high + 16, "middle", text);
        }
    }
}

void tl_chart_add_roofline(tl_text *out, const tl_report *r)
{
    scale x = { INFINITY, 0, ROOF_LEFT, ROOF_WIDTH - 12, true };
    scale y = { INFINITY, r->peak_gflops, ROOF_HEIGHT - ROOF_BOTTOM, 14, true };
    for (int i = 0; i < r->task_count; i++) {
        const tl_report_task *t = &r->tasks[i];
        if (!has_place(t))
            continue;
        double intensity = (double)t->flops / (double)t->bytes;
        x.low = fmin(x.low, intensity);
        x.high = fmax(x.high, intensity);
        y.low = fmin(y.low, (double)t->flops / fmax(t->first.score_ns, t->best.score_ns));
        y.high = fmax(y.high, (double)t->flops / fmin(t->first.score_ns, t->best.score_ns));
    }
    if (!isfinite(x.low)) {
        tl_text_add(out,
                    "<p class=\"soft\">No task has both a time and a known amount of work.</p>");
        return;
    }
    x.low = fmax(x.low / 2, SMALLEST);
    x.high = fmin(x.high * 2, LARGEST);
    y.low = fmax(y.low / 2, SMALLEST);
    y.high = fmin(y.high * 1.6, LARGEST);
    tl_text_format(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">", ROOF_WIDTH, ROOF_HEIGHT);
    add_log_grid(out, &x, false, y.to, y.from);
    add_log_grid(out, &y, true, x.from, x.to);
    if (r->peak_gflops > 0)
        add_roof(out, r, &x, &y);
    for (int i = 0; i < r->task_count; i++)
        if (has_place(&r->tasks[i]))
            add_task(out, &r->tasks[i], &x, &y);
    add_label(out, x.to, ROOF_HEIGHT - 6, "end", "operations per byte of parameters");
    add_label(out, x.from + 6, y.to + 8, "start", "GFLOP/s");
    tl_text_add(out, "</svg>");
}

void tl_chart_add_bar(tl_text *out, double share)
{
    share = share > 0 ? fmin(share, 1) : 0;
    tl_text_format(
        out,
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\"><rect "
        "class=\"track\" width=\"100\" height=\"8\"/><rect class=\"fill\" width=\"%.2f\" "
        "height=\"8\"/></svg>",
        100 * share);
}

void tl_chart_add_interval(tl_text *out, double low, double middle, double high)
{
    low = fmin(fmax(low, 0), 2);
    middle = fmin(fmax(middle, 0), 2);
    high = fmin(fmax(high, 0), 2);
    double reach = fmax(0.02, fmax(fabs(1 - low), fabs(high - 1))) * 1.15;
    const scale x = { 1 - reach, 1 + reach, 4, 176, false };
    tl_text_add(out, "<svg class=\"interval\" viewBox=\"0 0 180 24\" role=\"img\">");
    add_line(out, "grid", 4, 12, 176, 12);
    add_line(out, "one", place(&x, 1), 2, place(&x, 1), 22);
    add_line(out, high < 1 ? "good" : "unsure", place(&x, low), 12, place(&x, high), 12);
    tl_text_format(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"12\" r=\"4\"/></svg>",
                   high < 1 ? "goodfill" : "unsurefill", place(&x, middle));
}
