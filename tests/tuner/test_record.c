/* tests/tuner/test_record.c: records as text, recorded measurements, and the messages between tuner and workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sys/socket.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/tuner/measuring.h"
#include "tuner/measure/measure_private.h"
#include "tuner/measure/worker_message.h"
#include "tuner/records/record_private.h"

static const tl_record example = {
    .workload = "0123456789abcdef0123456789abcdef",
    .class_key = "c",
    .family = "conv_relu",
    .target = "t",
    .numerics = "strict",
    .lowering = "direct",
    .trace = "i, j = loops(x)\n# \"quoted\" \\ and\ttabbed\n",
    .program = "0123456789abcdef",
    .status = TL_RECORD_WRONG,
    .reason = "caf\xc3\xa9 \x01",
    .time_ns = 0.1,
    .median_ns = 1.0 / 3,
    .incumbent_ns = 1e300,
    .score_ns = 5e-324,
    .time_count = 3,
    .times_ns = (const double[]){ 1, 2.5, 123456789.125 },
    .hopeless = true,
    .cold = TL_COLD_CONSTANTS,
    .threads = 2,
    .max_error = 3e-8,
    .revision = 2,
    .environment = "{}",
    .session = "s",
    .sequence = INT64_MAX,
    .created_us = -1,
};

static void records_are_text_and_back(void **state)
{
    (void)state;
    tl_record record = example, back;
    tl_text text = { 0 }, again = { 0 };
    tl_diag diag = { 0 };
    tl_record_seal(&record);
    tl_record_print(&record, &text);
    tl_arena *arena = tl_arena_create(0);
    if (tl_record_parse(arena, tl_text_get(&text), &back, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, tl_text_get(&text));
    tl_record_print(&back, &again);
    assert_string_equal(tl_text_get(&text), tl_text_get(&again));
    assert_string_equal(back.trace, example.trace);
    assert_true(back.median_ns == example.median_ns && back.score_ns == example.score_ns);
    assert_true(back.hopeless && !back.disturbed && back.cold == TL_COLD_CONSTANTS &&
                back.time_count == 3);
    tl_text_free(&text);
    tl_text_free(&again);
    tl_arena_destroy(arena);
}

/* Every field is in the digest. */
static void any_change_breaks_the_seal(void **state)
{
    (void)state;
    static const double other_times[] = { 1, 2.5, 123456789.25 };
    for (int i = 0; i < 8; i++) {
        tl_record r = example;
        tl_record_seal(&r);
        assert_true(tl_record_is_sealed(&r));
        switch (i) {
        case 0:
            r.trace = "other";
            break;
        case 1:
            r.status = TL_RECORD_OK;
            break;
        case 2:
            r.time_ns = 0.2;
            break;
        case 3:
            r.times_ns = other_times;
            break;
        case 4:
            r.cold = TL_COLD_ALL;
            break;
        case 5:
            r.sequence--;
            break;
        case 6:
            r.threads = 1;
            break;
        case 7: /* a text that moves from one field to the next */
            r.session = "";
            r.environment = "{}s";
            break;
        }
        if (tl_record_is_sealed(&r))
            fail_msg("change %d is not noticed", i);
    }
}

/* Exports of the second format say whether all caches were cold. */
static void older_lines_are_read(void **state)
{
    (void)state;
    tl_record record = example, back;
    tl_text text = { 0 };
    record.cold = TL_COLD_ALL;
    tl_record_seal(&record);
    tl_record_print(&record, &text);
    char *word = strstr(text.data, "\"cold\":\"all\"");
    assert_non_null(word);
    memcpy(word, "\"cold\":true ", 12);
    tl_arena *arena = tl_arena_create(0);
    assert_int_equal(tl_record_parse(arena, text.data, &back, NULL), TL_OK);
    assert_int_equal(back.cold, TL_COLD_ALL);
    tl_arena_destroy(arena);
    tl_text_free(&text);
}

static void hostile_lines_are_refused(void **state)
{
    (void)state;
    tl_record record = example, back;
    tl_text text = { 0 };
    tl_record_seal(&record);
    tl_record_print(&record, &text);
    tl_random random = tl_random_make(3);
    for (int i = 0; i < 3000; i++) {
        char *copy = strdup(tl_text_get(&text));
        for (int64_t n = tl_random_below(&random, 3); n >= 0; n--)
            copy[tl_random_below(&random, (int64_t)text.size)] =
                (char)(32 + tl_random_below(&random, 95));
        if (i % 7 == 0)
            copy[tl_random_below(&random, (int64_t)text.size)] = '\0';
        tl_arena *arena = tl_arena_create(0);
        /* a change that is none (1e0 for 1, a blank) may pass; what passes is the same record */
        if (tl_record_parse(arena, copy, &back, NULL) == TL_OK)
            assert_string_equal(back.uid, record.uid);
        tl_arena_destroy(arena);
        free(copy);
    }
    static const char *const lines[] = {
        "", "{}", "[]", "null", "{\"record\":\"trial\"}", "{\"record\":5}"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        tl_arena *arena = tl_arena_create(0);
        assert_int_equal(tl_record_parse(arena, lines[i], &back, NULL), TL_BAD_TEXT);
        tl_arena_destroy(arena);
    }
    tl_text_free(&text);
}

static void numbers_read_back_exactly(void **state)
{
    (void)state;
    tl_random random = tl_random_make(4);
    for (int i = 0; i < 20000; i++) {
        double x = ldexp(tl_random_unit(&random) - 0.5, (int)tl_random_below(&random, 200) - 100);
        tl_text text = { 0 };
        tl_real_print(x, &text);
        if (strtod(tl_text_get(&text), NULL) != x)
            fail_msg("%a as %s", x, tl_text_get(&text));
        tl_text_free(&text);
    }
}

/* The same questions to the recording give the same answers, times included, in any grouping. */
static void a_recording_replays(void **state)
{
    (void)state;
    char path[] = "/tmp/tilth-recording-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    static const char *const traces[] = { "", good_trace, "nonsense(", "",
                                          "# fault: crash at run\n" };
    enum { COUNT = 5 };
    tl_result first[COUNT], second[COUNT];
    tl_measurer *m;
    tl_diag diag = { 0 };
    if (tl_recorder_create(measuring_start(NULL), path, &m, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    int task = measuring_task(m);
    for (int i = 0; i < COUNT; i++)
        first[i] = measuring_one(m, task, &(tl_candidate){ .trace = traces[i] });
    assert_int_equal(first[4].status, TL_RECORD_CRASH);
    int64_t end = tl_measurer_clock(m);
    tl_measurer_destroy(m);

    for (int turn = 0; turn < 2; turn++) {
        if (tl_replayer_create(path, &m, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        task = measuring_task(m);
        tl_result unknown = measuring_one(m, task, &(tl_candidate){ .trace = "reorder(a)" });
        assert_int_equal(unknown.status, TL_RECORD_WORKER);
        tl_candidate all[COUNT];
        for (int i = 0; i < COUNT; i++)
            all[i] = (tl_candidate){ .trace = traces[i] };
        assert_int_equal(tl_measurer_submit(m, task, all, COUNT, NULL, NULL), TL_OK);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(tl_measurer_next(m, 0, &second[i], NULL), TL_OK);
            second[i].reproducer[0] = first[i].reproducer[0] = '\0';
            assert_string_equal(second[i].reason, first[i].reason);
            assert_string_equal(second[i].program, first[i].program);
            assert_true(
                second[i].status == first[i].status && second[i].time_ns == first[i].time_ns &&
                second[i].score_ns == first[i].score_ns && second[i].crowned == first[i].crowned &&
                second[i].promise == first[i].promise && second[i].alone == first[i].alone &&
                second[i].finished_ns == first[i].finished_ns &&
                second[i].time_count == first[i].time_count);
            assert_memory_equal(second[i].times_ns, first[i].times_ns,
                                (size_t)first[i].time_count * sizeof(double));
        }
        assert_true(tl_measurer_clock(m) <= end);
        assert_int_equal(tl_measurer_next(m, 0, &unknown, NULL), TL_BUDGET);
        /* with all its answers given, a recording ends like the run that made it */
        assert_int_equal(tl_measurer_submit(m, task, &(tl_candidate){ .trace = "reorder(a)" }, 1,
                                            NULL, NULL),
                         TL_OK);
        assert_int_equal(tl_measurer_next(m, 0, &unknown, NULL), TL_INTERRUPTED);
        tl_measurer_destroy(m);
    }
    /* a recorder that was killed in its last line */
    tl_text text = { 0 };
    assert_int_equal(tl_file_read(path, &text, NULL), TL_OK);
    assert_int_equal(tl_file_write(path, text.data, text.size - 20, NULL), TL_OK);
    assert_int_equal(tl_replayer_create(path, &m, NULL), TL_OK);
    tl_measurer_destroy(m);
    assert_int_equal(tl_file_write(path, "{\"record\":\"measurement\"}\n", 25, NULL), TL_OK);
    assert_int_equal(tl_replayer_create(path, &m, NULL), TL_BAD_TEXT);
    tl_text_free(&text);
    unlink(path);
}

/* A measurer that gives everybody the same result. */
typedef struct {
    tl_measurer base;
    int64_t tickets;
} fixed;

static void fixed_destroy(tl_measurer *self)
{
    free(self);
}

static tl_status fixed_add_task(tl_measurer *self, const tl_measure_task *task, int *out,
                                tl_diag *diag)
{
    (void)self;
    (void)task;
    (void)diag;
    *out = 0;
    return TL_OK;
}

static tl_status fixed_submit(tl_measurer *self, int task, const tl_candidate *candidates,
                              int count, int64_t *ticket, tl_diag *diag)
{
    (void)task;
    (void)candidates;
    (void)diag;
    *ticket = ((fixed *)self)->tickets;
    ((fixed *)self)->tickets += count;
    return TL_OK;
}

static tl_status fixed_next(tl_measurer *self, double timeout_s, tl_result *out, tl_diag *diag)
{
    (void)timeout_s;
    (void)diag;
    *out = (tl_result){ .ticket = ((fixed *)self)->tickets - 1,
                        .status = TL_RECORD_OK,
                        .score_ns = 8,
                        .promise = 0.0625,
                        .alone = 0.75 };
    return TL_OK;
}

static int64_t fixed_clock(const tl_measurer *self)
{
    (void)self;
    return 0;
}

static tl_measurer *fixed_create(void)
{
    static const tl_measurer_type type = { .destroy = fixed_destroy,
                                           .add_task = fixed_add_task,
                                           .submit = fixed_submit,
                                           .next = fixed_next,
                                           .clock = fixed_clock };
    fixed *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->base.type = &type;
    return &m->base;
}

/* Makes the file, whose name ends in XXXXXX. */
static void record_one(char *path)
{
    tl_measurer *m;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tl_recorder_create(fixed_create(), path, &m, NULL), TL_OK);
    measuring_one(m, measuring_task(m), &(tl_candidate){ .trace = good_trace });
    tl_measurer_destroy(m);
}

static tl_result replay_one(const char *path)
{
    tl_measurer *m;
    tl_diag diag = { 0 };
    if (tl_replayer_create(path, &m, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_result result = measuring_one(m, measuring_task(m), &(tl_candidate){ .trace = good_trace });
    tl_measurer_destroy(m);
    return result;
}

/* What appeals hang on is recorded; recordings from before that promise nothing. */
static void promises_are_in_a_recording(void **state)
{
    (void)state;
    char path[] = "/tmp/tilth-recording-XXXXXX";
    const char *added = ",\"promise\":0.0625,\"alone\":0.75";
    tl_text text = { 0 };
    record_one(path);
    tl_result replayed = replay_one(path);
    assert_true(replayed.score_ns == 8 && replayed.promise == 0.0625 && replayed.alone == 0.75);

    assert_int_equal(tl_file_read(path, &text, NULL), TL_OK);
    char *at = strstr(tl_text_get(&text), added);
    assert_non_null(at);
    memmove(at, at + strlen(added), strlen(at + strlen(added)) + 1);
    assert_int_equal(tl_file_write(path, text.data, strlen(text.data), NULL), TL_OK);
    replayed = replay_one(path);
    assert_true(replayed.score_ns == 8 && replayed.promise == 0 && replayed.alone == 0);
    tl_text_free(&text);
    unlink(path);
}

/* A search that decides otherwise than the recorded one would ask for ever: the clock stands still. */
static void a_recording_of_other_decisions_ends(void **state)
{
    (void)state;
    enum { MOST = 256 };
    char path[] = "/tmp/tilth-recording-XXXXXX";
    tl_measurer *m;
    tl_result result;
    record_one(path);
    assert_int_equal(tl_replayer_create(path, &m, NULL), TL_OK);
    int task = measuring_task(m);
    for (int i = 0; i < MOST; i++) {
        result = measuring_one(m, task, &(tl_candidate){ .trace = "reorder(a)" });
        assert_int_equal(result.status, TL_RECORD_WORKER);
    }
    assert_int_equal(tl_measurer_submit(m, task, &(tl_candidate){ .trace = "reorder(a)" }, 1, NULL,
                                        NULL),
                     TL_OK);
    assert_int_equal(tl_measurer_next(m, 0, &result, NULL), TL_INTERRUPTED);
    tl_measurer_destroy(m);
    unlink(path);
}

static void damaged_messages_are_noticed(void **state)
{
    (void)state;
    int ends[2];
    tl_text body = { 0 }, back = { 0 };
    tl_frame_kind kind;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    tl_pack_int(&body, -5);
    tl_pack_real(&body, 0.25);
    tl_pack_text(&body, "hello");
    tl_pack_bytes(&body, "\0\1\2", 3);
    assert_true(tl_frame_send(ends[0], TL_FRAME_RUN, &body));
    assert_true(tl_frame_receive(ends[1], &kind, &back));
    assert_int_equal(kind, TL_FRAME_RUN);
    tl_unpacker u = tl_unpack(&back);
    size_t size;
    assert_int_equal(tl_unpack_int(&u), -5);
    assert_true(tl_unpack_real(&u) == 0.25);
    assert_string_equal(tl_unpack_text(&u), "hello");
    assert_memory_equal(tl_unpack_bytes(&u, &size), "\0\1\2", 3);
    assert_false(u.failed);
    assert_int_equal(tl_unpack_int(&u), 0);
    assert_true(u.failed);
    /* sizes beyond the body, texts without an end */
    static const char *const bodies[] = { "\xff\xff\xff\xff\xff\xff\xff\x7fxx",
                                          "\xff\xff\xff\xff\xff\xff\xff\xffxx",
                                          "\2\0\0\0\0\0\0\0xx" };
    for (size_t i = 0; i < 3; i++) {
        body.size = 0;
        tl_text_add_bytes(&body, bodies[i], 10);
        u = tl_unpack(&body);
        assert_string_equal(tl_unpack_text(&u), "");
        assert_true(u.failed);
    }
    assert_int_equal(send(ends[0], "this is no header at all", 24, 0), 24);
    assert_false(tl_frame_receive(ends[1], &kind, &back));
    close(ends[0]);
    close(ends[1]);
    tl_text_free(&body);
    tl_text_free(&back);
}

int main(int argc, char **argv)
{
    int code;
    if (measuring_is_worker(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_text_and_back),
        cmocka_unit_test(any_change_breaks_the_seal),
        cmocka_unit_test(older_lines_are_read),
        cmocka_unit_test(hostile_lines_are_refused),
        cmocka_unit_test(numbers_read_back_exactly),
        cmocka_unit_test(a_recording_replays),
        cmocka_unit_test(promises_are_in_a_recording),
        cmocka_unit_test(a_recording_of_other_decisions_ends),
        cmocka_unit_test(damaged_messages_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
