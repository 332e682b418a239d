/* tests/tuner/tuning.h: a small random policy, and runs of the tuner on a matrix product whose workers are the test
 * program itself. */
#ifndef TL_TESTS_TUNING_H
#define TL_TESTS_TUNING_H
#include "runtime/base/map.h"
#include "tests/tuner/measuring.h"
#include "tuner/run/tune.h"

/* What is appended to the traces that the policy makes, in turn; see measuring.h for faults. */
static const char *const *tuning_remarks;
static int tuning_remark_count;

typedef struct {
    tl_policy base;
    const tl_search *search;
    tl_search copy;
    tl_arena *arena;
    tl_map *tried;
    tl_random random;
    int made, learned;
} tuning_policy;

static inline tl_status tuning_create(const tl_search *search, tl_policy **out, tl_diag *diag);

static inline void tuning_destroy(tl_policy *self)
{
    tl_arena_destroy(((tuning_policy *)self)->arena);
    free(self);
}

static inline tl_status tuning_propose(tl_policy *self, tl_arena *arena, int count,
                                       tl_proposal *out, int *out_count, tl_diag *diag)
{
    tuning_policy *p = (tuning_policy *)self;
    *out_count = 0;
    for (int attempt = 0; attempt < 20 * count && *out_count < count; attempt++) {
        tl_variant v;
        if (tl_space_sample(p->copy.space, arena, &p->random, &v, diag) != TL_OK ||
            tl_map_has(p->tried, v.hash))
            continue;
        tl_map_put(p->tried, v.hash, p);
        tl_proposal *proposal = &out[(*out_count)++];
        const char *remark =
            tuning_remark_count > 0 ? tuning_remarks[p->made++ % tuning_remark_count] : "";
        *proposal = (tl_proposal){ .origin = "random" };
        proposal->candidate.lowering = v.point.lowering;
        proposal->candidate.trace = tl_arena_format(arena, "%s%s", v.trace, remark);
        strcpy(proposal->program, v.hash);
    }
    return TL_OK;
}

static inline tl_status tuning_learn(tl_policy *self, const tl_proposal *proposals,
                                     const tl_result *results, int count, tl_diag *diag)
{
    (void)proposals;
    (void)results;
    (void)diag;
    ((tuning_policy *)self)->learned += count;
    return TL_OK;
}

static const tl_policy_type tuning_random = { .name = "test",
                                              .batch = 6,
                                              .create = tuning_create,
                                              .destroy = tuning_destroy,
                                              .propose = tuning_propose,
                                              .learn = tuning_learn };

static inline tl_status tuning_create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    tuning_policy *p = calloc(1, sizeof *p);
    (void)diag;
    p->base.type = &tuning_random;
    p->copy = *search;
    p->arena = tl_arena_create(0);
    p->tried = tl_map_create(p->arena);
    p->random = tl_random_make(search->seed);
    for (int i = 0; i < search->known_count; i++)
        tl_map_put(p->tried, search->known[i].program, p);
    *out = &p->base;
    return TL_OK;
}

/* The product, the one that is wrong, and a kernel that leaves nothing open. */
static const tl_measure_lowering tuning_lowerings[] = { { "direct", matmul_text, 0, 0 },
                                                        { "wrong", wrong_text, 0, 0 } };
static const char tiny_text[] = "kernel tiny(A: f32[3], out B: f32[3])\n"
                                "  for i in 0..3\n"
                                "    block tiny\n"
                                "      spatial i\n"
                                "      B[i] = 2.0*A[i]\n";
static const tl_measure_lowering tiny_lowering = { "direct", tiny_text, 0, 0 };
static const char matmul_workload[] = "0123456789abcdef0123456789abcdef",
                  tiny_workload[] = "fedcba9876543210fedcba9876543210";

static const tl_measure_task tuning_measure[] = {
    { .name = "matmul",
      .workload = matmul_workload,
      .lowering_count = 2,
      .lowerings = tuning_lowerings },
    { .name = "tiny", .workload = tiny_workload, .lowering_count = 1, .lowerings = &tiny_lowering },
    { .name = "right",
      .workload = matmul_workload,
      .lowering_count = 1,
      .lowerings = tuning_lowerings },
};
static const tl_workload_info tuning_workloads[] = {
    { .workload = matmul_workload,
      .class_key = "c0",
      .family = "matmul",
      .name = "matmul_0",
      .program = matmul_text,
      .flops = 491520,
      .bytes = 48128 },
    { .workload = tiny_workload,
      .class_key = "c1",
      .family = "tiny",
      .name = "tiny_0",
      .program = tiny_text,
      .flops = 3,
      .bytes = 24 },
};
/* The product with its wrong lowering, the tiny kernel, the product without it. */
static const tl_tune_task tuning_tasks[] = {
    { &tuning_measure[0], &tuning_workloads[0], 0, 3 },
    { &tuning_measure[1], &tuning_workloads[1], 0, 1 },
    { &tuning_measure[2], &tuning_workloads[0], 0, 1 },
};

static inline const tl_target *tuning_target(void)
{
    static tl_target target;
    assert_int_equal(compiled_target(NULL, &target, NULL), TL_OK);
    return &target;
}

static inline tl_tune_options tuning_options(tl_measurer *m, tl_records *store, int64_t trials)
{
    return (tl_tune_options){ .policy = &tuning_random,
                              .measurer = m,
                              .store = store,
                              .target = tuning_target(),
                              .threads = 1,
                              .numerics = "strict",
                              .seed = 5,
                              .trials = trials,
                              .session = "test" };
}

static inline tl_tuning *tuning_make(const tl_tune_options *options, const tl_tune_task *tasks,
                                     int count)
{
    tl_tuning *t;
    tl_diag diag = { 0 };
    if (tl_tuning_create(options, tasks, count, &t, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return t;
}

static inline void tuning_finish(tl_tuning *t)
{
    tl_diag diag = { 0 };
    if (tl_tuning_run(t, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

#endif
