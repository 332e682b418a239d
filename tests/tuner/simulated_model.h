/* tests/tuner/simulated_model.h: a model that takes the time that its schedules say, by a clock of its own, and a database of
 * records about its kernels.
 *
 * It has six kernels of 1 ms each. A record's trace says what becomes of a kernel: "0.8" takes so many times as long,
 * "0.8 wrong" changes the model's output, too, "same" compiles to what the default does, "miss" does not fit. Every run takes
 * up to three percent longer than that, by chance. One form, "fuse 4", has one kernel of 2 ms in place of the last two. */
#ifndef TL_TESTS_TUNER_SIMULATED_MODEL_H
#define TL_TESTS_TUNER_SIMULATED_MODEL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/random.h"
#include "tuner/model/tunable.h"

enum { SIM_KERNELS = 6, SIM_FUSED = 5, SIM_WORKLOADS = 7 };

typedef struct {
    tl_tunable_build base;
    tl_tunable_step steps[SIM_KERNELS];
    double ns[SIM_KERNELS];
    char code[SIM_KERNELS][16];
    bool is_wrong;
} sim_build;

typedef struct {
    tl_tunable base;
    tl_target target;
    tl_random random;
    int64_t now_ns;
    uint64_t seed;  /* of the inputs */
    int open_count; /* builds that were not closed */
    char kept[128]; /* code of the steps of the build that was kept */
    float output[2];
    tl_tensor outputs[2];
    int runs_left; /* until *stop; 0: no end */
    volatile sig_atomic_t *stop;
} sim_tunable;

static sim_tunable sim_model;
static tl_arena *sim_arena;
static tl_records *sim_store;
static char sim_folder[64];

static inline const char *sim_workload(int i)
{
    static char keys[SIM_WORKLOADS][33];
    snprintf(keys[i], sizeof keys[i], "%032d", i);
    return keys[i];
}

/* The workload of a step in a form. */
static inline int sim_workload_of(const char *form, int step)
{
    return form[0] != '\0' && step == SIM_FUSED - 1 ? SIM_KERNELS : step;
}

static inline tl_status sim_build_model(tl_tunable *model, const tl_pick *picks, int count,
                                        const char *form, tl_tunable_build **out, tl_diag *diag)
{
    static const char *const names[SIM_KERNELS] = { "kernel_0", "kernel_1", "kernel_2",
                                                    "kernel_3", "kernel_4", "kernel_5" };
    (void)model, (void)diag;
    sim_build *b = calloc(1, sizeof *b);
    assert_non_null(b);
    sim_model.open_count++;
    b->base = (tl_tunable_build){ form[0] != '\0' ? SIM_FUSED : SIM_KERNELS, b->steps };
    for (int i = 0; i < b->base.step_count; i++) {
        const int w = sim_workload_of(form, i);
        const char *trace = "default";
        for (int p = 0; p < count; p++)
            if (strcmp(picks[p].workload, sim_workload(w)) == 0)
                trace = picks[p].trace;
        const bool is_other = trace[0] >= '0' && trace[0] <= '9';
        b->steps[i] = (tl_tunable_step){
            .workload = sim_workload(w),
            .kernel = names[i],
            .lowering = "direct",
            .code = b->code[i],
            .is_picked = is_other || strcmp(trace, "same") == 0,
        };
        snprintf(b->code[i], sizeof b->code[i], "%s", is_other ? trace : "default");
        b->ns[i] = (w == SIM_KERNELS ? 2e6 : 1e6) * (is_other ? atof(trace) : 1);
        b->is_wrong |= strstr(trace, "wrong") != NULL;
    }
    *out = &b->base;
    return TL_OK;
}

static inline void sim_close(tl_tunable_build *build)
{
    sim_model.open_count -= build != NULL;
    free(build);
}

static inline void sim_keep(tl_tunable_build *build)
{
    size_t used = 0;
    for (int i = 0; i < build->step_count; i++)
        used += (size_t)snprintf(sim_model.kept + used, sizeof sim_model.kept - used, "%s%s",
                                 i > 0 ? " " : "", build->steps[i].code);
}

static inline tl_status sim_draw_inputs(tl_tunable_build *build, uint64_t seed, int count,
                                        tl_diag *diag)
{
    (void)build, (void)diag;
    assert_in_range(count, 1, 2);
    sim_model.seed = seed;
    for (int i = 0; i < count; i++)
        sim_model.outputs[i] = (tl_tensor){ .dtype = TL_F32,
                                            .rank = 1,
                                            .shape = { 1 },
                                            .size = sizeof(float),
                                            .data = &sim_model.output[i] };
    return TL_OK;
}

static inline tl_status sim_run(tl_tunable_build *build, int set, int64_t *step_ns, tl_diag *diag)
{
    const sim_build *b = (const sim_build *)build;
    (void)diag;
    for (int i = 0; i < build->step_count; i++) {
        int64_t ns = (int64_t)(b->ns[i] * (1 + 0.03 * tl_random_unit(&sim_model.random)));
        sim_model.now_ns += ns;
        if (step_ns != NULL)
            step_ns[i] = ns;
    }
    sim_model.output[set] = b->is_wrong ? 2 : 1;
    if (sim_model.runs_left > 0 && --sim_model.runs_left == 0)
        *sim_model.stop = 1;
    return TL_OK;
}

static inline const tl_tensor *sim_outputs(tl_tunable *model, int set, int *count)
{
    (void)model;
    *count = 1;
    return &sim_model.outputs[set];
}

static inline int64_t sim_clock_ns(tl_tunable *model)
{
    (void)model;
    return sim_model.now_ns;
}

static inline void sim_find_forms(tl_tunable *model, tl_arena *arena, const tl_form **out,
                                  int *count)
{
    static const tl_form fused = { .form = "fuse 4\n", .what = "kernel_4: fused" };
    (void)model, (void)arena;
    *out = &fused;
    *count = 1;
}

static inline tl_status sim_visit_form(tl_tunable *model, const char *form, tl_form_visitor *visit,
                                       void *user, tl_diag *diag)
{
    (void)model;
    for (int i = 0; i < (form[0] != '\0' ? SIM_FUSED : SIM_KERNELS); i++) {
        tl_form_kernel kernel = { .kernel = NULL };
        memcpy(kernel.workload, sim_workload(sim_workload_of(form, i)), sizeof kernel.workload);
        TL_TRY(visit(user, &kernel, diag));
    }
    return TL_OK;
}

/* A record of the workload that says it takes so long alone. */
static inline void sim_record_of(int workload, const char *trace, double ns)
{
    static char target[160];
    double times[1] = { ns };
    tl_diag diag = { 0 };
    tl_target_fingerprint(&sim_model.target, 1, target);
    tl_record record = { .workload = sim_workload(workload),
                         .class_key = "c",
                         .family = "f",
                         .target = target,
                         .numerics = "relaxed",
                         .lowering = "direct",
                         .trace = trace,
                         .program = "",
                         .status = TL_RECORD_OK,
                         .reason = "",
                         .time_ns = ns,
                         .median_ns = ns,
                         .score_ns = ns,
                         .time_count = 1,
                         .times_ns = times,
                         .threads = 1,
                         .revision = TL_CODEGEN_REVISION,
                         .environment = "{}",
                         .session = "test",
                         .sequence = 1,
                         .created_us = 1700000000000000 };
    tl_record_seal(&record);
    if (tl_records_add(sim_store, &record, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static inline void sim_record(int workload, const char *trace)
{
    sim_record_of(workload, trace, 1000);
}

/* No records, nothing built. */
static inline void sim_reset(void)
{
    static const tl_tunable_type type = { .build = sim_build_model,
                                          .close = sim_close,
                                          .keep = sim_keep,
                                          .draw_inputs = sim_draw_inputs,
                                          .run = sim_run,
                                          .outputs = sim_outputs,
                                          .clock_ns = sim_clock_ns,
                                          .find_forms = sim_find_forms,
                                          .visit_form = sim_visit_form };
    char path[96], command[160];
    tl_diag diag = { 0 };
    tl_records_close(sim_store, NULL);
    snprintf(command, sizeof command, "rm -f %s/records.db*", sim_folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/records.db", sim_folder);
    if (tl_records_open(path, TL_RECORDS_CREATE, &sim_store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    sim_model = (sim_tunable){ .random = tl_random_make(1), .now_ns = 1000000000 };
    assert_int_equal(tl_target_named("x86-64-v3", &sim_model.target, NULL), TL_OK);
    sim_model.base = (tl_tunable){
        .type = &type,
        .path = "/models/net.onnx",
        .query = { .model = "m", .target = &sim_model.target, .threads = 1 },
    };
}

static inline int sim_set_up(void **state)
{
    (void)state;
    strcpy(sim_folder, "/tmp/tilth-simulated-XXXXXX");
    if (mkdtemp(sim_folder) == NULL)
        return -1;
    sim_arena = tl_arena_create(0);
    sim_reset();
    return 0;
}

static inline int sim_tear_down(void **state)
{
    char command[96];
    (void)state;
    tl_records_close(sim_store, NULL);
    sim_store = NULL;
    tl_arena_destroy(sim_arena);
    snprintf(command, sizeof command, "rm -rf %s", sim_folder);
    return system(command);
}

#endif
