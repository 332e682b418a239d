/* driver/bench/bench.h: measuring an executable, and what is made of the measurements. */
#ifndef TL_DRIVER_BENCH_BENCH_H
#define TL_DRIVER_BENCH_BENCH_H
#include "driver/cli/session.h"
#include "runtime/executable/bindings.h"

/* What is measured: a model, or a kernel's text made into an executable of one step. */
typedef struct {
    const char *name;                /* the file */
    const tl_executable *executable; /* prepared */
    const tl_model_facts *facts;     /* NULL for a kernel */
    int64_t flops;
    double ready_s;
} tl_subject;

/* Rounds alternate a sample of the peak loop with runs, so that a disturbed second shows in both. */
typedef struct {
    double peak_gflops; /* of the sample before the runs */
    int64_t median_ns;
    bool disturbed; /* its peak is below 90 % of the best round's */
} tl_round;

typedef struct {
    int run_count, round_count, step_count, disturbed_count, outlier_count;
    int64_t *runs; /* sorted */
    double mean_ns, deviation_ns;
    tl_round *rounds;
    int64_t *step_ns;   /* the shortest of each step */
    double device_ns;   /* of a run whose inputs are on the device, the shortest; 0: it has none */
    double peak_gflops; /* the best round's */
} tl_timing;

/* Runs for about `seconds`; lists live in the session's arena. */
tl_status tl_bench_measure(const tl_session *session, const tl_subject *subject, tl_runner *runner,
                           const tl_bindings *bindings, double seconds, tl_timing *out,
                           tl_diag *diag);
/* 0: unknown. Above 100 where a lowering multiplies less than the direct one, whose work is counted. */
double tl_percent_of_peak(double flops, double ns, double peak_gflops);

/* The report on stdout, the hottest `top` kernels first (0: all; driver/bench/bench_report.c). */
void tl_bench_print(const tl_session *session, const tl_subject *subject, const tl_runner *runner,
                    const tl_timing *timing, int top);
void tl_bench_print_json(const tl_session *session, const tl_subject *subject,
                         const tl_runner *runner, const tl_timing *timing);
/* The model's record of --json as one line of text: what --baseline and --history read back. */
void tl_bench_record(const tl_subject *subject, const tl_runner *runner, const tl_timing *timing,
                     const char *commit, tl_text *out);

typedef struct {
    double min_ratio, median_ratio; /* now over then */
    double p;                       /* of the rounds' medians */
    double peak_ratio;
    bool slower, faster, enough; /* enough rounds on both sides to say anything */
} tl_change;
/* The last record of the same model and threads in a file of --json lines. TL_BAD_ARGUMENT when there is none. */
typedef struct tl_baseline tl_baseline;
tl_status tl_baseline_read(const char *path, const tl_subject *subject, const tl_runner *runner,
                           tl_baseline **out, tl_diag *diag);
void tl_baseline_free(tl_baseline *baseline); /* NULL is fine */
tl_change tl_baseline_compare(const tl_baseline *baseline, const tl_timing *timing,
                              double threshold);
void tl_change_print(const tl_change *change, const char *against, bool json);

/* Appends the record to a file, one line; shows the change against the last records of the same CPU, model and threads
 * before it (driver/bench/bench_history.c). */
tl_status tl_bench_history(const char *path, const char *commit, const tl_subject *subject,
                           const tl_runner *runner, const tl_timing *timing, bool json,
                           tl_diag *diag);

/* A few runs as a timeline by thread, in the format of Chrome's and Perfetto's viewers (driver/bench/bench_trace.c). */
tl_status tl_bench_trace(const char *path, const tl_subject *subject, tl_runner *runner,
                         const tl_bindings *bindings, tl_diag *diag);

/* Code for all shapes beside code for each, at five points of the dims from their least to their largest
 * (driver/bench/bench_varying.c); the session has the former (tl_session_open_ranges). */
typedef struct {
    const tl_text_list *given; /* inputs: random ones alone */
    int64_t seed;
    double seconds; /* for all of them */
    int top;        /* kernels to show */
    bool json;
} tl_bench_varying;
tl_status tl_bench_varying_shapes(const tl_session *session, const char *path,
                                  const tl_model_options *options, const tl_bench_varying *request,
                                  tl_diag *diag);

/* A kernel's text (.tk), scheduled by default or by a trace (NULL: by default), as an executable of one step. */
typedef struct tl_kernel_file tl_kernel_file;
tl_status tl_kernel_file_load(const tl_session *session, const char *path, const char *trace,
                              const char *target, const tl_text_list *dims, tl_kernel_file **out,
                              tl_diag *diag);
void tl_kernel_file_close(tl_kernel_file *kernel);
tl_executable *tl_kernel_file_executable(const tl_kernel_file *kernel);

#endif
