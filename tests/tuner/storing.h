/* tests/tuner/storing.h: a database for each test in a folder of its own, records to put into it, and a census of what it has. */
#ifndef TL_TESTS_STORING_H
#define TL_TESTS_STORING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tuner/records/store.h"

static char folder[64], path[96];

static inline int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tilth-store-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/records.db", folder);
    return 0;
}

static inline int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* A record like those of a tuner, number n of session s. The trace is long now and then: several pages of the file. */
static inline void make_record(tl_record *out, const char *session, int n)
{
    static char trace[20000], workload[33], reason[64];
    static double times[11];
    tl_random random = tl_random_make((uint64_t)n * 77 + (uint64_t)strlen(session));
    size_t lines = n % 17 == 0 ? 400 : 12, used = 0;
    for (size_t i = 0; i < lines; i++)
        used += (size_t)snprintf(trace + used, sizeof trace - used,
                                 "l%zu, m%zu = split(k%zu, [_, %lld])\n", i, i, i,
                                 (long long)tl_random_below(&random, 64) + 1);
    snprintf(workload, sizeof workload, "%032d", n % 5);
    snprintf(reason, sizeof reason, "it died \"of\" signal %d\n\ttwice", n);
    for (int i = 0; i < 11; i++)
        times[i] = 1000 + 1e5 * tl_random_unit(&random);
    bool ok = n % 4 != 3;
    *out = (tl_record){
        .workload = workload,
        .class_key = "cccccccccccccccccccccccccccccccc",
        .family = "conv_relu",
        .target = "x86-64-v4/znver5/l1=48K/l2=1M/l3=32M/cores=1",
        .numerics = "strict",
        .lowering = n % 2 ? "direct" : "winograd_f4",
        .trace = trace,
        .program = "0123456789abcdef",
        .status = ok ? TL_RECORD_OK : TL_RECORD_CRASH,
        .reason = ok ? "" : reason,
        .time_ns = ok ? 1000 + n : 0,
        .median_ns = ok ? 1100.25 + n : 0,
        .score_ns = ok ? 1000 + n : 0,
        .time_count = ok ? 11 : 0,
        .times_ns = times,
        .max_error = 1e-7 / (n + 1),
        .build_ns = 5e6,
        .run_ns = 8e6,
        .threads = 1,
        .revision = TL_CODEGEN_REVISION,
        .environment = "{\"cpu\":\"test\"}",
        .session = session,
        .sequence = n,
        .created_us = 1700000000000000 + n,
    };
    tl_record_seal(out);
}

static inline tl_records *open_store(int flags)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, flags, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

static inline void add_some(tl_records *store, const char *session, int first, int count)
{
    tl_diag diag = { 0 };
    tl_workload_info info = { .class_key = "c",
                              .family = "conv_relu",
                              .name = "conv_relu_1",
                              .program = "kernel k(A: f32[4])\n",
                              .flops = 12,
                              .bytes = 16 };
    for (int i = first; i < first + count; i++) {
        tl_record record;
        make_record(&record, session, i);
        info.workload = record.workload;
        if (tl_records_add_workload(store, &info, &diag) != TL_OK ||
            tl_records_add(store, &record, &diag) != TL_OK)
            fail_msg("%s", diag.text);
    }
}

/* How many records of a session there are, each once, each whole. */
typedef struct {
    int64_t count, doubled, highest;
    bool seen[100000];
} census;

static inline bool count_record(void *user, const tl_record *record)
{
    census *c = user;
    assert_true(tl_record_is_sealed(record));
    c->count++;
    c->doubled += c->seen[record->sequence];
    c->seen[record->sequence] = true;
    c->highest = record->sequence > c->highest ? record->sequence : c->highest;
    return true;
}

static inline census *take_census(tl_records *store, const char *session)
{
    static census c;
    tl_diag diag = { 0 };
    tl_query query = { .session = session };
    memset(&c, 0, sizeof c);
    if (tl_records_visit(store, &query, count_record, &c, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(c.doubled, 0);
    return &c;
}

/* The bytes of a file; none, if there is no file. */
static inline void read_bytes(const char *name, tl_text *out)
{
    out->size = 0;
    if (access(name, F_OK) == 0)
        assert_int_equal(tl_file_read(name, out, NULL), TL_OK);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
