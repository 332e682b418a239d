/* driver/report/report_chart.h: charts of a report: <svg> elements that take the page's colours. */
#ifndef TL_DRIVER_REPORT_REPORT_CHART_H
#define TL_DRIVER_REPORT_REPORT_CHART_H
#include "driver/report/report.h"

typedef struct {
    double x, y;
} tl_chart_point;
typedef struct {
    const char *x_label, *y_label;
    const tl_chart_point *dots, *line; /* the line is one of steps */
    int dot_count, line_count;
    double x_max; /* 0: of the points */
} tl_chart_curve;
void tl_chart_add_curve(tl_text *out, const tl_chart_curve *curve);
void tl_chart_add_roofline(tl_text *out, const tl_report *report);
/* A bar `share` (0..1) full. */
void tl_chart_add_bar(tl_text *out, double share);
/* An interval of ratios around 1. */
void tl_chart_add_interval(tl_text *out, double low, double middle, double high);

#endif
