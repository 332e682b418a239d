/* driver/study/study.h: a kernel under study: its text (.tk), a trace (.tr) taken apart into lines, and the schedule after
 * each of them. What the files of `tilth schedule` share. */
#ifndef TL_DRIVER_STUDY_STUDY_H
#define TL_DRIVER_STUDY_STUDY_H
#include "driver/cli/cli.h"
#include "ir/program/program.h"
#include "runtime/device/pool.h"
#include "schedule/trace.h"

typedef struct {
    tl_arena *arena;
    tl_target target;
    const char *kernel_file, *kernel_text;
    const tl_program *naive;
    int64_t *dims; /* in the program's order; the largest where nothing was set */
    int64_t flops; /* for these dims */
    tl_pool *pool;
    int threads;
} tl_study;

typedef struct {
    const char *kernel; /* a path, or "-" */
    const char *target;
    const tl_machine *machine; /* of the analytic model; NULL: built in */
    int64_t threads;           /* 0: one a usable core */
    tl_text_list sets;         /* "M=512" */
} tl_study_options;

/* Reads, parses and verifies the kernel, makes the pool. `study` is zero but for the arena, which is the caller's and
 * guarded. Close it also on failure. */
tl_status tl_study_open(tl_study *study, const tl_study_options *options, tl_diag *diag);
void tl_study_close(tl_study *study);

/* A trace as its author wrote it. */
typedef struct {
    int line; /* the number of its first line in the file */
    /* Without the comment and the blanks around it; line ends in brackets are blanks. */
    const char *text;
    const char *comment; /* above and behind it, as one line a paragraph; "" when there is none */
    int step_end;        /* steps of the trace up to and with this line */
    size_t text_end;     /* bytes of the text up to and with this line */
} tl_script_line;
typedef struct {
    const char *file, *text;
    const tl_trace *trace;
    int count; /* of lines with a step */
    const tl_script_line *lines;
} tl_script;

/* The text of a file, or of standard input for "-", in the arena: at most a MiB, no NUL bytes. */
tl_status tl_study_read(tl_arena *arena, const char *path, const char **out, tl_diag *diag);
/* A sentence of the parser gets the line it speaks of, and a mark under the column. */
tl_status tl_script_parse(const tl_study *study, const char *file, const char *text, tl_script *out,
                          tl_diag *diag);

/* The schedule after lines 0..done-1. */
typedef struct {
    const tl_script *script;
    tl_schedule *schedule;
    tl_replay *replay;
    int done;
} tl_walk;
tl_walk tl_walk_start(const tl_study *study, const tl_script *script);
/* Applies the next line. A refusal says FILE:LINE, the sentence, and shows the line; the walk is over then. */
tl_status tl_walk_next(tl_walk *walk, tl_diag *diag);
tl_status tl_walk_to_end(tl_walk *walk, tl_diag *diag);
const tl_program *tl_walk_program(const tl_walk *walk);

/* Elements of a parameter or prepared buffer for the study's dims; -1: too many. */
int64_t tl_study_elements(const tl_study *study, const tl_buffer *buffer);

#endif
