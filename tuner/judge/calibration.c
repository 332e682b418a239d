/* tuner/judge/calibration.c: predicted deviations against errors that were made. */
#include <math.h>
#include <stdlib.h>
#include "tuner/judge/metrics.h"

/* A program: the deviation that is expected of what was measured from what is predicted, and how far it is. */
typedef struct {
    double expected, made;
} miss;

static int by_expected(const void *x, const void *y)
{
    const miss *a = x, *b = y;
    return a->expected != b->expected ? (a->expected < b->expected ? -1 : 1) : 0;
}

static double variance_of(const tl_judged *d, const float *variance, int p)
{
    double error = d->error != NULL ? (double)d->error[p] : 0;
    return fmax((double)variance[p], 0) + error * error;
}

static bool counts(const tl_judged *d, const float *mean, const float *variance, int p)
{
    return isfinite(d->label[p]) && isfinite(mean[p]) && isfinite(variance[p]) &&
           variance_of(d, variance, p) > 0;
}

/* The constant by which a task's labels are above what is predicted, the sure ones counting more. */
static void find_offsets(const tl_judged *d, const float *mean, const float *variance,
                         double *offset, double *weight)
{
    for (int p = 0; p < d->count; p++) {
        if (!counts(d, mean, variance, p))
            continue;
        double w = 1 / variance_of(d, variance, p);
        offset[d->task[p]] += w * ((double)d->label[p] - (double)mean[p]);
        weight[d->task[p]] += w;
    }
    for (int t = 0; t < d->task_count; t++)
        offset[t] /= weight[t] > 0 ? weight[t] : 1;
}

static int find_misses(const tl_judged *d, const float *mean, const float *variance,
                       const double *offset, miss *out)
{
    int count = 0;
    for (int p = 0; p < d->count; p++)
        if (counts(d, mean, variance, p))
            out[count++] = (miss){ sqrt(variance_of(d, variance, p)),
                                   (double)d->label[p] - (double)mean[p] - offset[d->task[p]] };
    return count;
}

static void fill(const miss *misses, int count, tl_calibration *out)
{
    double squares = 0;
    for (int i = 0; i < count; i++) {
        double z = fabs(misses[i].made) / misses[i].expected;
        int bin = (int)((int64_t)i * TL_CALIBRATION_BINS / count);
        squares += z * z;
        out->within_1 += z <= 1;
        out->within_2 += z <= 2;
        out->bins[bin].expected += misses[i].expected * misses[i].expected;
        out->bins[bin].made += misses[i].made * misses[i].made;
        out->bins[bin].count++;
    }
    out->count = count;
    out->within_1 /= count;
    out->within_2 /= count;
    out->spread = sqrt(squares / count);
    for (int b = 0; b < TL_CALIBRATION_BINS; b++)
        if (out->bins[b].count > 0) {
            out->bins[b].expected = sqrt(out->bins[b].expected / out->bins[b].count);
            out->bins[b].made = sqrt(out->bins[b].made / out->bins[b].count);
        }
}

tl_status tl_calibrate(const tl_judged *d, const float *mean, const float *variance,
                       tl_calibration *out, tl_diag *diag)
{
    double *sums = calloc(2 * (size_t)d->task_count + 1, sizeof *sums);
    miss *misses = calloc((size_t)d->count + 1, sizeof *misses);
    *out = (tl_calibration){ 0 };
    if (sums == NULL || misses == NULL) {
        free(sums);
        free(misses);
        return tl_fail(diag, TL_NO_MEMORY, "judging: out of memory");
    }
    find_offsets(d, mean, variance, sums, sums + d->task_count);
    int count = find_misses(d, mean, variance, sums, misses);
    qsort(misses, (size_t)count, sizeof *misses, by_expected);
    if (count > 0)
        fill(misses, count, out);
    free(sums);
    free(misses);
    return TL_OK;
}

/* --- pictures
 * --------------------------------------------------------------------------------------------------------- */

void tl_calibration_print(const tl_calibration *c, tl_text *out)
{
    enum { BAR = 40 };
    double most = 1e-9;
    for (int b = 0; b < TL_CALIBRATION_BINS; b++)
        most = fmax(most, fmax(c->bins[b].expected, c->bins[b].made));
    tl_text_format(
        out, "  expected   made    of each tenth, the surest first (= as expected, | made)\n");
    for (int b = 0; b < TL_CALIBRATION_BINS; b++) {
        if (c->bins[b].count == 0)
            continue;
        int expected = (int)lround(c->bins[b].expected / most * BAR);
        int made = (int)lround(c->bins[b].made / most * BAR);
        tl_text_format(out, "  %7.3f  %7.3f  ", c->bins[b].expected, c->bins[b].made);
        for (int i = 0; i <= expected || i <= made; i++)
            tl_text_add(out, i == made ? "|" : i <= expected ? "=" : " ");
        tl_text_add(out, "\n");
    }
}

/* Where a deviation lies on an axis of octaves from 2^-7 to 2^2. */
static double place(double deviation, double size)
{
    double octaves = log2(fmin(fmax(deviation, 0x1p-7), 4));
    return (octaves + 7) / 9 * size;
}

static void add_escaped(tl_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&' || *text == '>')
            tl_text_add(out, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;");
        else
            tl_text_add_bytes(out, text, 1);
    }
}

void tl_calibration_draw(const tl_calibration *c, const char *title, tl_text *out)
{
    enum { SIZE = 360, LEFT = 56, TOP = 34 };
    tl_text_format(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                   "font-family=\"sans-serif\" font-size=\"12\">\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                   "<text x=\"%d\" y=\"20\" font-size=\"14\">",
                   SIZE + LEFT + 24, SIZE + TOP + 48, LEFT);
    add_escaped(out, title);
    tl_text_add(out, "</text>\n");
    for (int o = -7; o <= 2; o++) {
        double at = place(exp2(o), SIZE);
        tl_text_format(out,
                       "<path d=\"M%g %dv%dM%d %gh%d\" stroke=\"#ddd\"/>\n"
                       "<text x=\"%g\" y=\"%d\" text-anchor=\"middle\">%.2g</text>\n"
                       "<text x=\"%d\" y=\"%g\" text-anchor=\"end\">%.2g</text>\n",
                       LEFT + at, TOP, SIZE, LEFT, TOP + SIZE - at, SIZE, LEFT + at,
                       TOP + SIZE + 16, exp2(o), LEFT - 6, TOP + SIZE - at + 4, exp2(o));
    }
    tl_text_format(out,
                   "<path d=\"M%d %dL%d %d\" stroke=\"#888\" stroke-dasharray=\"4\"/>\n"
                   "<path d=\"M%d %dv%dh%d\" stroke=\"black\" fill=\"none\"/>\n"
                   "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">expected deviation of log(time)"
                   "</text>\n<text x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\" "
                   "text-anchor=\"middle\">made</text>\n",
                   LEFT, TOP + SIZE, LEFT + SIZE, TOP, LEFT, TOP, SIZE, SIZE, LEFT + SIZE / 2,
                   TOP + SIZE + 36, TOP + SIZE / 2, TOP + SIZE / 2);
    for (int b = 0; b < TL_CALIBRATION_BINS; b++)
        if (c->bins[b].count > 0)
            tl_text_format(out, "<circle cx=\"%g\" cy=\"%g\" r=\"5\" fill=\"#27c\"/>\n",
                           LEFT + place(c->bins[b].expected, SIZE),
                           TOP + SIZE - place(c->bins[b].made, SIZE));
    tl_text_add(out, "</svg>\n");
}
