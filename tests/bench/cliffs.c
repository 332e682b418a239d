/* tests/bench/cliffs.c: kernels that fall off a cliff: those of random networks, as partition makes them, under their default
 * schedules, each in percent of what bounds it, the worst first with what its schedule lacks.
 *
 *     cliffs [--threads N] [--seconds S] [--target ISA] [--numerics strict] [--json] [--show program|naive|graph] [SEED ...]
 *
 * What bounds a kernel: its arithmetic at the measured peak and its functions (exp and its kin) at the measured rate of
 * each alone, or its operands at the bandwidth of plain loops that move as many bytes, whichever takes longer. Kernels
 * below 1 MFLOP and 256 KB are left out: a call costs as much. Winograd counts the operations of the direct sum. Times are
 * the least of all rounds, peak and bandwidth the largest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "runtime/base/array.h"
#include "runtime/device/peak.h"
#include "schedule/analysis.h"
#include "schedule/schedule_private.h"
#include "schedule/sketch/sketch.h"
#include "tests/bench/options.h"
#include "tests/bench/random_network.h"
#include "tests/bench/timed_kernel.h"

enum {
    LEAST_FLOPS = 1000000,
    LEAST_BYTES = 256 << 10,
    MOST_BYTES = 1 << 28,
    RATE_ELEMENTS = 4096,
    ROUNDS = 5
};
enum { SEEDS = 20 };
static const double peak_seconds = 0.01, slice_seconds = 0.01, rate_seconds = 0.02;

typedef struct {
    uint64_t seed;
    char name[96], lacks[96];
    double flops, bytes, ns, bound_ns, percent;
    bool by_traffic;
} row;

typedef struct {
    bench_options options;
    timed_machine machine;
    tl_arena *arena; /* of the rows */
    row *rows;
    int count, capacity;
    double function_ns[TL_FUNCTION_COUNT]; /* of one element on all threads; 0: not measured yet */
} bench;

/* ---- what bounds a kernel ---- */

typedef struct {
    double calls[TL_FUNCTION_COUNT];
    double instances;
} functions;

static bool count_calls(const tl_expr *e, void *context)
{
    functions *f = context;
    if (e->kind == TL_EXPR_CALL)
        f->calls[e->u.function] += f->instances;
    return true;
}

static bool count_block(const tl_stmt *stmt, void *context)
{
    functions *f = context;
    if (stmt->kind == TL_STMT_BLOCK) {
        const tl_block *block = stmt->u.block;
        f->instances = (double)tl_block_instances(block);
        for (int i = 0; i < block->store_count; i++)
            tl_expr_visit(block->stores[i].value, count_calls, f);
    }
    return true;
}

/* Whether it is one of those that take more than an operation or two. */
static bool is_expensive(tl_function function)
{
    const tl_function_info *info = &tl_function_infos[function];
    return info->arity == 1 && info->result == TL_RESULT_ROUNDED;
}

/* Nanoseconds of one element of a loop that calls the function and nothing else, from L1. */
static double rate_of(bench *b, tl_function function)
{
    if (b->function_ns[function] > 0)
        return b->function_ns[function];
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive;
    timed_kernel k;
    float *data[2];
    timed_must(tl_program_parse(
                   arena,
                   tl_arena_format(
                       arena, "kernel rate(A: f32[%d], out B: f32[%d])\n  B: B[i] = %s(A[i])\n",
                       RATE_ELEMENTS, RATE_ELEMENTS, tl_function_infos[function].text),
                   "rate", &naive, &diag),
               &diag);
    tl_schedule *s = tl_schedule_create(arena, naive, &b->machine.target, false);
    timed_must(tl_schedule_default(s, &diag), &diag);
    for (int i = 0; i < 2; i++)
        data[i] = timed_alloc(RATE_ELEMENTS * 4);
    for (int i = 0; i < RATE_ELEMENTS; i++)
        data[0][i] = (float)(i % 97) / 97;
    timed_kernel_make(&b->machine, arena, tl_schedule_program(s), (void *const *)data, &k);
    timed_kernel_slice(&b->machine, &k, rate_seconds);
    b->function_ns[function] = k.best_ns / RATE_ELEMENTS;
    timed_kernel_free(&k);
    free(data[0]);
    free(data[1]);
    tl_arena_destroy(arena);
    return b->function_ns[function];
}

static double functions_ns(bench *b, const tl_program *naive)
{
    functions f = { 0 };
    double ns = 0;
    tl_stmt_visit(naive->body, count_block, &f);
    for (int i = 0; i < TL_FUNCTION_COUNT; i++)
        if (f.calls[i] > 0 && is_expensive((tl_function)i))
            ns += f.calls[i] * rate_of(b, (tl_function)i);
    return ns;
}

/* ---- what its schedule lacks ---- */

typedef struct {
    tl_arena *arena;
    const tl_stmt *root;
    double all, scalar,
        gathered; /* instances; those without lanes; those with loads that lanes gather */
    const char *scalar_block, *gathering_block;
} shape_of_nest;

static bool gathers(tl_arena *arena, const tl_block *block, const tl_var *lane)
{
    const tl_expr *loads[16];
    int count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int l = 0; l < count; l++) {
        const tl_expr **bound = TL_NEW_ARRAY(arena, const tl_expr *, loads[l]->u.buffer->rank + 1);
        tl_binding bindings[64];
        int iters = block->iter_count < 64 ? block->iter_count : 64;
        for (int i = 0; i < iters; i++)
            bindings[i] = (tl_binding){ block->iters[i].var, block->iters[i].binding };
        for (int a = 0; a < loads[l]->u.buffer->rank; a++)
            bound[a] = tl_substitute(arena, loads[l]->args[a], bindings, iters);
        int64_t stride = tl_access_stride(arena, loads[l]->u.buffer, bound, lane);
        if (stride != 0 && stride != 1)
            return true;
    }
    return false;
}

static bool look_at_block(const tl_stmt *stmt, void *context)
{
    shape_of_nest *n = context;
    if (stmt->kind != TL_STMT_BLOCK || stmt->u.block->store_count == 0)
        return true;
    const tl_block *block = stmt->u.block;
    tl_path path = tl_path_to_block(n->arena, n->root, block->name);
    double instances = 1;
    const tl_var *lane = NULL;
    for (int i = 0; i < path.count; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP) {
            instances *= (double)tl_max_extent(path.stmts[i]->u.loop.extent);
            if (path.stmts[i]->u.loop.kind == TL_LOOP_VECTORIZED)
                lane = path.stmts[i]->u.loop.var;
        }
    n->all += instances;
    if (lane == NULL && instances > 1) {
        n->scalar += instances;
        n->scalar_block = block->name;
    } else if (lane != NULL && gathers(n->arena, block, lane)) {
        n->gathered += instances;
        n->gathering_block = block->name;
    }
    return true;
}

static void say_what_lacks(tl_arena *arena, const tl_program *scheduled, char out[96])
{
    shape_of_nest n = { .arena = arena, .root = scheduled->body };
    tl_stmt_visit(scheduled->body, look_at_block, &n);
    out[0] = '\0';
    if (n.scalar > 0.05 * n.all)
        snprintf(out, 96, "%.0f %% without lanes (%s)", 100 * n.scalar / n.all, n.scalar_block);
    else if (n.gathered > 0.05 * n.all)
        snprintf(out, 96, "%.0f %% gathered (%s)", 100 * n.gathered / n.all, n.gathering_block);
}

/* ---- one kernel ---- */

static void fill(void *data, const tl_buffer *b, uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    int64_t count = tl_buffer_max_elements(b);
    for (int64_t i = 0; i < count; i++) {
        tl_number value;
        if (tl_dtype_is_float(b->dtype))
            value.f = (double)(tl_random_next(&random) >> 40) * 0x1p-24 - 0.5;
        else
            value.i = 0;
        tl_number_store(b->dtype, data, (size_t)i, value);
    }
}

static void time_rounds(bench *b, timed_kernel *k, row *r, double called_ns)
{
    double peak = 0, traffic = 0, read = r->bytes / 2;
    for (int round = 0; round < ROUNDS; round++) {
        peak = fmax(peak,
                    tl_peak_gflops(b->machine.pool, b->machine.threads,
                                   tl_isa_infos[b->machine.target.isa].vector_bits, peak_seconds));
        traffic =
            fmax(traffic, tl_peak_traffic_gbs(b->machine.pool, b->machine.threads, (int64_t)read,
                                              (int64_t)(r->bytes - read), peak_seconds));
        timed_kernel_slice(&b->machine, k, fmax(slice_seconds, b->options.seconds / ROUNDS));
    }
    double arithmetic = r->flops / peak + called_ns, moved = traffic > 0 ? r->bytes / traffic : 0;
    r->ns = k->best_ns;
    r->by_traffic = moved > arithmetic;
    r->bound_ns = fmax(arithmetic, moved);
    r->percent = 100 * r->bound_ns / r->ns;
}

static void bench_kernel(bench *b, const tl_kernel *kernel, uint64_t seed)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive, *direct;
    timed_kernel k;
    void *data[TIMED_BUFFERS];
    row r = { .seed = seed };
    const char *lowering = tl_choose_lowering(kernel, &b->machine.target, b->options.numerics);
    timed_must(tl_kernel_program(arena, kernel, NULL, &direct, &diag), &diag);
    timed_must(tl_kernel_program(arena, kernel, lowering, &naive, &diag), &diag);
    r.flops = (double)tl_program_flops(direct);
    r.bytes = (double)tl_program_bytes(direct);
    snprintf(r.name, sizeof r.name, "%s%s%s", kernel->name,
             strcmp(lowering, "direct") != 0 ? " " : "",
             strcmp(lowering, "direct") != 0 ? lowering : "");
    if ((r.flops >= LEAST_FLOPS || r.bytes >= LEAST_BYTES) && r.bytes < MOST_BYTES &&
        naive->param_count < TIMED_BUFFERS / 2) {
        tl_schedule *s = tl_schedule_create(arena, naive, &b->machine.target, false);
        timed_must(tl_schedule_default(s, &diag), &diag);
        for (int i = 0; i < naive->param_count; i++) {
            data[i] = timed_alloc(tl_buffer_max_bytes(naive->params[i]));
            fill(data[i], naive->params[i], seed + (uint64_t)i);
        }
        timed_kernel_make(&b->machine, arena, tl_schedule_program(s), data, &k);
        say_what_lacks(arena, tl_schedule_program(s), r.lacks);
        time_rounds(b, &k, &r, functions_ns(b, direct));
        const char *show = b->options.show != NULL ? b->options.show : "";
        bool is_naive = strcmp(show, "naive") == 0;
        if (is_naive || strcmp(show, "program") == 0)
            printf("# %s: %.1f %%\n%s\n", r.name, r.percent,
                   tl_program_text(arena, is_naive ? naive : tl_schedule_program(s)));
        timed_kernel_free(&k);
        for (int i = 0; i < naive->param_count; i++)
            free(data[i]);
        TL_ROOM(b->arena, b->rows, b->count, b->capacity);
        b->rows[b->count++] = r;
    }
    tl_arena_destroy(arena);
}

static void bench_network(bench *b, uint64_t seed)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_graph *g;
    tl_partition partition;
    const char *text = random_network(arena, seed);
    if (b->options.show != NULL && strcmp(b->options.show, "graph") == 0)
        printf("%s\n", text);
    timed_must(tl_graph_parse(arena, text, "network", &g, &diag), &diag);
    timed_must(tl_graph_prepare(g, b->options.numerics, &diag), &diag);
    timed_must(tl_graph_fit(g, &b->machine.target, b->options.numerics, &diag), &diag);
    timed_must(tl_assign_layouts(g, &b->machine.target, &diag), &diag);
    timed_must(tl_partition_graph(arena, g, &partition, &diag), &diag);
    for (int i = 0; i < partition.count; i++)
        bench_kernel(b, &partition.kernels[i], seed);
    tl_arena_destroy(arena);
}

/* ---- the table ---- */

static int worst_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->percent != y->percent)
        return x->percent < y->percent ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void print_rows(const bench *b)
{
    if (!b->options.json)
        printf("%6s %-4s %9s %9s %9s  %-44s %s\n", "bound", "by", "us", "MFLOP", "KB", "kernel",
               "lacks");
    for (int i = 0; i < b->count; i++) {
        const row *r = &b->rows[i];
        if (b->options.json)
            printf(
                "{\"record\":\"cliff\",\"seed\":%" PRIu64
                ",\"name\":\"%s\",\"min_ns\":%.0f,\"bound_ns\":%.0f,"
                "\"percent\":%.2f,\"by\":\"%s\",\"flops\":%.0f,\"bytes\":%.0f,\"lacks\":\"%s\"}\n",
                r->seed, r->name, r->ns, r->bound_ns, r->percent,
                r->by_traffic ? "traffic" : "arithmetic", r->flops, r->bytes, r->lacks);
        else
            printf("%5.1f%% %-4s %9.1f %9.2f %9.0f  %-44.44s %s%s(seed %" PRIu64 ")\n", r->percent,
                   r->by_traffic ? "move" : "work", r->ns / 1e3, r->flops / 1e6, r->bytes / 1024,
                   r->name, r->lacks, *r->lacks ? " " : "", r->seed);
    }
}

static double percentile(const bench *b, double share)
{
    return b->rows[(int)(share * (b->count - 1) + 0.5)].percent;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {
        "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10",
        "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"
    };
    bench b = { 0 };
    if (!bench_options_parse(argc, argv, 0.1, &b.options)) {
        fprintf(stderr, "usage: cliffs [--threads N] [--seconds S] [--target ISA] [--numerics "
                        "strict] [--json]\n"
                        "              [--show program|naive|graph] [SEED ...]\n");
        return 2;
    }
    if (b.options.name_count == 0) {
        b.options.names = (char *const *)(uintptr_t)usual;
        b.options.name_count = SEEDS;
    }
    timed_machine_make(b.options.target, b.options.threads, &b.machine);
    bench_print_machine(&b.options, &b.machine.target);
    b.arena = tl_arena_create(0);
    for (int i = 0; i < b.options.name_count; i++)
        bench_network(&b, strtoull(b.options.names[i], NULL, 10));
    if (b.count > 0) {
        qsort(b.rows, (size_t)b.count, sizeof *b.rows, worst_first);
        print_rows(&b);
        if (b.options.json)
            printf("{\"record\":\"cliffs\",\"kernels\":%d,\"worst\":%.2f,\"p5\":%.2f,\"median\":%."
                   "2f}\n",
                   b.count, b.rows[0].percent, percentile(&b, 0.05), percentile(&b, 0.5));
        else
            printf("%d kernels of %d networks: worst %.1f %%, fifth percentile %.1f %%, median "
                   "%.1f %%\n",
                   b.count, b.options.name_count, b.rows[0].percent, percentile(&b, 0.05),
                   percentile(&b, 0.5));
    }
    tl_arena_destroy(b.arena);
    timed_machine_free(&b.machine);
    return 0;
}
