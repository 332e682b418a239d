/* driver/study/schedule_verb.h: the parts of `tilth schedule`. */
#ifndef TL_DRIVER_STUDY_SCHEDULE_VERB_H
#define TL_DRIVER_STUDY_SCHEDULE_VERB_H
#include "driver/cli/line_diff.h"
#include "driver/study/measure_kernel.h"

typedef struct {
    const char *show, *html;
    bool step, verify, bench, json, moves;
    double seconds; /* of measuring a program */
    /* of --moves: how many are tried, how many shown (0: all), the cost model's name */
    int64_t tries, limit;
    const char *model;
} tl_schedule_options;

/* What became of one program: measured and verified, as far as asked for and possible. */
typedef struct {
    bool timed, verified, failed; /* failed: found to be wrong */
    tl_speed speed;
    tl_verdict verdict;
    const char *defect; /* what the problem means: "WRONG", "cannot be run yet" */
    char problem[512];  /* why it could not be compiled, or what differs; "" */
} tl_findings;
/* Problems of the program go to `out`, never to the caller. */
void tl_findings_make(const tl_study *study, const tl_program *program, bool bench, bool verify,
                      double seconds, tl_findings *out);
void tl_findings_print(const tl_findings *findings, const char *indent, FILE *out);
/* ,"verified":true,"percent_of_peak":...: null for what was not asked for. */
void tl_findings_json(const tl_findings *findings, tl_text *out);

/* Walks to the end and prints each line, what it changed, and what was found: a program may be wrong on the way (threads
 * that share, before there are barriers). */
tl_status tl_schedule_steps(const tl_study *study, tl_walk *walk,
                            const tl_schedule_options *options, tl_diag *diag);

/* Prints each item of a list like "program,asm". TL_BAD_ARGUMENT names an item that is none. */
tl_status tl_show(const tl_study *study, const tl_walk *walk, const char *list, bool json,
                  tl_diag *diag);
tl_status tl_show_check(const char *list, tl_diag *diag); /* before there is anything to show */
const char *tl_show_item(int index);                      /* NULL after the last */

/* Reads commands until the end of the input or `quit`; begins with the lines of a trace. */
tl_status tl_schedule_prompt(tl_study *study, const char *file, const char *text, double seconds,
                             tl_diag *diag);

/* Walks to the end and writes one page that steps through the schedule. */
tl_status tl_schedule_page(const tl_study *study, tl_walk *walk, const tl_schedule_options *options,
                           tl_diag *diag);

/* What the line did to the program's text. */
tl_line_diff tl_program_diff(tl_arena *arena, const tl_program *before, const tl_program *after);

#endif
