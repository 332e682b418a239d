/* tests/bench/peer_kernels.c: our kernels under their default schedules beside oneDNN's and OpenBLAS's, on the shapes of
 * peer_cases.def, and beside this machine's peak and bandwidth, all in every round.
 *
 *     peer_kernels [--threads N] [--seconds S] [--target ISA] [--numerics strict] [--show trace|program|asm] [--json]
 *                  [NAME ...]
 *
 * NAME: a case, or the beginning of several. Every library gets what it likes: images in its own layout, constants packed
 * before the first run, at most the target's instructions. All results are compared before anything is timed; exit
 * status 1 when they differ. Times are the least of all rounds, peak and bandwidth the largest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "runtime/device/peak.h"
#include "runtime/device/topology.h"
#include "tests/bench/options.h"
#include "tests/bench/our_kernel.h"

enum { MIN_ROUNDS = 5, PEERS = 2 };
static const double peak_seconds = 0.01, slice_seconds = 0.02;
static const peer_library *const libraries[PEERS] = { &peer_dnnl, &peer_openblas };

static const peer_case cases[] = {
#define MATMUL(NAME, BATCH, M, N, K, CONSTANT) \
    { .name = NAME,                            \
      .op = CASE_MATMUL,                       \
      .batch = BATCH,                          \
      .m = M,                                  \
      .n = N,                                  \
      .k = K,                                  \
      .constant = CONSTANT },
#define CONV(NAME, CHANNELS, SIZE, FILTERS, H, W, STRIDE, GROUPS) \
    { .name = NAME,                                               \
      .op = CASE_CONV,                                            \
      .channels = CHANNELS,                                       \
      .size = SIZE,                                               \
      .filters = FILTERS,                                         \
      .window = { H, W },                                         \
      .stride = STRIDE,                                           \
      .groups = GROUPS },
#define ROWS(NAME, OP, ROWS, COLUMNS) { .name = NAME, .op = CASE_##OP, .m = ROWS, .n = COLUMNS },
#define POOL(NAME, CHANNELS, SIZE) \
    { .name = NAME,                \
      .op = CASE_MAX_POOL,         \
      .channels = CHANNELS,        \
      .size = SIZE,                \
      .filters = CHANNELS,         \
      .window = { 3, 3 },          \
      .stride = 2 },
#include "tests/bench/peer_cases.def"
#undef MATMUL
#undef CONV
#undef ROWS
#undef POOL
};

typedef struct {
    bench_options options;
    timed_machine machine;
    int vector_bits;
    bool present[PEERS];
    int wrong; /* cases whose results differ */
    double log_ratio[PEERS];
    int compared[PEERS];
} bench;

/* What was measured of one case. */
typedef struct {
    double ns, peer_ns[PEERS]; /* 0: has no such kernel */
    double flops, bytes, peak, bandwidth;
    const char *lowering;
} result;

static double largest_difference(const float *got, const float *want, int64_t count)
{
    double most = 0, scale = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        most = difference > most || isnan(difference) ? difference : most;
        scale = fmax(scale, fabs((double)want[i]));
    }
    return most / scale;
}

/* Whether the peer computes what we do: to a thousandth of the largest element, as Winograd rounds more than a sum. */
static bool agrees(const our_kernel *ours, const peer_case *c, const peer_kernel *theirs)
{
    int64_t count = case_elements(c, CASE_RESULT);
    float *got = timed_alloc(count * 4), *want = timed_alloc(count * 4);
    our_kernel_read(ours, got);
    theirs->run(theirs->state);
    theirs->read(theirs->state, want);
    double difference = largest_difference(got, want, count);
    free(got);
    free(want);
    return difference < 1e-3;
}

static void time_peer(const peer_kernel *k, double *best_ns)
{
    int64_t until = tl_clock_ns() + (int64_t)(slice_seconds * 1e9);
    for (int64_t start = tl_clock_ns(), end; start < until; start = end) {
        k->run(k->state);
        end = tl_clock_ns();
        double ns = (double)(end - start);
        *best_ns = *best_ns == 0 || ns < *best_ns ? ns : *best_ns;
    }
}

static void measure(bench *b, const peer_case *c, our_kernel *ours, const peer_kernel *theirs,
                    result *r)
{
    timed_machine *m = &b->machine;
    const tl_program *naive = ours->naive;
    double read = 0;
    for (int i = 0; i < naive->param_count; i++)
        if (naive->params[i]->role != TL_ROLE_OUTPUT)
            read += 4 * (double)tl_buffer_max_elements(naive->params[i]);
    r->flops = case_flops(c);
    r->bytes = (double)tl_program_bytes(naive);
    int64_t start = tl_clock_ns();
    for (int round = 0;
         round < MIN_ROUNDS || (double)(tl_clock_ns() - start) < b->options.seconds * 1e9;
         round++) {
        r->peak = fmax(r->peak, tl_peak_gflops(m->pool, m->threads, b->vector_bits, peak_seconds));
        r->bandwidth =
            fmax(r->bandwidth, tl_peak_traffic_gbs(m->pool, m->threads, (int64_t)read,
                                                   (int64_t)(r->bytes - read), peak_seconds));
        timed_kernel_slice(m, &ours->kernel, slice_seconds);
        for (int i = 0; i < PEERS; i++)
            if (theirs[i].run != NULL)
                time_peer(&theirs[i], &r->peer_ns[i]);
    }
    r->ns = ours->kernel.best_ns;
}

static double percent_of_peak(const result *r, double ns)
{
    return ns > 0 ? 100 * r->flops / ns / r->peak : 0;
}

static void report(bench *b, const peer_case *c, const result *r)
{
    double moved = r->bandwidth > 0 ? 100 * r->bytes / r->ns / r->bandwidth : 0;
    for (int i = 0; i < PEERS; i++)
        if (r->peer_ns[i] > 0) {
            b->log_ratio[i] += log(r->peer_ns[i] / r->ns);
            b->compared[i]++;
        }
    if (b->options.json) {
        printf("{\"record\":\"kernel\",\"name\":\"%s\",\"lowering\":\"%s\",\"threads\":%d,"
               "\"flops\":%.0f,\"bytes\":%.0f,\"peak_gflops\":%.1f,\"bandwidth_gbs\":%.1f,"
               "\"min_ns\":%.0f,\"percent_of_peak\":%.1f,\"percent_of_bandwidth\":%.1f",
               c->name, r->lowering, b->options.threads, r->flops, r->bytes, r->peak, r->bandwidth,
               r->ns, percent_of_peak(r, r->ns), moved);
        for (int i = 0; i < PEERS; i++)
            if (r->peer_ns[i] > 0)
                printf(",\"%s_min_ns\":%.0f,\"%s_percent_of_peak\":%.1f", libraries[i]->name,
                       r->peer_ns[i], libraries[i]->name, percent_of_peak(r, r->peer_ns[i]));
        printf("}\n");
    } else {
        printf("%-19s %-11s %9.1f %7.1f %7.1f", c->name, r->lowering, r->ns / 1e3,
               percent_of_peak(r, r->ns), moved);
        for (int i = 0; i < PEERS; i++)
            if (r->peer_ns[i] > 0)
                printf(" %9.1f %7.1f %6.2f", r->peer_ns[i] / 1e3, percent_of_peak(r, r->peer_ns[i]),
                       r->peer_ns[i] / r->ns);
            else
                printf(" %9s %7s %6s", "-", "", "");
        printf("\n");
    }
    fflush(stdout);
}

static void bench_case(bench *b, const peer_case *c)
{
    float *operands[CASE_OPERANDS];
    peer_kernel theirs[PEERS] = { { 0 } };
    our_kernel ours;
    tl_random random = tl_random_make(7);
    for (int i = 0; i < CASE_OPERANDS; i++) {
        int64_t count = case_elements(c, i);
        operands[i] = timed_alloc(count * 4);
        for (int64_t k = 0; k < count; k++)
            operands[i][k] = (float)(tl_random_unit(&random) - 0.5);
    }
    our_kernel_make(&b->machine, c, operands, b->options.numerics, &ours);
    timed_kernel_run(&b->machine, &ours.kernel);
    for (int i = 0; i < PEERS; i++) {
        if (!b->present[i] || !libraries[i]->make(c, operands, &theirs[i])) {
            theirs[i] = (peer_kernel){ 0 };
        } else if (!agrees(&ours, c, &theirs[i])) {
            fprintf(stderr, "%s: what we compute (%s) differs from %s's result\n", c->name,
                    ours.lowering, libraries[i]->name);
            b->wrong++;
        }
    }
    result r = { .lowering = ours.lowering };
    measure(b, c, &ours, theirs, &r);
    report(b, c, &r);
    for (int i = 0; i < PEERS; i++)
        if (theirs[i].destroy != NULL)
            theirs[i].destroy(theirs[i].state);
    our_kernel_free(&ours);
    for (int i = 0; i < CASE_OPERANDS; i++)
        free(operands[i]);
}

/* The case's default schedule: as a trace, a program, or assembly. */
static void show_case(bench *b, const peer_case *c)
{
    float *operands[CASE_OPERANDS];
    our_kernel ours;
    tl_text text = { 0 };
    tl_diag diag = { 0 };
    for (int i = 0; i < CASE_OPERANDS; i++) {
        operands[i] = timed_alloc(case_elements(c, i) * 4);
        memset(operands[i], 0, (size_t)case_elements(c, i) * 4);
    }
    our_kernel_make(&b->machine, c, operands, b->options.numerics, &ours);
    const tl_program *program = ours.kernel.program;
    if (strcmp(b->options.show, "trace") == 0)
        tl_trace_print(ours.trace, &text);
    else if (strcmp(b->options.show, "program") == 0)
        tl_program_print(program, &text);
    else
        timed_must(tl_codegen_compile(ours.arena, program, false, &b->machine.target,
                                      TL_EMIT_ASSEMBLY, &text, NULL, &diag),
                   &diag);
    fputs(tl_text_get(&text), stdout);
    tl_text_free(&text);
    our_kernel_free(&ours);
    for (int i = 0; i < CASE_OPERANDS; i++)
        free(operands[i]);
}

static bool is_wanted(const bench_options *o, const peer_case *c)
{
    for (int i = 0; i < o->name_count; i++)
        if (strncmp(c->name, o->names[i], strlen(o->names[i])) == 0)
            return true;
    return o->name_count == 0;
}

static void print_head(const bench *b)
{
    bench_print_machine(&b->options, &b->machine.target);
    if (b->options.json)
        return;
    printf("%-19s %-11s %9s %7s %7s", "kernel", "lowering", "us", "% peak", "% bandw");
    for (int i = 0; i < PEERS; i++)
        printf(" %9s %7s %6s", libraries[i]->name, "% peak", "/ ours");
    printf("\n");
}

static void print_means(const bench *b)
{
    for (int i = 0; i < PEERS && !b->options.json; i++)
        if (b->compared[i] > 0)
            printf("%s takes %.2f times as long, geometric mean over %d\n", libraries[i]->name,
                   exp(b->log_ratio[i] / b->compared[i]), b->compared[i]);
}

int main(int argc, char **argv)
{
    tl_codegen_own_process();
    bench b = { 0 };
    if (!bench_options_parse(argc, argv, 0.3, &b.options)) {
        fprintf(stderr, "usage: peer_kernels [--threads N] [--seconds S] [--target ISA] "
                        "[--numerics strict]\n                    [--show trace|program|asm] "
                        "[--json] [NAME ...]\n");
        return 2;
    }
    timed_machine_make(b.options.target, b.options.threads, &b.machine);
    b.vector_bits = tl_isa_infos[b.machine.target.isa].vector_bits;
    peer_limits limits = { b.options.threads, b.vector_bits };
    for (int i = 0; i < PEERS && b.options.show == NULL; i++) {
        b.present[i] = libraries[i]->start(&limits);
        if (!b.present[i])
            fprintf(stderr, "%s cannot be used here\n", libraries[i]->name);
    }
    if (b.options.show == NULL)
        print_head(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_wanted(&b.options, &cases[i])) {
            if (b.options.show != NULL)
                show_case(&b, &cases[i]);
            else
                bench_case(&b, &cases[i]);
        }
    print_means(&b);
    timed_machine_free(&b.machine);
    return b.wrong > 0;
}
