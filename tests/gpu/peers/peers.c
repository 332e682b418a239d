/* tests/gpu/peers/peers.c: what the libraries of a machine with a GPU take for the computations of peer_cases.def.
 *
 *     peers [-d DIVISOR] [-s SECONDS] CASE      a line of JSON for each library, {"record":"peer", ...}
 *     peers -k [-d DIVISOR] CASE                the case as a kernel, to be timed by tilth
 *     peers -l                                  the names of the cases
 *
 * Sizes are divided by DIVISOR (1). Each way that a library has is run, a few results are checked, and it is timed by events for
 * SECONDS (0.3); the fastest right one counts. What is not there is said in a line of its own: {"skipped": why}. TILTH_PEERS
 * has folders with libraries (a:b:c), the system's count, too. Exit status: 0; 1 a result was wrong; 2 usage; 5 no GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/checked.h"
#include "runtime/base/clock.h"
#include "runtime/cuda/cuda_private.h"
#include "tests/gpu/peers/peer.h"

enum {
    SAMPLES = 16,
    AT_ONCE = 4,
    MOST_RUNS = 400,
    LEAST_SIZE = 16,
    WRONG = 1,
    USAGE = 2,
    NO_GPU = 5
};
#define WORKSPACE (INT64_C(64) << 20)

static const peer_case cases[] = {
#define CASE(name, op, dtype, tf32, batch, m, n, k) \
    { #name, PEER_##op, TL_##dtype, tf32, batch, m, n, k },
#include "tests/gpu/peers/peer_cases.def"
#undef CASE
};
enum { CASES = sizeof cases / sizeof *cases };
static const peer_library *const libraries[] = { &peer_driver, &peer_cublas, &peer_cublaslt,
                                                 &peer_cudnn };

typedef struct {
    tl_device *device;
    const tl_device_type *type; /* its functions */
    tl_queue *queue;
    tl_device_event *events[AT_ONCE + 1];
    void *blocks[PEER_OPERANDS]; /* of the host: what operands repeat */
    peer_memory memory;
} bench;

typedef struct {
    double best_ns, median_ns, error;
    int runs, way;
    bool is_right;
} timing;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- operands ---- */

static tl_status fill(bench *b, const peer_case *c, int operand, tl_diag *diag)
{
    int64_t elements = peer_elements(c, operand), size = (int64_t)tl_dtype_size(c->dtype);
    if (elements == 0)
        return TL_OK;
    b->blocks[operand] = peer_block(c, operand);
    if (b->blocks[operand] == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for operand %d", operand);
    TL_TRY(b->type->allocate(b->device, elements * size, &b->memory.operands[operand], diag));
    for (int64_t done = 0; done < elements; done += PEER_BLOCK)
        TL_TRY(b->type->copy_in(b->queue, (char *)b->memory.operands[operand] + done * size,
                                b->blocks[operand], tl_min64(PEER_BLOCK, elements - done) * size,
                                diag));
    return b->type->wait(b->queue, diag);
}

static tl_status open_bench(bench *b, const peer_case *c, tl_diag *diag)
{
    int64_t bytes = peer_result_elements(c) * (int64_t)tl_dtype_size(c->dtype);
    TL_TRY(tl_device_open("cuda", &b->device, diag));
    b->type = b->device->type;
    TL_TRY(b->type->make_queue(b->device, NULL, &b->queue, diag));
    for (int i = 0; i <= AT_ONCE; i++)
        TL_TRY(b->type->make_event(b->device, &b->events[i], diag));
    TL_TRY(b->type->allocate(b->device, bytes, &b->memory.result, diag));
    TL_TRY(b->type->allocate(b->device, WORKSPACE, &b->memory.workspace, diag));
    b->memory.workspace_bytes = WORKSPACE;
    for (int i = 0; i < PEER_OPERANDS; i++)
        TL_TRY(fill(b, c, i, diag));
    return TL_OK;
}

static void close_bench(bench *b)
{
    for (int i = 0; i < PEER_OPERANDS; i++) {
        free(b->blocks[i]);
        if (b->device != NULL)
            b->type->release(b->device, b->memory.operands[i]);
    }
    if (b->device == NULL)
        return;
    b->type->release(b->device, b->memory.result);
    b->type->release(b->device, b->memory.workspace);
    for (int i = 0; i <= AT_ONCE; i++)
        if (b->events[i] != NULL)
            b->type->drop_event(b->events[i]);
    b->type->drop_queue(b->queue);
    tl_device_close(b->device);
}

/* ---- one way ---- */

static tl_status check(bench *b, const peer_case *c, bool channels_last, timing *t, tl_diag *diag)
{
    int64_t all = peer_result_elements(c), size = (int64_t)tl_dtype_size(c->dtype);
    t->error = 0;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t index = all / SAMPLES * i + all / (2 * SAMPLES + 1); /* not all in one column */
        double element, magnitude;
        TL_TRY(b->type->copy_out(b->queue, &element, (char *)b->memory.result + index * size, size,
                                 diag));
        TL_TRY(b->type->wait(b->queue, diag));
        double got = tl_number_load(c->dtype, &element, 0).f;
        double right = peer_expected(c, b->blocks, channels_last, index, &magnitude);
        double error = fabs(got - right) / magnitude;
        t->error = isnan(error) ? INFINITY : fmax(t->error, error);
    }
    t->is_right = t->error <= peer_tolerance(c);
    return TL_OK;
}

static tl_status measure(bench *b, const peer_library *l, double seconds, timing *t, tl_diag *diag)
{
    double times[MOST_RUNS];
    int64_t end = tl_clock_ns() + (int64_t)(seconds * 1e9);
    int runs = 0;
    while (runs + AT_ONCE <= MOST_RUNS && (runs == 0 || tl_clock_ns() < end)) {
        TL_TRY(b->type->record(b->queue, b->events[0], diag));
        for (int i = 0; i < AT_ONCE; i++) {
            TL_TRY(l->run(t->way, diag));
            TL_TRY(b->type->record(b->queue, b->events[i + 1], diag));
        }
        TL_TRY(b->type->wait(b->queue, diag));
        for (int i = 0; i < AT_ONCE; i++)
            TL_TRY(b->type->elapsed(b->events[i], b->events[i + 1], &times[runs++], diag));
    }
    qsort(times, (size_t)runs, sizeof *times, compare);
    t->runs = runs;
    t->best_ns = times[0];
    t->median_ns = times[runs / 2];
    return TL_OK;
}

static tl_status try_way(bench *b, const peer_library *l, const peer_case *c, double seconds,
                         timing *t, tl_diag *diag)
{
    int64_t bytes = peer_result_elements(c) * (int64_t)tl_dtype_size(c->dtype);
    TL_TRY(b->type->fill(b->queue, b->memory.result, 0xff, bytes, diag));
    TL_TRY(l->run(t->way, diag));
    TL_TRY(b->type->wait(b->queue, diag));
    TL_TRY(check(b, c, l->is_channels_last(t->way), t, diag));
    return t->is_right ? measure(b, l, seconds, t, diag) : TL_OK;
}

/* ---- one library ---- */

static void print_string(const char *text)
{
    for (; *text != '\0'; text++)
        putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? ' ' : *text);
}

static void print_skipped(const peer_library *l, const peer_case *c, const tl_diag *why)
{
    printf("{\"record\":\"peer\",\"kernel\":\"%s\",\"peer\":\"%s\",\"skipped\":\"", c->name,
           l->name);
    print_string(why->text);
    printf("\"}\n");
}

static void print_timing(const peer_library *l, const peer_case *c, const char *version, int ways,
                         const timing *t)
{
    double flops = peer_flops(c), bytes = peer_bytes(c);
    printf("{\"record\":\"peer\",\"kernel\":\"%s\",\"peer\":\"%s\",\"version\":\"%s\",\"ways\":%d,"
           "\"way\":%d,\"runs\":%d,\"min_ns\":%.0f,\"median_ns\":%.0f,\"flops\":%.0f,"
           "\"bytes\":%.0f,\"tflops\":%.2f,\"gbs\":%.1f,\"error\":%.2g,\"ok\":%s}\n",
           c->name, l->name, version, ways, t->way, t->runs, t->best_ns, t->median_ns, flops, bytes,
           t->best_ns > 0 ? flops / t->best_ns / 1000 : 0, t->best_ns > 0 ? bytes / t->best_ns : 0,
           isfinite(t->error) ? t->error : 1e9, t->is_right ? "true" : "false");
}

/* The fastest right way; of none that is right one that is not. A way that the library refuses is none. */
static tl_status best_way(bench *b, const peer_library *l, const peer_case *c, int ways,
                          double seconds, timing *best, tl_diag *diag)
{
    bool found = false;
    for (int way = 0; way < ways; way++) {
        timing t = { .way = way };
        tl_status status = try_way(b, l, c, seconds, &t, diag);
        if (status == TL_UNSUPPORTED)
            continue;
        TL_TRY(status);
        if (!found || (t.is_right && (!best->is_right || t.best_ns < best->best_ns)))
            *best = t;
        found = true;
    }
    if (!found && ways == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "it has no algorithm for this");
    return found ? TL_OK : TL_UNSUPPORTED;
}

/* *is_wrong: it says something else than the definition. A status: the device failed. */
static tl_status time_library(bench *b, const peer_library *l, const peer_case *c, double seconds,
                              bool *is_wrong, tl_diag *diag)
{
    tl_text version = { 0 };
    timing best = { 0 };
    int ways = 0;
    bool started = false;
    tl_status status = l->start(((cuda_queue *)b->queue)->stream, &version, diag);
    if (status == TL_OK) {
        started = true;
        status = l->prepare(c, &b->memory, &ways, diag);
    }
    if (status == TL_OK)
        status = best_way(b, l, c, ways, seconds, &best, diag);
    if (status == TL_OK) {
        print_timing(l, c, tl_text_get(&version), ways, &best);
        *is_wrong |= !best.is_right;
    } else {
        print_skipped(l, c, diag);
    }
    fflush(stdout); /* what is there stays when this process is ended */
    if (started)
        l->finish();
    tl_text_free(&version);
    /* A library that is not there, or refuses, is no failure of the device. */
    return b->type->check(b->device, diag);
}

static tl_status time_case(const peer_case *c, double seconds, bool *is_wrong, tl_diag *diag)
{
    bench b = { 0 };
    cu_context before;
    tl_status status = open_bench(&b, c, diag);
    bool entered =
        status == TL_OK && tl_cuda_enter((cuda_device *)b.device, &before, diag) == TL_OK;
    for (size_t i = 0; entered && i < sizeof libraries / sizeof *libraries && status == TL_OK; i++)
        if ((libraries[i]->ops >> c->op & 1) != 0)
            status = time_library(&b, libraries[i], c, seconds, is_wrong, diag);
    if (entered) {
        tl_diag ignored = { 0 };
        tl_cuda_leave((cuda_device *)b.device, before, CU_SUCCESS, "", &ignored);
    }
    close_bench(&b);
    return status;
}

/* ---- the command ---- */

static const peer_case *find(const char *name)
{
    for (int i = 0; name != NULL && i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

/* Smaller: heads and images at least one, all else at least a tile of tensor cores. */
static peer_case divide(const peer_case *c, int64_t by)
{
    peer_case out = *c;
    out.batch = tl_max64(c->batch / by, 1);
    out.m = tl_max64(c->m / by, tl_min64(c->m, LEAST_SIZE));
    out.n = tl_max64(c->n / by, c->op == PEER_ATTENTION ? 1 : tl_min64(c->n, LEAST_SIZE));
    out.k = tl_max64(c->k / by, tl_min64(c->k, LEAST_SIZE));
    return out;
}

static int usage(void)
{
    fprintf(stderr, "usage: peers [-k] [-d DIVISOR] [-s SECONDS] CASE | peers -l\n");
    return USAGE;
}

int main(int argc, char **argv)
{
    int64_t divisor = 1;
    double seconds = 0.3;
    bool text_only = false, is_wrong = false;
    for (int option; (option = getopt(argc, argv, "d:s:kl")) != -1;)
        switch (option) {
        case 'd':
            divisor = atoll(optarg);
            break;
        case 's':
            seconds = atof(optarg);
            break;
        case 'k':
            text_only = true;
            break;
        case 'l':
            for (int i = 0; i < CASES; i++)
                puts(cases[i].name);
            return 0;
        default:
            return usage();
        }
    const peer_case *found = find(argv[optind]);
    if (found == NULL || divisor < 1)
        return usage();
    peer_case c = divide(found, divisor);
    if (text_only) {
        tl_text text = { 0 };
        peer_text(&c, &text);
        fputs(tl_text_get(&text), stdout);
        tl_text_free(&text);
        return 0;
    }
    tl_diag diag = { 0 };
    if (time_case(&c, seconds, &is_wrong, &diag) != TL_OK) {
        fprintf(stderr, "peers: %s\n", diag.text);
        return NO_GPU;
    }
    if (is_wrong)
        fprintf(stderr, "peers: a library says something else than the definition of %s\n", c.name);
    return is_wrong ? WRONG : 0;
}
