/* tuner/dataset/draw_labels.c: a data set as a picture: on the left how far from the standard the points of each sampler
 * are, on the right how sure their labels are. Both are shares of the points up to a value: where a curve rises, there the
 * points are. */
#include <inttypes.h>
#include <math.h>
#include "tuner/dataset/dataset.h"

enum { STEPS = 120, WIDTH = 360, HEIGHT = 240, LEFT = 48, TOP = 56, GAP = 72, BELOW = 56 };

/* Values by their logarithm, from `least` to `most`; what is beyond lies at the end. */
typedef struct {
    const char *title, *axis;
    double least, most;
    const double *ticks; /* 0 ends them */
    const double *marks; /* dashed lines; 0 ends them */
} panel;

typedef struct {
    int64_t count, at[STEPS + 1];
} curve;

static int step_of(const panel *p, double value)
{
    double part = log(value / p->least) / log(p->most / p->least);
    return (int)lround(fmin(fmax(part, 0), 1) * STEPS);
}

static void count(curve *c, const panel *p, double value)
{
    c->at[step_of(p, value)]++;
    c->count++;
}

static double across(double left, const panel *p, double value)
{
    return left + (double)step_of(p, value) * WIDTH / STEPS;
}

static void draw_panel(const panel *p, double left, tl_text *out)
{
    tl_text_format(out, "<text x=\"%g\" y=\"%d\" font-weight=\"bold\">%s</text>\n", left, TOP - 10,
                   p->title);
    for (int i = 0; i <= 4; i++)
        tl_text_format(out,
                       "<path d=\"M%g %dh%d\" stroke=\"#e3e3e3\"/>\n"
                       "<text x=\"%g\" y=\"%d\" text-anchor=\"end\" fill=\"#555\">%d %%</text>\n",
                       left, TOP + HEIGHT * i / 4, WIDTH, left - 6, TOP + HEIGHT * i / 4 + 4,
                       100 - 25 * i);
    for (const double *t = p->ticks; *t != 0; t++)
        tl_text_format(out,
                       "<path d=\"M%g %dv%d\" stroke=\"#e3e3e3\"/>\n"
                       "<text x=\"%g\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n",
                       across(left, p, *t), TOP, HEIGHT, across(left, p, *t), TOP + HEIGHT + 16,
                       *t);
    for (const double *m = p->marks; *m != 0; m++)
        tl_text_format(out, "<path d=\"M%g %dv%d\" stroke=\"#b3261e\" stroke-dasharray=\"5 3\"/>\n",
                       across(left, p, *m), TOP, HEIGHT);
    tl_text_format(out, "<text x=\"%g\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                   left + WIDTH / 2.0, TOP + HEIGHT + 36, p->axis);
}

static const char *const colours[] = { "#8d99ae", "#222222", "#0b6e4f",
                                       "#7b4fa3", "#4f6d9b", "#c77d1e" };
enum { COLOURS = sizeof colours / sizeof *colours };

/* A curve, and its name in the key, line `line` of it. */
static void draw_curve(const curve *c, double left, int line, const char *colour, const char *name,
                       tl_text *out)
{
    int64_t sum = 0;
    tl_text_add(out, "<path d=\"");
    for (int i = 0; i <= STEPS; i++) {
        sum += c->at[i];
        tl_text_format(out, "%s%.1f %.1f", i == 0 ? "M" : "L", left + (double)i * WIDTH / STEPS,
                       TOP + HEIGHT * (1 - (double)sum / (double)c->count));
    }
    tl_text_format(out,
                   "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n"
                   "<text x=\"%g\" y=\"%d\" text-anchor=\"end\" fill=\"%s\">%s</text>\n",
                   colour, left + WIDTH - 6, TOP + HEIGHT - 10 - 16 * line, colour, name);
}

/* The standard's own ratio is 1. */
static bool is_drawn(const tl_data_record *r)
{
    return r->status == TL_RECORD_OK && r->ratio > 0 && r->sampler != TL_SAMPLER_DEFAULT;
}

void tl_dataset_draw(const tl_dataset *set, tl_text *out)
{
    static const double ratio_ticks[] = { 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 0 },
                        error_ticks[] = { 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0 },
                        standard[] = { 1, 0 }, wanted[] = { 0.02, 0.05, 0 };
    const panel ratios = { "Points by sampler",
                           "time over that of the default schedule",
                           0.25,
                           64,
                           ratio_ticks,
                           standard },
                errors = { "How sure the labels are",
                           "standard error of log(ratio)",
                           0.002,
                           0.2,
                           error_ticks,
                           wanted };
    const double right = LEFT + WIDTH + GAP;
    curve by_sampler[TL_SAMPLER_COUNT] = { 0 }, by_speed[2] = { 0 };
    int line = 0;
    int64_t points = 0;

    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *s = tl_map_at(set->series, i).value;
        for (int k = 0; k < s->count; k++) {
            const tl_data_record *r = &s->records[k];
            if (!is_drawn(r))
                continue;
            points++;
            count(&by_sampler[r->sampler], &ratios, r->ratio);
            if (r->ratio_error > 0)
                count(&by_speed[r->ratio > 3], &errors, r->ratio_error);
        }
    }
    tl_text_format(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                   "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                   "<text x=\"%d\" y=\"22\" font-size=\"15\">%" PRId64
                   " points of %zu tasks: share of those up to a value</text>\n",
                   LEFT + 2 * WIDTH + GAP + 24, TOP + HEIGHT + BELOW, LEFT, points,
                   tl_map_count(set->tasks));
    draw_panel(&ratios, LEFT, out);
    draw_panel(&errors, right, out);
    for (int i = TL_SAMPLER_COUNT - 1; i >= 0; i--)
        if (by_sampler[i].count > 0)
            draw_curve(&by_sampler[i], LEFT, line++, colours[i % COLOURS], tl_sampler_texts[i],
                       out);
    if (by_speed[1].count > 0)
        draw_curve(&by_speed[1], right, 0, "#c77d1e", "more than three times slower (5 % wanted)",
                   out);
    if (by_speed[0].count > 0)
        draw_curve(&by_speed[0], right, 1, "#0b6e4f", "others (2 % wanted)", out);
    tl_text_add(out, "</svg>\n");
}
