/* tests/tuner/synthetic_data.h: data sets of products that nobody measured: their labels follow a law, so that a
 * model can learn them. */
#ifndef TL_TESTS_TUNER_SYNTHETIC_DATA_H
#define TL_TESTS_TUNER_SYNTHETIC_DATA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"
#include "tuner/cost/features.h"
#include "tuner/dataset/sample_points.h"

static inline void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

/* Product number i, of a shape of its own. */
static inline tl_data_task *synthetic_task(tl_arena *arena, int i)
{
    int m = 24 + 8 * i, n = 64 + 16 * (i % 3), k = 48;
    tl_data_task *task = TL_NEW(arena, tl_data_task);
    const char **names = TL_NEW_ARRAY(arena, const char *, 1);
    const char **programs = TL_NEW_ARRAY(arena, const char *, 1);
    names[0] = "direct";
    programs[0] =
        tl_arena_format(arena,
                        "kernel gemm(A: f32[%d, %d], const B: f32[%d, %d], out C: f32[%d, %d])\n"
                        "  for i in 0..%d\n    for j in 0..%d\n      for k in 0..%d\n"
                        "        block gemm\n          spatial i, j\n          reduce k\n"
                        "          C[i, j] = sum(A[i, k]*B[k, j])\n",
                        m, k, k, n, m, n, m, n, k);
    *task = (tl_data_task){ .workload = tl_arena_format(arena, "%032x", 0x1234 + i),
                            .class_key = "cccccccccccccccccccccccccccccccc",
                            .family = "gemm",
                            .name = tl_arena_format(arena, "gemm_%d", i),
                            .flops = 2LL * m * n * k,
                            .bytes = 4LL * (m * k + k * n + m * n),
                            .lowering_count = 1,
                            .lowerings = names,
                            .programs = programs };
    return task;
}

/* What the labels of a series follow: log(time) is `slope` times that of the cycles that features.c expects, give or
 * take `noise`. */
typedef struct {
    const char *isa, *machine; /* machine: a profile's text, or "" */
    int points;
    double slope, noise;
    uint64_t seed;
} synthetic_law;

static inline double synthetic_cycles(tl_arena *arena, const tl_variant *v, const tl_target *target)
{
    const float *rows;
    double cycles = 1;
    int count = tl_features_of(arena, v->program, target, &rows);
    for (int r = 0; r < count; r++)
        cycles += tl_feature_unlog(rows[r * TL_FEATURE_WIDTH + TL_FEATURE_cycles]) +
                  4 * tl_feature_unlog(rows[r * TL_FEATURE_WIDTH + TL_FEATURE_serial_starts]);
    return cycles;
}

/* Points of the task, as a collection draws them; the eighth fails. How many. */
static inline int add_synthetic(tl_arena *arena, tl_dataset *set, tl_data_task *task,
                                const synthetic_law *law)
{
    tl_target target;
    tl_diag diag = { 0 };
    char fingerprint[160];
    tl_space *spaces[TL_SPACE_KIND_COUNT];
    tl_variant standard;
    tl_random random = tl_random_make(law->seed);
    need(tl_target_named(law->isa, &target, &diag), &diag);
    target.cores = 2;
    tl_target_fingerprint(&target, 2, fingerprint);
    need(tl_target_of_fingerprint(fingerprint, &target, &diag), &diag);
    target.cores = 2;
    for (int k = 0; k < TL_SPACE_KIND_COUNT; k++)
        need(tl_space_create(arena, tl_dataset_task(task, arena), &target, 1, (tl_space_kind)k,
                             &spaces[k], &diag),
             &diag);
    need(tl_space_build(spaces[TL_SPACE_FULL], arena, 0, NULL, 0, &standard, &diag), &diag);
    double cycles = synthetic_cycles(arena, &standard, &target);
    tl_data_series *s = TL_NEW(arena, tl_data_series);
    *s = (tl_data_series){ .task = task,
                           .target = tl_arena_strdup(arena, fingerprint),
                           .numerics = "relaxed",
                           .machine = law->machine,
                           .threads = 1,
                           .cores = 2,
                           .revision = 1,
                           .standard_ns = 1000,
                           .records = TL_NEW_ARRAY(arena, tl_data_record, law->points) };
    memcpy(s->standard, standard.hash, sizeof s->standard);
    for (int i = 0; i < law->points; i++) {
        tl_sampler sampler = i % 2 ? TL_SAMPLER_PLAIN : TL_SAMPLER_WALK;
        tl_variant v;
        double probability;
        if (tl_sample_point(spaces[tl_sampler_space(sampler)], arena, sampler, i, law->seed, &v,
                            &probability, NULL) != TL_OK)
            continue;
        tl_wish *answers = TL_NEW_ARRAY(arena, tl_wish, v.point.count);
        for (int k = 0; k < v.point.count; k++) {
            const tl_decision *d = &v.point.decisions[k];
            answers[k] = (tl_wish){ d->name, d->options[d->taken] };
        }
        double slower = log(synthetic_cycles(arena, &v, &target) / cycles);
        s->records[s->count++] = (tl_data_record){
            .sampler = sampler,
            .kind = tl_sampler_space(sampler),
            .space = tl_space_infos[tl_sampler_space(sampler)].revision,
            .status = i == 7 ? TL_RECORD_CRASH : TL_RECORD_OK,
            .turns = 7,
            .answer_count = v.point.count,
            .answers = answers,
            .program = (uint32_t)(strtoull(v.hash, NULL, 16) >> 40),
            .ratio = i == 7 ? 0 : exp(law->slope * slower + law->noise * tl_random_normal(&random)),
            .ratio_error = 0.01
        };
    }
    set->count += s->count;
    tl_map_put(set->tasks, task->workload, task);
    tl_map_put(set->series, tl_arena_format(arena, "%s %s", task->workload, fingerprint), s);
    return s->count;
}

#endif
