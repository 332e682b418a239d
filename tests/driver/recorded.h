/* tests/driver/recorded.h: a small model, and a database of records about its kernels, without a tuner. */
#ifndef TL_TESTS_DRIVER_RECORDED_H
#define TL_TESTS_DRIVER_RECORDED_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/pipeline/model.h"
#include "tuner/records/picks.h"
#include "driver/pipeline/host_target.h"
#include "driver/pipeline/tunable_model.h"
#include "models/zoo.h"
#include "tests/runtime/kernels.h"
#include "tuner/model/verdict.h"
#include "tuner/run/environment.h"
#include "tuner/records/store.h"

static char *rec_folder, *rec_model, *rec_cache, *rec_db;
static tl_pool *rec_pool;

/* A model of the zoo for images of 64x64. */
static inline int recorded_set_up(const char *model)
{
    const int64_t image[] = { 1, 3, 64, 64 };
    const tl_shape_override shape = { .name = "input", .shape = tl_shape_of(4, image) };
    tl_pool_options options = { .threads = 1 };
    rec_folder = temp_folder_make();
    rec_model = path_in(rec_folder, "model.onnx");
    rec_cache = path_in(rec_folder, "cache");
    rec_db = path_in(rec_folder, "records.db");
    setenv("XDG_DATA_HOME", rec_folder, 1);
    setenv("XDG_DATA_DIRS", rec_folder, 1);
    return tl_zoo_write(model, &shape, 1, 3, false, rec_model, NULL) != TL_OK ||
                   tl_pool_create(&options, &rec_pool, NULL) != TL_OK
               ? -1
               : 0;
}

static inline int recorded_tear_down(void)
{
    tl_pool_destroy(rec_pool);
    free(rec_model);
    free(rec_cache);
    free(rec_db);
    temp_folder_remove(rec_folder);
    return 0;
}

/* Set-up of a test: no records. */
static inline int recorded_none(void **state)
{
    (void)state;
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    for (int i = 0; i < 3; i++) {
        tl_text path = { 0 };
        tl_text_format(&path, "%s%s", rec_db, suffixes[i]);
        unlink(tl_text_get(&path));
        tl_text_free(&path);
    }
    return 0;
}

static inline void recorded_note(void *user, const char *sentence)
{
    tl_text_format(user, "%s\n", sentence);
}

/* With the test's cache, pool and one thread; `notes` may be NULL. */
static inline tl_model_options recorded_options(const char *database, tl_text *notes)
{
    return (tl_model_options){ .cache_folder = rec_cache,
                               .database = database,
                               .no_database = database == NULL,
                               .threads = 1,
                               .pool = rec_pool,
                               .note = notes != NULL ? recorded_note : NULL,
                               .user = notes };
}

static inline tl_model *recorded_load(tl_model_options options)
{
    tl_model *model;
    tl_diag diag = { 0 };
    if (tl_model_load(rec_model, &options, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return model;
}

static inline tl_records *recorded_open(int flags)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(rec_db, flags, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

/* A record as a tuner on one thread of this machine would leave it; change what the test is about, then seal and add. */
static inline tl_record recorded_make(const char *workload, const char *lowering, const char *trace,
                                      double ns)
{
    static char target_text[160];
    static double times[1];
    tl_target target;
    assert_int_equal(tl_target_resolve(NULL, &target, NULL), TL_OK);
    tl_target_fingerprint(&target, 1, target_text);
    times[0] = ns;
    return (tl_record){ .workload = workload,
                        .class_key = "c",
                        .family = "f",
                        .target = target_text,
                        .numerics = "relaxed",
                        .lowering = lowering,
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
}

/* A choice to keep what was tuned for a model, at 0.8 of the untuned time. */
static inline tl_choice recorded_choice(const char *model, const char *picks)
{
    return (tl_choice){ .model = model,
                        .name = "net.onnx",
                        .target = "t",
                        .numerics = "relaxed",
                        .threads = 1,
                        .revision = TL_CODEGEN_REVISION,
                        .kept = true,
                        .form = "",
                        .picks = picks,
                        .untuned_ns = 1000,
                        .tuned_ns = 800,
                        .ratio = 0.8,
                        .ratio_low = 0.75,
                        .ratio_high = 0.85,
                        .pairs = 20,
                        .environment = "{}",
                        .session = "test",
                        .created_us = 1600000000000000 };
}

static inline void recorded_add(tl_records *store, tl_record record)
{
    tl_diag diag = { 0 };
    tl_record_seal(&record);
    if (tl_records_add(store, &record, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

/* What the tuner decides of the model, compiled with these options. */
static inline tl_status recorded_verdict(tl_arena *arena, tl_records *store,
                                         const tl_model_options *model,
                                         const tl_verdict_options *options, tl_model_verdict *out,
                                         tl_diag *diag)
{
    tl_model_options inspect = *model;
    inspect.inspect_only = true;
    tl_model *graph = recorded_load(inspect);
    tl_tunable *tunable = tl_tunable_model_create(arena, rec_model, graph, model);
    tl_status status = tl_verdict_reach(arena, tunable, store, options, out, diag);
    tl_tunable_model_destroy(tunable);
    tl_model_destroy(graph);
    return status;
}

/* Naive kernels as what is untuned: compares until something is kept and the gain is beyond doubt, of the whole and of what
 * differs, longer each time, for under load nothing is in two seconds. */
static inline tl_model_verdict recorded_settle(tl_arena *arena, tl_records *store)
{
    tl_model_verdict v = { 0 };
    tl_diag diag = { 0 };
    tl_model_options model = recorded_options(NULL, NULL);
    model.naive = true;
    for (double seconds = 2; !(v.kept && v.ratio_high < 1 && v.part.high < 1) && seconds < 40;
         seconds *= 2)
        if (recorded_verdict(arena, store, &model, &(tl_verdict_options){ .seconds = seconds }, &v,
                             &diag) != TL_OK)
            fail_msg("%s", diag.text);
    return v;
}

#endif
