/* driver/bench/bench_varying.c: tilth bench MODEL --shape x=1,16..512: what one code for all shapes costs beside code for each.
 * Both run in turns, so that what disturbs the machine disturbs both; ratios count, not times. */
#include <stdlib.h>
#include <string.h>
#include "driver/bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/base/statistics.h"

enum { POINTS = 5, MOST_TURNS = 20000, LEAST_TURNS = 9 };

/* One of the two. */
typedef struct {
    tl_model *model; /* NULL: the session's */
    const tl_executable *executable;
    tl_runner *runner;
    int64_t *runs;    /* sorted in the end */
    int64_t *step_ns; /* the shortest of each step */
    int step_count;
} side;

typedef struct {
    const tl_session *session;
    const char *path;
    const tl_model_options *options;
    const tl_bench_varying *request;
    tl_diag *diag;
} varying_bench;

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void start_side(const varying_bench *b, side *s)
{
    s->step_count = tl_executable_info(s->executable)->step_count;
    s->runs = TL_NEW_ARRAY(b->session->arena, int64_t, MOST_TURNS);
    s->step_ns = TL_NEW_ARRAY(b->session->arena, int64_t, s->step_count);
    for (int i = 0; i < s->step_count; i++)
        s->step_ns[i] = INT64_MAX;
}

static tl_status run_side(const varying_bench *b, side *s, const tl_bindings *bound, int turn,
                          int64_t *step_ns)
{
    int64_t start = tl_clock_ns();
    TL_TRY(tl_runner_run(s->runner, bound->in, bound->out, NULL, b->diag));
    s->runs[turn] = tl_clock_ns() - start;
    TL_TRY(tl_runner_run(s->runner, bound->in, bound->out, step_ns, b->diag));
    for (int i = 0; i < s->step_count; i++)
        if (step_ns[i] < s->step_ns[i])
            s->step_ns[i] = step_ns[i];
    return TL_OK;
}

/* Turns of both, first one first, then the other, for as long as was asked for. */
static tl_status measure(const varying_bench *b, side sides[2], const tl_bindings *bound,
                         int *turns)
{
    int steps =
        sides[0].step_count > sides[1].step_count ? sides[0].step_count : sides[1].step_count;
    int64_t *step_ns = TL_NEW_ARRAY(b->session->arena, int64_t, steps);
    int64_t end = tl_clock_ns() + (int64_t)(b->request->seconds / POINTS * 1e9);
    for (int warm = 0; warm < 2; warm++)
        for (int k = 0; k < 2; k++)
            TL_TRY(tl_runner_run(sides[k].runner, bound->in, bound->out, NULL, b->diag));
    for (*turns = 0; *turns < MOST_TURNS && (*turns < LEAST_TURNS || tl_clock_ns() < end); ++*turns)
        for (int k = 0; k < 2; k++)
            TL_TRY(run_side(b, &sides[(k + *turns) % 2], bound, *turns, step_ns));
    for (int k = 0; k < 2; k++)
        qsort(sides[k].runs, (size_t)*turns, sizeof *sides[k].runs, by_time);
    return TL_OK;
}

/* Kernels that both cut alike, those that lose most first. */
static void print_kernels(const side sides[2], int top)
{
    const tl_executable_spec *all = tl_executable_info(sides[0].executable);
    const tl_executable_spec *one = tl_executable_info(sides[1].executable);
    if (all->step_count != one->step_count)
        return;
    for (int shown = 0; shown < top; shown++) {
        int most = -1;
        for (int i = 0; i < all->step_count; i++)
            if (sides[0].step_ns[i] >= 0 &&
                (most < 0 || sides[0].step_ns[i] - sides[1].step_ns[i] >
                                 sides[0].step_ns[most] - sides[1].step_ns[most]))
                most = i;
        if (most < 0)
            return;
        printf("    %-40.40s %9.2f %9.2f us %6.2f\n", all->steps[most].name,
               (double)sides[0].step_ns[most] * 1e-3, (double)sides[1].step_ns[most] * 1e-3,
               (double)sides[0].step_ns[most] / (double)sides[1].step_ns[most]);
        sides[0].step_ns[most] = -1;
    }
}

static void print_point(const varying_bench *b, const int64_t *dims, const side sides[2], int turns)
{
    const tl_executable_spec *spec = tl_executable_info(sides[0].executable);
    int64_t median[2], least[2];
    for (int k = 0; k < 2; k++) {
        median[k] = tl_quantile(sides[k].runs, turns, 0.5);
        least[k] = sides[k].runs[0];
    }
    if (b->request->json) {
        printf("{\"record\":\"varying\",\"dims\":{");
        for (int d = 0; d < spec->dim_count; d++) {
            printf("%s", d > 0 ? "," : "");
            tl_print_json_text(spec->dims[d].name);
            printf(":%lld", (long long)dims[d]);
        }
        printf("},\"median_ns\":%lld,\"exact_median_ns\":%lld,\"min_ns\":%lld,"
               "\"exact_min_ns\":%lld,\"runs\":%d}\n",
               (long long)median[0], (long long)median[1], (long long)least[0], (long long)least[1],
               turns);
        return;
    }
    for (int d = 0; d < spec->dim_count; d++)
        printf("%s = %lld  ", spec->dims[d].name, (long long)dims[d]);
    printf("for all shapes %.3f ms, for these %.3f ms: %.2f times (least: %.2f)\n",
           (double)median[0] * 1e-6, (double)median[1] * 1e-6,
           (double)median[0] / (double)median[1], (double)least[0] / (double)least[1]);
    print_kernels(sides, b->request->top);
}

/* Code for exactly these dims. */
static tl_status load_exact(const varying_bench *b, const int64_t *dims, side *s)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(b->session->model));
    tl_arena *arena = b->session->arena;
    tl_port *ports = TL_NEW_ARRAY(arena, tl_port, spec->input_count);
    tl_shape_override *shapes = TL_NEW_ARRAY(arena, tl_shape_override, spec->input_count);
    tl_model_options options = *b->options;
    if (!tl_ports_at(spec->inputs, spec->input_count, spec->dim_count, dims, ports))
        return tl_fail(b->diag, TL_BAD_ARGUMENT, "an input has no shape for these extents");
    for (int i = 0; i < spec->input_count; i++)
        shapes[i] = (tl_shape_override){ .name = ports[i].name,
                                         .shape = tl_shape_of(ports[i].rank, ports[i].shape),
                                         .dtype = ports[i].dtype };
    options.shapes = shapes;
    options.shape_count = spec->input_count;
    TL_TRY(tl_model_load(b->path, &options, &s->model, b->diag));
    s->executable = tl_model_executable(s->model);
    return TL_OK;
}

static tl_status bench_sides(const varying_bench *b, const int64_t *dims, side sides[2],
                             tl_bindings *bound)
{
    const tl_session *session = b->session;
    int turns;
    sides[0].executable = tl_model_executable(session->model);
    TL_TRY(load_exact(b, dims, &sides[1]));
    for (int k = 0; k < 2; k++) {
        TL_TRY(tl_runner_create(sides[k].executable, session->pool, session->threads,
                                &sides[k].runner, b->diag));
        start_side(b, &sides[k]);
    }
    TL_TRY(tl_runner_set_dims(sides[0].runner, dims, b->diag));
    TL_TRY(tl_session_bindings(session, sides[0].executable, dims, b->request->given, NULL,
                               b->request->seed, bound, b->diag));
    TL_TRY(measure(b, sides, bound, &turns));
    tl_progress_done();
    print_point(b, dims, sides, turns);
    return TL_OK;
}

static tl_status bench_point(const varying_bench *b, const int64_t *dims)
{
    side sides[2] = { { 0 } };
    tl_bindings bound = { 0 };
    tl_status status = bench_sides(b, dims, sides, &bound);
    for (int k = 0; k < 2; k++)
        tl_runner_destroy(sides[k].runner);
    tl_model_destroy(sides[1].model);
    tl_bindings_free(&bound);
    return status;
}

tl_status tl_bench_varying_shapes(const tl_session *session, const char *path,
                                  const tl_model_options *options, const tl_bench_varying *request,
                                  tl_diag *diag)
{
    const varying_bench b = {
        .session = session, .path = path, .options = options, .request = request, .diag = diag
    };
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(session->model));
    int64_t dims[TL_MOST_DIMS], before[TL_MOST_DIMS] = { -1 };
    for (int i = 0; i < POINTS; i++) {
        bool is_new = false;
        for (int d = 0; d < spec->dim_count; d++) {
            const tl_executable_dim *dim = &spec->dims[d];
            dims[d] = dim->min + (dim->max - dim->min) * i / (POINTS - 1);
            is_new |= dims[d] != before[d];
            before[d] = dims[d];
        }
        if (is_new)
            TL_TRY(bench_point(&b, dims));
    }
    return TL_OK;
}
