/* tests/bench/kernels.c: the kernels of models/kernels under their hand-written traces, timed beside the same kernels
 * under the default schedule, beside this machine's peak, and beside plain loops that move as many bytes, all in every
 * round.
 *
 *     kernels [--threads N] [--seconds S] [--target ISA] [--json] [NAME ...]
 *     kernels --show program|default|trace|llvm|asm NAME
 *
 * Times are the least of all rounds, peak and bandwidth the largest, so that a disturbed sample of them makes nothing
 * look better. A trace whose comment says "reaches N % of peak on one core", or "of bandwidth", is held to it: it gets up
 * to ten times the seconds while it stays below (the machine may be busy), then exit status 1. */
#include "codegen/codegen.h"
#include "driver/pipeline/host_target.h"
#include "frontend/frontend.h"
#include "runtime/base/clock.h"
#include "runtime/device/peak.h"
#include "runtime/device/topology.h"
#include "tests/bench/options.h"
#include "tests/bench/timed_kernel.h"
#include "tests/codegen/kernel_files.h"

enum { POINTS = 300, MIN_ROUNDS = 5, PATIENCE = 10 };
static const double peak_seconds = 0.02, slice_seconds = 0.02;

typedef struct {
    bench_options options;
    timed_machine machine;
    int missed; /* claims */
} bench;

/* "reaches 75 % of peak", or "of bandwidth", in the comments of the trace; 0 percent: it claims nothing. */
typedef struct {
    double percent;
    bool of_bandwidth;
} claim;

static claim claim_of(tl_arena *arena, const char *name)
{
    tl_text text = { 0 };
    claim c = { 0 };
    char what[16] = "";
    if (tl_file_read(tl_arena_format(arena, KERNEL_FOLDER "/%s.tr", name), &text, NULL) == TL_OK) {
        const char *at = strstr(tl_text_get(&text), "reaches ");
        if (at == NULL || sscanf(at, "reaches %lf %% of %15[a-z]", &c.percent, what) != 2)
            c.percent = 0;
    }
    tl_text_free(&text);
    c.of_bandwidth = strcmp(what, "bandwidth") == 0;
    return c;
}

/* What a kernel does, and the most that was seen of it: GFLOP/s in registers, GB/s of as many bytes. */
typedef struct {
    double flops, bytes, read, peak, bandwidth;
} work;

static work work_of(const tl_program *naive)
{
    work w = { .flops = (double)tl_program_flops(naive), .bytes = (double)tl_program_bytes(naive) };
    for (int i = 0; i < naive->param_count; i++)
        if (naive->params[i]->role != TL_ROLE_OUTPUT)
            w.read += (double)tl_buffer_max_elements(naive->params[i]) *
                      (double)tl_dtype_size(naive->params[i]->dtype);
    w.read = fmin(w.read, w.bytes);
    return w;
}

static double percent_of_peak(const work *w, double ns)
{
    return 100 * w->flops / ns / w->peak;
}

static double percent_of_bandwidth(const work *w, double ns)
{
    return w->bandwidth > 0 ? 100 * w->bytes / ns / w->bandwidth : 0;
}

static bool is_held(const work *w, const claim *c, double ns)
{
    return (c->of_bandwidth ? percent_of_bandwidth(w, ns) : percent_of_peak(w, ns)) >= c->percent;
}

static void report(bench *b, const char *name, const timed_kernel *v, const work *w, const claim *c)
{
    double percent = percent_of_peak(w, v[0].best_ns),
           moved = percent_of_bandwidth(w, v[0].best_ns);
    double percent_default = percent_of_peak(w, v[1].best_ns);
    bool held = b->options.threads > 1 || is_held(w, c, v[0].best_ns);
    b->missed += !held;
    if (b->options.json) {
        printf("{\"record\":\"kernel\",\"name\":\"%s\",\"threads\":%d,\"flops\":%.0f,"
               "\"bytes\":%.0f,\"min_ns\":%.0f,\"default_min_ns\":%.0f,\"peak_gflops\":%.1f,"
               "\"bandwidth_gbs\":%.1f,\"percent_of_peak\":%.1f,\"percent_of_bandwidth\":%.1f,"
               "\"default_percent_of_peak\":%.1f,\"claim\":%.0f,\"claim_of\":\"%s\","
               "\"held\":%s}\n",
               name, b->options.threads, w->flops, w->bytes, v[0].best_ns, v[1].best_ns, w->peak,
               w->bandwidth, percent, moved, percent_default, c->percent,
               c->of_bandwidth ? "bandwidth" : "peak", held ? "true" : "false");
    } else {
        char claims[2][16] = { "", "" };
        if (c->percent > 0)
            snprintf(claims[c->of_bandwidth], sizeof claims[0], "(%.0f)", c->percent);
        printf("%-15s %8.1f %8.1f %6.1f %% %-4s %7.1f %6.1f %% %-4s %9.1f %7.2f%s\n", name,
               v[0].best_ns / 1e3, w->flops / v[0].best_ns, percent, claims[0],
               w->bytes / v[0].best_ns, moved, claims[1], v[1].best_ns / 1e3,
               v[1].best_ns / v[0].best_ns, held ? "" : "  below its claim");
    }
    fflush(stdout);
}

static void bench_kernel(bench *b, const char *name)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_schedule *s;
    kernel_arguments a;
    kernel_points points;
    timed_kernel v[2];
    timed_machine *m = &b->machine;
    void *data[KERNEL_BUFFERS];
    timed_must(kernel_parse(arena, name, &naive, &diag), &diag);
    timed_must(kernel_arguments_make(naive, 7, &a, &diag), &diag);
    timed_must(kernel_points_make(arena, naive, &a, 11, POINTS, &points, &diag), &diag);
    for (int i = 0; i < a.count; i++)
        data[i] = a.arguments[i].data;
    for (int i = 0; i < 2; i++) {
        timed_must(kernel_schedule(arena, name, naive, &b->machine.target, i == 0, &s, &diag),
                   &diag);
        timed_kernel_make(m, arena, tl_schedule_program(s), data, &v[i]);
        timed_kernel_run(m, &v[i]);
        for (int p = 0; p < a.count; p++)
            if (a.arguments[p].buffer == points.output) {
                tl_status status = kernel_points_check(&points, a.arguments[p].data, 1e-4, &diag);
                if (status != TL_OK)
                    tl_context(&diag, "in kernel %s under %s", name,
                               i == 0 ? "its trace" : "the default schedule");
                timed_must(status, &diag);
                memset(a.arguments[p].data, 0xFF, kernel_bytes(points.output));
            }
    }
    int bits = tl_isa_infos[m->target.isa].vector_bits;
    claim c = claim_of(arena, name);
    work w = work_of(naive);
    int64_t start = tl_clock_ns(), seconds = (int64_t)(b->options.seconds * 1e9);
    for (int round = 0, more = 1; more > 0; round++) {
        double sample = tl_peak_gflops(m->pool, m->threads, bits, peak_seconds);
        w.peak = fmax(w.peak, sample);
        sample = tl_peak_traffic_gbs(m->pool, m->threads, (int64_t)w.read,
                                     (int64_t)(w.bytes - w.read), slice_seconds);
        w.bandwidth = fmax(w.bandwidth, sample);
        timed_kernel_slice(m, &v[0], slice_seconds);
        timed_kernel_slice(m, &v[1], slice_seconds);
        int64_t spent = tl_clock_ns() - start;
        bool reached = is_held(&w, &c, v[0].best_ns);
        more = round < MIN_ROUNDS || spent < seconds || (!reached && spent < PATIENCE * seconds);
    }
    report(b, name, v, &w, &c);
    timed_kernel_free(&v[0]);
    timed_kernel_free(&v[1]);
    kernel_arguments_free(&a);
    tl_arena_destroy(arena);
}

static void show(bench *b, const char *name)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_schedule *s;
    tl_text text = { 0 };
    const char *what = b->options.show;
    bool by_default = strcmp(what, "default") == 0;
    timed_must(kernel_parse(arena, name, &naive, &diag), &diag);
    timed_must(kernel_schedule(arena, name, naive, &b->machine.target, !by_default, &s, &diag),
               &diag);
    if (by_default || strcmp(what, "trace") == 0)
        tl_trace_print(tl_schedule_trace(s), &text);
    else if (strcmp(what, "program") == 0)
        tl_program_print(tl_schedule_program(s), &text);
    else
        timed_must(tl_codegen_compile(arena, tl_schedule_program(s), false, &b->machine.target,
                                      strcmp(what, "llvm") == 0 ? TL_EMIT_LLVM : TL_EMIT_ASSEMBLY,
                                      &text, NULL, &diag),
                   &diag);
    fputs(tl_text_get(&text), stdout);
    tl_text_free(&text);
    tl_arena_destroy(arena);
}

static void print_head(const bench *b)
{
    bench_print_machine(&b->options, &b->machine.target);
    if (b->options.json)
        return;
    printf("%-15s %8s %8s %8s %4s %7s %8s %4s %9s\n", "kernel", "us", "GFLOP/s", "of peak", "",
           "GB/s", "of bandw.", "", "default us");
}

int main(int argc, char **argv)
{
    tl_codegen_own_process();
    bench b = { 0 };
    tl_diag diag = { 0 };
    kernel_names names;
    if (!bench_options_parse(argc, argv, 1, &b.options) ||
        b.options.numerics != TL_NUMERICS_RELAXED || /* what the traces are written for */
        (b.options.show != NULL && b.options.name_count == 0)) {
        fprintf(stderr, "usage: kernels [--threads N] [--seconds S] [--target ISA] [--json] "
                        "[NAME ...]\n       kernels --show program|default|trace|llvm|asm NAME\n");
        return 2;
    }
    if (b.options.show != NULL) {
        timed_must(tl_target_resolve(b.options.target, &b.machine.target, &diag), &diag);
        for (int i = 0; i < b.options.name_count; i++)
            show(&b, b.options.names[i]);
        return 0;
    }
    timed_must(kernel_names_read(&names, &diag), &diag);
    timed_machine_make(b.options.target, b.options.threads, &b.machine);
    print_head(&b);
    for (int i = 0; i < b.options.name_count; i++)
        bench_kernel(&b, b.options.names[i]);
    for (int i = 0; i < names.count && b.options.name_count == 0; i++)
        bench_kernel(&b, names.names[i]);
    timed_machine_free(&b.machine);
    return b.missed > 0;
}
