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
#include <sched.h>
#include "codegen/codegen.h"
#include "driver/target.h"
#include "frontend/frontend.h"
#include "runtime/clock.h"
#include "runtime/peak.h"
#include "runtime/topology.h"
#include "tests/codegen/kernel_files.h"

enum { POINTS = 300, MIN_ROUNDS = 5, PATIENCE = 10 };
static const double peak_seconds = 0.02, slice_seconds = 0.02;

typedef struct {
    int threads, name_count;
    double seconds;
    bool json;
    const char *show, *target;
    char *const *names;
} options;

typedef struct {
    options options;
    tl_target target;
    tl_pool *pool;
    tl_jit *jit;
    int missed; /* claims */
} bench;

/* A kernel compiled, with all that it is called with. */
typedef struct {
    const tl_program *program;
    tl_jit_kernel *body;
    tl_descriptor descriptor;
    void *buffers[2 * KERNEL_BUFFERS];
    int first_prepared, buffer_count;
    void *scratch, *thread_scratch;
    tl_kernel_args args;
    double best_ns;
} version;

static void must(tl_status status, const tl_diag *diag)
{
    if (status == TL_OK)
        return;
    fprintf(stderr, "%s\n", diag->text);
    exit(1);
}

static void *aligned(int64_t bytes)
{
    void *data = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
    if (data == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return data;
}

static void run_team(tl_team *team, void *context)
{
    const version *v = context;
    for (int p = 0; p < v->descriptor.phase_count; p++) {
        tl_part part = tl_team_range(v->descriptor.extents[p], team->thread, team->threads);
        if (p > 0)
            tl_team_barrier(team);
        if (part.begin < part.end)
            tl_jit_phase(v->body, p)(&v->args, part.begin, part.end, team->thread);
    }
}

static tl_status compile(bench *b, tl_arena *arena, const tl_program *program, bool prepare,
                         tl_descriptor *descriptor, tl_jit_kernel **out, tl_diag *diag)
{
    tl_text object = { 0 };
    tl_status status = tl_codegen_compile(arena, program, prepare, &b->target, TL_EMIT_OBJECT,
                                          &object, descriptor, diag);
    if (status == TL_OK)
        status = tl_jit_add(b->jit, object.data, object.size, descriptor, out, diag);
    tl_text_free(&object);
    if (status == TL_OK && descriptor->has_sizes)
        return tl_fail(diag, TL_UNSUPPORTED, "%s has dims, which have no values here",
                       program->name);
    return status;
}

static void allocate(version *v, int threads)
{
    const tl_descriptor *d = &v->descriptor;
    int64_t stride = (d->thread_scratch_bytes + 63) / 64 * 64;
    v->scratch = aligned(d->scratch_bytes);
    v->thread_scratch = aligned(stride * threads);
    v->args = (tl_kernel_args){ v->buffers, NULL, v->scratch, v->thread_scratch, stride };
}

/* Compiles what was scheduled, packs its constants. */
static void make_version(bench *b, tl_arena *arena, const tl_program *program,
                         const kernel_arguments *a, version *v)
{
    tl_diag diag = { 0 };
    *v = (version){ .program = program, .best_ns = 1e30 };
    for (int i = 0; i < a->count; i++)
        v->buffers[v->buffer_count++] = a->arguments[i].data;
    v->first_prepared = v->buffer_count;
    for (int i = 0; i < program->prepared_count && i < KERNEL_BUFFERS; i++)
        v->buffers[v->buffer_count++] = aligned((int64_t)kernel_bytes(program->prepared[i]));
    if (program->prepare != NULL) {
        must(compile(b, arena, program, true, &v->descriptor, &v->body, &diag), &diag);
        allocate(v, b->options.threads);
        tl_pool_run(b->pool, 1, run_team, v);
        tl_jit_remove(v->body);
        free(v->scratch);
        free(v->thread_scratch);
    }
    must(compile(b, arena, program, false, &v->descriptor, &v->body, &diag), &diag);
    allocate(v, b->options.threads);
}

static void free_version(version *v)
{
    for (int i = v->first_prepared; i < v->buffer_count; i++)
        free(v->buffers[i]);
    free(v->scratch);
    free(v->thread_scratch);
    tl_jit_remove(v->body);
}

static void time_slice(bench *b, version *v)
{
    int64_t until = tl_clock_ns() + (int64_t)(slice_seconds * 1e9);
    for (int64_t start = tl_clock_ns(), end; start < until; start = end) {
        tl_pool_run(b->pool, b->options.threads, run_team, v);
        end = tl_clock_ns();
        if ((double)(end - start) < v->best_ns)
            v->best_ns = (double)(end - start);
    }
}

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

static void report(bench *b, const char *name, const version *v, const work *w, const claim *c)
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
    version v[2];
    must(kernel_parse(arena, name, &naive, &diag), &diag);
    must(kernel_arguments_make(naive, 7, &a, &diag), &diag);
    must(kernel_points_make(arena, naive, &a, 11, POINTS, &points, &diag), &diag);
    for (int i = 0; i < 2; i++) {
        must(kernel_schedule(arena, name, naive, &b->target, i == 0, &s, &diag), &diag);
        make_version(b, arena, tl_schedule_program(s), &a, &v[i]);
        tl_pool_run(b->pool, b->options.threads, run_team, &v[i]);
        for (int p = 0; p < a.count; p++)
            if (a.arguments[p].buffer == points.output) {
                tl_status status = kernel_points_check(&points, a.arguments[p].data, 1e-4, &diag);
                if (status != TL_OK)
                    tl_context(&diag, "in kernel %s under %s", name,
                               i == 0 ? "its trace" : "the default schedule");
                must(status, &diag);
                memset(a.arguments[p].data, 0xFF, kernel_bytes(points.output));
            }
    }
    claim c = claim_of(arena, name);
    work w = work_of(naive);
    int64_t start = tl_clock_ns(), seconds = (int64_t)(b->options.seconds * 1e9);
    for (int round = 0, more = 1; more > 0; round++) {
        double sample = tl_peak_gflops(b->pool, b->options.threads, peak_seconds);
        w.peak = fmax(w.peak, sample);
        sample = tl_peak_traffic_gbs(b->pool, b->options.threads, (int64_t)w.read,
                                     (int64_t)(w.bytes - w.read), slice_seconds);
        w.bandwidth = fmax(w.bandwidth, sample);
        time_slice(b, &v[0]);
        time_slice(b, &v[1]);
        int64_t spent = tl_clock_ns() - start;
        bool reached = is_held(&w, &c, v[0].best_ns);
        more = round < MIN_ROUNDS || spent < seconds || (!reached && spent < PATIENCE * seconds);
    }
    report(b, name, v, &w, &c);
    free_version(&v[0]);
    free_version(&v[1]);
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
    must(kernel_parse(arena, name, &naive, &diag), &diag);
    must(kernel_schedule(arena, name, naive, &b->target, !by_default, &s, &diag), &diag);
    if (by_default || strcmp(what, "trace") == 0)
        tl_trace_print(tl_schedule_trace(s), &text);
    else if (strcmp(what, "program") == 0)
        tl_program_print(tl_schedule_program(s), &text);
    else
        must(tl_codegen_compile(arena, tl_schedule_program(s), false, &b->target,
                                strcmp(what, "llvm") == 0 ? TL_EMIT_LLVM : TL_EMIT_ASSEMBLY, &text,
                                NULL, &diag),
             &diag);
    fputs(tl_text_get(&text), stdout);
    tl_text_free(&text);
    tl_arena_destroy(arena);
}

static bool parse_options(int argc, char **argv, options *out)
{
    *out = (options){ .threads = 1, .seconds = 1 };
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
            continue;
        }
        if (value == NULL)
            return false;
        if (strcmp(argv[i], "--threads") == 0)
            out->threads = atoi(value);
        else if (strcmp(argv[i], "--seconds") == 0)
            out->seconds = atof(value);
        else if (strcmp(argv[i], "--target") == 0)
            out->target = value;
        else if (strcmp(argv[i], "--show") == 0)
            out->show = value;
        else
            return false;
        i++;
    }
    out->names = argv + i;
    out->name_count = argc - i;
    return out->threads >= 1 && out->threads <= TL_MAX_THREADS &&
           (out->show == NULL || out->name_count > 0);
}

/* One thread stays on one core; several are pinned by the pool. */
static void pin(const bench *b)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)tl_topology_get()->core_processor[0], &set);
    if (b->options.threads == 1)
        sched_setaffinity(0, sizeof set, &set);
}

static void print_machine(const bench *b)
{
    const tl_topology *machine = tl_topology_get();
    if (b->options.json) {
        printf("{\"record\":\"machine\",\"cpu\":\"%s\",\"isa\":\"%s\",\"threads\":%d}\n",
               machine->cpu_name, tl_isa_infos[b->target.isa].text, b->options.threads);
        return;
    }
    printf("%s, code for %s, %d thread%s; peak: %s multiply-adds in registers\n\n",
           machine->cpu_name, tl_isa_infos[b->target.isa].text, b->options.threads,
           b->options.threads == 1 ? "" : "s", tl_peak_isa());
    printf("%-15s %8s %8s %8s %4s %7s %8s %4s %9s\n", "kernel", "us", "GFLOP/s", "of peak", "",
           "GB/s", "of bandw.", "", "default us");
}

int main(int argc, char **argv)
{
    bench b = { 0 };
    tl_diag diag = { 0 };
    kernel_names names;
    if (!parse_options(argc, argv, &b.options)) {
        fprintf(stderr, "usage: kernels [--threads N] [--seconds S] [--target ISA] [--json] "
                        "[NAME ...]\n       kernels --show program|default|trace|llvm|asm NAME\n");
        return 2;
    }
    must(tl_target_resolve(b.options.target, &b.target, &diag), &diag);
    if (b.options.show != NULL) {
        for (int i = 0; i < b.options.name_count; i++)
            show(&b, b.options.names[i]);
        return 0;
    }
    must(tl_pool_create(&(tl_pool_options){ .threads = b.options.threads }, &b.pool, &diag), &diag);
    must(tl_jit_create(&b.target, &b.jit, &diag), &diag);
    must(kernel_names_read(&names, &diag), &diag);
    pin(&b);
    print_machine(&b);
    for (int i = 0; i < b.options.name_count; i++)
        bench_kernel(&b, b.options.names[i]);
    for (int i = 0; i < names.count && b.options.name_count == 0; i++)
        bench_kernel(&b, names.names[i]);
    tl_jit_destroy(b.jit);
    tl_pool_destroy(b.pool);
    return b.missed > 0;
}
