/* driver/pipeline/tunable_model.c: a model as something that the tuner can build, run and compare. */
#include "driver/pipeline/tunable_model.h"
#include "driver/pipeline/model_forms.h"
#include "driver/pipeline/model_tasks.h"
#include "runtime/base/clock.h"
#include "runtime/executable/bindings.h"

typedef struct {
    tl_tunable base;
    tl_arena *arena;
    tl_model *graph;
    tl_model_options options; /* but for the picks */
    int set_count;
    tl_bindings *sets;
} tunable_model;

typedef struct {
    tl_tunable_build base;
    tunable_model *of;
    tl_model *model;
    tl_runner *runner;
} model_build;

static const tl_tunable_step *list_steps(tl_arena *arena, const tl_model *model, int *count)
{
    const tl_model_facts *facts = tl_model_get_facts(model);
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(model));
    tl_tunable_step *steps = TL_NEW_ARRAY(arena, tl_tunable_step, spec->step_count);
    const int *kernel_of = tl_model_kernel_of_steps(arena, model);
    for (int i = 0; i < spec->step_count; i++) {
        const tl_executable_step *step = &spec->steps[i];
        const char *code = step->kernel >= 0 ? spec->kernels[step->kernel].key : NULL;
        steps[i] = (tl_tunable_step){ .workload = step->workload, .code = code ? code : "" };
        if (kernel_of[i] < 0 || facts->kernels == NULL)
            continue;
        const tl_model_kernel *kernel = &facts->kernels[kernel_of[i]];
        steps[i].kernel = kernel->kernel->name;
        steps[i].lowering = kernel->lowering;
        steps[i].is_picked = kernel->pick != NULL;
    }
    *count = spec->step_count;
    return steps;
}

static void close_build(tl_tunable_build *base)
{
    model_build *build = (model_build *)base;
    if (build == NULL)
        return;
    tl_runner_destroy(build->runner);
    tl_model_destroy(build->model);
    build->runner = NULL;
    build->model = NULL;
}

static tl_status build_model(tl_tunable *base, const tl_pick *picks, int count, const char *form,
                             tl_tunable_build **out, tl_diag *diag)
{
    tunable_model *m = (tunable_model *)base;
    const tl_pick *own = /* the model looks at them while it lives */
        count > 0 ? tl_arena_copy(m->arena, picks, sizeof *picks * (size_t)count, _Alignof(tl_pick))
                  : NULL;
    const tl_picks given = { .count = count, .picks = own, .form = form, .uid = "" };
    tl_model_options options = m->options;
    options.picks = &given;
    model_build *build = TL_NEW(m->arena, model_build);
    build->of = m;
    *out = &build->base; /* closed by the caller whatever becomes of it */
    TL_TRY(tl_model_load(base->path, &options, &build->model, diag));
    build->base.steps = list_steps(m->arena, build->model, &build->base.step_count);
    return tl_runner_create(tl_model_executable(build->model), options.pool, options.threads,
                            &build->runner, diag);
}

static void keep_build(tl_tunable_build *base)
{
    tl_model_store(((model_build *)base)->model);
}

static void free_inputs(tunable_model *m)
{
    for (int i = 0; i < m->set_count; i++)
        tl_bindings_free(&m->sets[i]);
    m->set_count = 0;
}

static tl_status draw_inputs(tl_tunable_build *base, uint64_t seed, int count, tl_diag *diag)
{
    const model_build *build = (const model_build *)base;
    tunable_model *m = build->of;
    free_inputs(m);
    m->sets = TL_NEW_ARRAY(m->arena, tl_bindings, count);
    m->set_count = count;
    for (int i = 0; i < count; i++)
        TL_TRY(tl_bindings_make(m->arena, tl_model_executable(build->model), NULL, NULL,
                                seed + (uint64_t)i, &m->sets[i], diag));
    return TL_OK;
}

static tl_status run_build(tl_tunable_build *base, int set, int64_t *step_ns, tl_diag *diag)
{
    const model_build *build = (const model_build *)base;
    const tl_bindings *b = &build->of->sets[set];
    return tl_runner_run(build->runner, b->in, b->out, step_ns, diag);
}

static const tl_tensor *get_outputs(tl_tunable *base, int set, int *count)
{
    const tl_bindings *b = &((tunable_model *)base)->sets[set];
    *count = b->output_count;
    return b->outputs;
}

static int64_t clock_ns(tl_tunable *base)
{
    (void)base;
    return tl_clock_ns();
}

static void find_forms(tl_tunable *base, tl_arena *arena, const tl_form **out, int *count)
{
    tl_model_find_forms(arena, ((tunable_model *)base)->graph, out, count);
}

typedef struct {
    tl_arena *arena;
    tl_form_visitor *visit;
    void *user;
} visiting;

static tl_status visit_kernel(void *user, const tl_kernel *kernel, tl_diag *diag)
{
    const visiting *v = user;
    tl_form_kernel seen = { .kernel = kernel };
    TL_TRY(tl_kernel_workload_key(v->arena, kernel, seen.workload, diag));
    return v->visit(v->user, &seen, diag);
}

static tl_status visit_form(tl_tunable *base, const char *form, tl_form_visitor *visit, void *user,
                            tl_diag *diag)
{
    const tunable_model *m = (const tunable_model *)base;
    visiting v = { m->arena, visit, user };
    return tl_model_visit_form(m->arena, m->graph, form, visit_kernel, &v, diag);
}

static tl_status describe(tl_tunable *base, tl_arena *arena, const tl_form_kernel *kernel,
                          tl_tune_task *out, tl_diag *diag)
{
    return tl_model_task_of_kernel(arena, kernel->kernel, base->query.target, base->query.numerics,
                                   out, diag);
}

static const tl_tunable_type type = {
    .build = build_model,
    .close = close_build,
    .keep = keep_build,
    .draw_inputs = draw_inputs,
    .run = run_build,
    .outputs = get_outputs,
    .clock_ns = clock_ns,
    .find_forms = find_forms,
    .visit_form = visit_form,
    .describe = describe,
};

tl_tunable *tl_tunable_model_create(tl_arena *arena, const char *path, tl_model *graph,
                                    const tl_model_options *options)
{
    const tl_model_facts *facts = tl_model_get_facts(graph);
    tunable_model *m = TL_NEW(arena, tunable_model);
    m->arena = arena;
    m->graph = graph;
    m->options = *options;
    m->options.keep_programs = true; /* so that it is known which picks were misses */
    m->options.inspect_only = m->options.compile_only = false;
    m->options.threads = options->threads > 0 ? options->threads : tl_pool_threads(options->pool);
    m->base = (tl_tunable){ .type = &type,
                            .path = path,
                            .query = { .model = facts->identity,
                                       .target = facts->target,
                                       .numerics = options->numerics,
                                       .threads = m->options.threads } };
    return &m->base;
}

void tl_tunable_model_destroy(tl_tunable *model)
{
    if (model != NULL)
        free_inputs((tunable_model *)model);
}
