/* tests/tuner/test_dataset.c: data sets: from records to a file and back to programs, together, apart, damaged; and
 * collections, which go on where they were ended. The test program is its own worker. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <math.h>
#include "ir/program/machine.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/tuner/measuring.h"
#include "tuner/dataset/collect.h"
#include "tuner/dataset/sample_points.h"
#include "tuner/run/remember_task.h"

enum { TASKS = 6, POINTS = 64 };
static char folder[] = "/tmp/tilth-dataset-XXXXXX";

typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_tune_task tasks[TASKS];
    tl_records *store;
} fixture;

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

/* Products of other shapes, with two lowerings each (of which the second is the first). */
static void make_task(fixture *f, int i)
{
    tl_program *program;
    tl_diag diag = { 0 };
    int m = 24 + 8 * i, n = 64 + 16 * (i % 3), k = 48;
    const char *text =
        tl_arena_format(f->arena,
                        "kernel gemm(A: f32[%d, %d], const B: f32[%d, %d], out C: f32[%d, %d])\n"
                        "  for i in 0..%d\n    for j in 0..%d\n      for k in 0..%d\n"
                        "        block gemm\n          spatial i, j\n          reduce k\n"
                        "          C[i, j] = sum(A[i, k]*B[k, j])\n",
                        m, k, k, n, m, n, m, n, k);
    need(tl_program_parse(f->arena, text, "gemm", &program, &diag), &diag);
    tl_measure_lowering *lowerings = TL_NEW_ARRAY(f->arena, tl_measure_lowering, 2);
    lowerings[0] = (tl_measure_lowering){ .name = "direct", .program = text };
    lowerings[1] = (tl_measure_lowering){ .name = "other", .program = text };
    tl_measure_task *measure = TL_NEW(f->arena, tl_measure_task);
    tl_workload_info *info = TL_NEW(f->arena, tl_workload_info);
    const char *workload = tl_arena_format(f->arena, "%032x", 0x1234 + i);
    *measure = (tl_measure_task){
        .name = "gemm", .workload = workload, .lowering_count = 2, .lowerings = lowerings
    };
    *info = (tl_workload_info){ .workload = workload,
                                .class_key = "cccccccccccccccccccccccccccccccc",
                                .family = "gemm",
                                .name = "gemm_1",
                                .program = text,
                                .flops = 2LL * m * n * k,
                                .bytes = 4LL * (m * k + k * n + m * n) };
    f->tasks[i] = (tl_tune_task){ .measure = measure, .workload = info, .weight = 1 };
}

/* A point of a task as a collection would have measured it. */
static void add_point(fixture *f, const tl_tune_task *task, const tl_variant *v, tl_sampler sampler,
                      double probability, double ratio, const char *standard,
                      const tl_machine *profile)
{
    char fingerprint[160];
    static double times[1] = { 5000 };
    tl_diag diag = { 0 };
    tl_target_fingerprint(&f->target, 1, fingerprint);
    tl_record r = { .workload = task->measure->workload,
                    .class_key = task->workload->class_key,
                    .family = "gemm",
                    .target = fingerprint,
                    .numerics = "relaxed",
                    .lowering = task->measure->lowerings[v->point.lowering].name,
                    .trace = v->trace,
                    .program = v->hash,
                    .status = ratio > 0 ? TL_RECORD_OK : TL_RECORD_CRASH,
                    .reason = "",
                    .time_ns = 5000,
                    .median_ns = 5000,
                    .score_ns = 5000,
                    .time_count = 1,
                    .times_ns = times,
                    .threads = 1,
                    .revision = 10,
                    .environment = "{\"cpu\":\"test\",\"cores\":2}",
                    .session = "collect-1",
                    .origin = tl_sampler_texts[sampler],
                    .probability = probability,
                    .standard = standard,
                    .ratio = ratio,
                    .ratio_error = 0.011,
                    .turns = 7,
                    .alone = 0.5,
                    .censored = "",
                    .machine = profile->digest,
                    .space = tl_space_infos[tl_sampler_space(sampler)].revision };
    tl_record_seal(&r);
    need(tl_records_add(f->store, &r, &diag), &diag);
}

static tl_machine profile_of_test(void)
{
    tl_machine m = tl_machine_built_in;
    strcpy(m.cpu, "A machine of the test");
    m.cores = 2;
    tl_machine_seal(&m, NULL);
    return m;
}

static void fill_store(fixture *f)
{
    tl_diag diag = { 0 };
    tl_machine profile = profile_of_test();
    tl_random random = tl_random_make(5);
    for (int t = 0; t < TASKS; t++) {
        char standard[17];
        tl_variant v;
        double probability;
        tl_space *spaces[TL_SPACE_KIND_COUNT];
        for (int k = 0; k < TL_SPACE_KIND_COUNT; k++)
            need(tl_space_create(f->arena, f->tasks[t].measure, &f->target, 1, (tl_space_kind)k,
                                 &spaces[k], &diag),
                 &diag);
        tl_remember_task(f->store, &f->tasks[t], &profile);
        need(tl_space_build(spaces[TL_SPACE_FULL], f->arena, 0, NULL, 0, &v, &diag), &diag);
        memcpy(standard, v.hash, sizeof standard);
        add_point(f, &f->tasks[t], &v, TL_SAMPLER_DEFAULT, 1, 1, standard, &profile);
        for (int i = 0; i < POINTS; i++) {
            tl_sampler sampler = tl_sampler_at(i);
            bool is_trail = sampler == TL_SAMPLER_TRAIL;
            if (tl_sample_point(spaces[tl_sampler_space(sampler)], f->arena,
                                is_trail ? TL_SAMPLER_WALK : sampler, i, 1, &v, &probability,
                                NULL) != TL_OK)
                continue;
            double ratio = i % 16 == 15 ? 0 : exp(1.5 * tl_random_normal(&random));
            add_point(f, &f->tasks[t], &v, sampler, is_trail ? 0 : probability, ratio, standard,
                      &profile);
        }
    }
}

static int set_up(void **state)
{
    static fixture f;
    tl_diag diag = { 0 };
    strcpy(folder, "/tmp/tilth-dataset-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    f = (fixture){ .arena = tl_arena_create(0) };
    if (compiled_target(NULL, &f.target, &diag) != TL_OK ||
        tl_records_open(in_folder("points.db"), TL_RECORDS_CREATE, &f.store, &diag) != TL_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return -1;
    }
    f.target.cores = 2;
    for (int i = 0; i < TASKS; i++)
        make_task(&f, i);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tl_text command = { 0 };
    tl_records_close(f->store, NULL);
    tl_arena_destroy(f->arena);
    tl_text_format(&command, "rm -rf %s", folder);
    int code = system(tl_text_get(&command));
    tl_text_free(&command);
    return code;
}

static tl_dataset *of_store(fixture *f)
{
    tl_diag diag = { 0 };
    int64_t skipped;
    tl_dataset *set = tl_dataset_create(f->arena);
    const tl_query everything = { .any_revision = true };
    need(tl_dataset_add_records(set, f->store, &everything, &skipped, &diag), &diag);
    assert_int_equal(skipped, 0);
    return set;
}

/* All of it in words, in an order of its own. */
static void describe(const tl_dataset *set, tl_text *out)
{
    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *s = tl_map_at(set->series, i).value;
        tl_text_format(out, "%s %s %s %d %d %d %s\n%s", s->task->workload, s->target, s->numerics,
                       s->threads, s->cores, s->revision, s->standard, s->machine);
        for (int k = 0; k < s->count; k++) {
            const tl_data_record *r = &s->records[k];
            tl_text_format(out, "%s %06x %d %d %d %d %d %d %.3f %.2g %.2g %.1f %d\n",
                           s->task->lowerings[r->lowering], (unsigned)r->program, (int)r->sampler,
                           (int)r->kind, r->space, (int)r->status, (int)r->censored, r->turns,
                           r->ratio, r->ratio_error, r->probability, r->alone, r->answer_count);
        }
    }
}

static void a_file_holds_what_records_say(void **state)
{
    fixture *f = *state;
    tl_diag diag = { 0 };
    int64_t bytes, added;
    fill_store(f);
    tl_dataset *set = of_store(f), *back, *again;
    need(tl_dataset_write(set, in_folder("a.tld"), &bytes, &diag), &diag);
    assert_true(set->count > TASKS * POINTS / 2);
    printf("%lld bytes a record\n", (long long)(bytes / set->count));
    assert_true(bytes <= 25 * set->count);
    need(tl_dataset_read(in_folder("a.tld"), f->arena, &back, &diag), &diag);
    assert_int_equal(back->count, set->count);
    /* what comes back is written the same again */
    need(tl_dataset_write(back, in_folder("b.tld"), &bytes, &diag), &diag);
    need(tl_dataset_read(in_folder("b.tld"), f->arena, &again, &diag), &diag);
    tl_text one = { 0 }, two = { 0 };
    describe(back, &one);
    describe(again, &two);
    assert_string_equal(tl_text_get(&one), tl_text_get(&two));
    tl_text_free(&one);
    tl_text_free(&two);
    /* and to what there was, as precisely as a file has it */
    tl_dataset_stats a, b;
    tl_dataset_measure(set, &a);
    tl_dataset_measure(back, &b);
    assert_int_equal(a.failed, b.failed);
    assert_int_equal(a.uncertain, b.uncertain);
    assert_memory_equal(a.by_sampler, b.by_sampler, sizeof a.by_sampler);
    assert_true(fabs(a.median_ratio / b.median_ratio - 1) < 0.002);
    tl_dataset_merge(set, back, &added); /* the same records twice are one */
    assert_int_equal(added, 0);
}

static void every_record_is_rebuilt(void **state)
{
    fixture *f = *state;
    tl_diag diag = { 0 };
    int64_t bytes;
    tl_dataset *back;
    fill_store(f);
    need(tl_dataset_write(of_store(f), in_folder("a.tld"), &bytes, &diag), &diag);
    need(tl_dataset_read(in_folder("a.tld"), f->arena, &back, &diag), &diag);
    for (size_t i = 0; i < tl_map_count(back->series); i++) {
        const tl_data_series *s = tl_map_at(back->series, i).value;
        tl_space *spaces[TL_SPACE_KIND_COUNT];
        tl_target target;
        tl_machine machine;
        need(tl_target_of_fingerprint(s->target, &target, &diag), &diag);
        target.cores = s->cores;
        need(tl_machine_parse(s->machine, strlen(s->machine), &machine, &diag), &diag);
        for (int k = 0; k < TL_SPACE_KIND_COUNT; k++)
            need(tl_space_create(f->arena, tl_dataset_task(s->task, f->arena), &target, s->threads,
                                 (tl_space_kind)k, &spaces[k], &diag),
                 &diag);
        for (int k = 0; k < s->count; k++) {
            tl_variant v;
            need(tl_dataset_build(spaces[s->records[k].kind], f->arena, &s->records[k], &v, &diag),
                 &diag);
        }
        tl_data_record other = s->records[0];
        other.program ^= 1;
        tl_variant v;
        assert_int_equal(tl_dataset_build(spaces[other.kind], f->arena, &other, &v, &diag),
                         TL_ILLEGAL_SCHEDULE);
        assert_non_null(strstr(diag.text, "the rules of its space have changed"));
    }
}

static void no_workload_is_on_both_sides(void **state)
{
    fixture *f = *state;
    fill_store(f);
    tl_dataset *set = of_store(f);
    int64_t sides[2] = { 0 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        tl_dataset *in = tl_dataset_create(f->arena), *out = tl_dataset_create(f->arena);
        tl_dataset_split(set, 0.5, seed, in, out);
        assert_int_equal(in->count + out->count, set->count);
        for (size_t i = 0; i < tl_map_count(in->tasks); i++)
            assert_false(tl_map_has(out->tasks, tl_map_at(in->tasks, i).key));
        sides[0] += (int64_t)tl_map_count(in->tasks);
        sides[1] += (int64_t)tl_map_count(out->tasks);
    }
    assert_in_range(sides[0], 20 * TASKS / 4, 20 * TASKS * 3 / 4);
}

static tl_status read_bytes(fixture *f, const char *bytes, size_t size, tl_diag *diag)
{
    tl_dataset *back;
    tl_arena *arena = tl_arena_create(0);
    const char *path = in_folder("bad.tld");
    (void)f;
    assert_int_equal(tl_file_write(path, bytes, size, NULL), TL_OK);
    tl_status status = tl_dataset_read(path, arena, &back, diag);
    tl_arena_destroy(arena);
    return status;
}

/* Cut off anywhere, or with a byte turned, it is refused with a sentence. */
static void damaged_files_are_refused(void **state)
{
    fixture *f = *state;
    tl_diag diag = { 0 };
    tl_text file = { 0 };
    int64_t bytes;
    fill_store(f);
    need(tl_dataset_write(of_store(f), in_folder("a.tld"), &bytes, &diag), &diag);
    need(tl_file_read(in_folder("a.tld"), &file, &diag), &diag);
    for (size_t size = 0; size < file.size; size += 1 + size / 40) {
        assert_int_equal(read_bytes(f, file.data, size, &diag), TL_BAD_TEXT);
        assert_non_null(strstr(diag.text, "data set"));
    }
    tl_random random = tl_random_make(9);
    int passed = 0;
    for (int i = 0; i < 400; i++) {
        size_t at = (size_t)tl_random_below(&random, (int64_t)file.size);
        char was = file.data[at];
        file.data[at] = (char)(was ^ (1 << tl_random_below(&random, 8)));
        /* some bits of a packed stream say nothing: then it is what it was, for the checksum agrees */
        passed += read_bytes(f, file.data, file.size, &diag) != TL_BAD_TEXT;
        file.data[at] = was;
    }
    assert_in_range(passed, 0, 4);
    memset(file.data + 8, 0xff, 8); /* it claims to be large */
    assert_int_equal(read_bytes(f, file.data, file.size, &diag), TL_BAD_TEXT);
    assert_int_equal(read_bytes(f, "SQLite format 3", 15, &diag), TL_BAD_TEXT);
    tl_text_free(&file);
}

/* A body that somebody made up, with the right checksum: whatever is in it, it is read or refused. */
static void hostile_bodies_are_refused(void **state)
{
    fixture *f = *state;
    tl_diag diag = { 0 };
    tl_text file = { 0 };
    int64_t bytes;
    fill_store(f);
    need(tl_dataset_write(of_store(f), in_folder("a.tld"), &bytes, &diag), &diag);
    need(tl_file_read(in_folder("a.tld"), &file, &diag), &diag);
    tl_text body = { 0 };
    need(tl_dataset_unpack(file.data, file.size, &body, &diag), &diag);
    tl_random random = tl_random_make(11);
    int read = 0;
    for (int i = 0; i < 1500; i++) {
        tl_text packed = { 0 };
        size_t at = (size_t)tl_random_below(&random, (int64_t)body.size);
        size_t size = i % 3 == 0 ? at : body.size;
        char was = body.data[at];
        body.data[at] = (char)tl_random_below(&random, 256);
        need(tl_dataset_pack(body.data, size, &packed, &diag), &diag);
        tl_status status = read_bytes(f, packed.data, packed.size, &diag);
        assert_true(status == TL_OK || status == TL_BAD_TEXT);
        read += status == TL_OK;
        body.data[at] = was;
        tl_text_free(&packed);
    }
    assert_true(read > 0);
    tl_text_free(&body);
    tl_text_free(&file);
}

static void points_are_drawn_alike_and_as_many(void **state)
{
    fixture *f = *state;
    tl_space *space;
    tl_diag diag = { 0 };
    int by_sampler[TL_SAMPLER_COUNT] = { 0 };
    need(tl_space_create(f->arena, f->tasks[0].measure, &f->target, 1, TL_SPACE_FULL, &space,
                         &diag),
         &diag);
    for (int i = 0; i < 100; i++)
        by_sampler[tl_sampler_at(i)]++;
    assert_int_equal(by_sampler[TL_SAMPLER_WALK], 40);
    assert_int_equal(by_sampler[TL_SAMPLER_PLAIN], 40);
    assert_int_equal(by_sampler[TL_SAMPLER_TRAIL], 20);
    int same = 0;
    for (int i = 0; i < 40; i++) {
        tl_variant a, b, c;
        double p, q;
        tl_sampler sampler = i % 2 ? TL_SAMPLER_WALK : TL_SAMPLER_UNIFORM;
        tl_status one = tl_sample_point(space, f->arena, sampler, i, 1, &a, &p, NULL);
        tl_status two = tl_sample_point(space, f->arena, sampler, i, 1, &b, &q, NULL);
        assert_int_equal(one, two);
        if (one != TL_OK)
            continue;
        assert_string_equal(a.hash, b.hash);
        assert_true(p == q && p > 0 && p < 1);
        if (tl_sample_point(space, f->arena, sampler, i, 2, &c, &q, NULL) == TL_OK)
            same += strcmp(a.hash, c.hash) == 0;
    }
    assert_true(same < 10); /* another seed, other points */
}

/* ---- collections ---- */

static tl_status collect(fixture *f, int tasks, int per_task, double seconds,
                         tl_collect_totals *totals)
{
    tl_diag diag = { 0 };
    tl_measurer *m = measuring_start(NULL);
    const tl_machine profile = profile_of_test();
    const tl_collect_options options = { .tasks = f->tasks,
                                         .task_count = tasks,
                                         .per_task = per_task,
                                         .measurer = m,
                                         .store = f->store,
                                         .target = &f->target,
                                         .threads = 1,
                                         .numerics = "relaxed",
                                         .session = "collect-1",
                                         .environment = "{\"cores\":2}",
                                         .profile = &profile,
                                         .seed = 3,
                                         .seconds = seconds };
    tl_status status = tl_collect(&options, totals, &diag);
    tl_measurer_destroy(m);
    if (status != TL_OK)
        fail_msg("%s", diag.text);
    return status;
}

static void a_collection_is_whole_and_ends(void **state)
{
    fixture *f = *state;
    tl_collect_totals totals;
    collect(f, 2, 20, 0, &totals);
    assert_int_equal(totals.tasks_done, 2);
    assert_in_range(totals.measured, 30, 40);
    tl_dataset *set = of_store(f);
    tl_dataset_stats s;
    tl_dataset_measure(set, &s);
    assert_int_equal(s.tasks, 2);
    assert_int_equal(s.by_sampler[TL_SAMPLER_DEFAULT], 2);
    assert_in_range(s.by_sampler[TL_SAMPLER_WALK], 8, 20);
    assert_in_range(s.by_sampler[TL_SAMPLER_PLAIN], 6, 20);
    assert_in_range(s.by_sampler[TL_SAMPLER_TRAIL], 4, 8);
    assert_int_equal(s.by_sampler[TL_SAMPLER_OTHER], 0);
    /* again, with all of it there: only what the space did not have is looked for */
    collect(f, 2, 20, 0, &totals);
    assert_true(totals.measured <= 14);
    /* more of each */
    collect(f, 2, 30, 0, &totals);
    assert_in_range(totals.known, 30, 60);
}

/* Killed at any instant nothing that was told of is lost, and the next goes on. */
static void killed_it_goes_on(void **state)
{
    fixture *f = *state;
    enum { KILLS = 6 };
    int64_t before = 0;
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        if (child == 0) {
            tl_collect_totals totals;
            tl_records *store;
            if (tl_records_open(in_folder("points.db"), 0, &store, NULL) != TL_OK)
                _exit(2);
            f->store = store;
            collect(f, 3, 24, 0, &totals);
            _exit(0);
        }
        usleep(400000 + 150000 * (useconds_t)i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        tl_dataset *set = of_store(f);
        assert_true(set->count >= before);
        before = set->count;
    }
    tl_collect_totals totals;
    collect(f, 3, 24, 0, &totals);
    assert_int_equal(totals.tasks_done, 3);
    assert_true(totals.known >= before - 3); /* of each task the standard is measured again */
    assert_true(of_store(f)->count > before || before >= 60);
}

#define DATASET_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    int code;
    if (measuring_is_worker(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        DATASET_TEST(a_file_holds_what_records_say),
        DATASET_TEST(every_record_is_rebuilt),
        DATASET_TEST(no_workload_is_on_both_sides),
        DATASET_TEST(damaged_files_are_refused),
        DATASET_TEST(hostile_bodies_are_refused),
        DATASET_TEST(points_are_drawn_alike_and_as_many),
        DATASET_TEST(a_collection_is_whole_and_ends),
        DATASET_TEST(killed_it_goes_on),
    };
    return cmocka_run_group_tests_name("data sets", tests, NULL, NULL);
}
