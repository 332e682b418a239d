/* tests/bench/policy_study.c: search policies beside each other: how good the best schedule is after how many trials.
 *
 *     policy_study [OPTIONS] MODEL.onnx|KERNEL.tk ...
 *       --policies A,B,...   of tuner/policies.def (all)
 *       --trials N           a task and policy (100)
 *       --tasks N            the heaviest distinct kernels of each model, by occurrences x operations (3)
 *       --kernel NAME        only that kernel
 *       --seed N             first seed (1);  --seeds N: as many runs with seeds that follow (1)
 *       --threads N          kernels run on (1)
 *       --ahead N            candidates in the queue while the policy thinks (8)
 *       --record DIR         keeps all measurements, a file a task and policy
 *       --replay DIR         answers from such files instead of measuring
 *       --table DIR          answers from all files of a task in DIR, whatever policy they are of; what is in none failed
 *       --worker TILTH       the program whose `worker` verb measures (the tilth next to this one)
 *
 * A JSON line for each run of a policy: the time of the default schedule, the best, the curve as [trial, default over best]
 * wherever it rises, the processor time of the search per candidate and the time of all. Times of different runs are not
 * comparable: gains are. */
#include <dirent.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "driver/session.h"
#include "driver/target.h"
#include "frontend/frontend.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/clock.h"
#include "tuner/search.h"

typedef struct {
    const char *policies, *kernel, *record, *replay, *table, *worker;
    int64_t trials, tasks, seed, seeds, threads, ahead;
} options;

/* A kernel to search for. */
typedef struct {
    char name[256];
    tl_measure_task task;
    double weight; /* occurrences x operations */
} subject;

typedef struct {
    options options;
    tl_arena *arena;
    tl_target target;
    int count;
    subject subjects[64];
} study;

static void must(tl_status status, const tl_diag *diag)
{
    if (status == TL_OK)
        return;
    fprintf(stderr, "policy_study: %s\n", diag->text);
    exit(1);
}

/* --- what is studied -------------------------------------------------------------------------------------------------- */

static void add_subject(study *s, const char *name, const char *workload,
                        const tl_measure_lowering *lowerings, int count, double weight)
{
    if (s->count == (int)(sizeof s->subjects / sizeof *s->subjects))
        return;
    subject *next = &s->subjects[s->count++];
    snprintf(next->name, sizeof next->name, "%s", name);
    next->task = (tl_measure_task){ .name = tl_arena_strdup(s->arena, name),
                                    .workload = tl_arena_strdup(s->arena, workload),
                                    .lowering_count = count,
                                    .lowerings = lowerings };
    next->weight = weight;
}

static void add_kernel_file(study *s, const char *path)
{
    tl_diag diag = { 0 };
    tl_text text = { 0 };
    tl_program *program;
    char key[33];
    must(tl_file_read(path, &text, &diag), &diag);
    tl_measure_lowering *direct = TL_NEW(s->arena, tl_measure_lowering);
    *direct = (tl_measure_lowering){ .name = "direct",
                                     .program = tl_arena_strdup(s->arena, tl_text_get(&text)) };
    must(tl_program_parse(s->arena, direct->program, path, &program, &diag), &diag);
    tl_workload_key(s->arena, program, key);
    add_subject(s, program->name, key, direct, 1, (double)tl_program_flops(program));
    tl_text_free(&text);
}

static const tl_measure_lowering *lowerings_of(study *s, const tl_kernel *kernel, int *count)
{
    const tl_kernel_lowering *all;
    tl_diag diag = { 0 };
    must(tl_kernel_lowerings(s->arena, kernel, TL_NUMERICS_RELAXED, &all, count, &diag), &diag);
    tl_measure_lowering *out = TL_NEW_ARRAY(s->arena, tl_measure_lowering, *count);
    for (int i = 0; i < *count; i++)
        out[i] = (tl_measure_lowering){ all[i].name, all[i].text, all[i].rtol, all[i].ttol };
    return out;
}

static int heavier(const void *a, const void *b)
{
    const subject *x = a, *y = b;
    return x->weight > y->weight ? -1 : x->weight < y->weight;
}

static void add_model(study *s, const char *path)
{
    tl_session session = { 0 };
    tl_session_options common = { .threads = s->options.threads, .no_cache = true };
    tl_model_options extra = { .inspect_only = true, .no_database = true };
    tl_diag diag = { 0 };
    must(tl_session_open(&session, path, &common, &extra, &diag), &diag);
    const tl_model_facts *facts = tl_model_get_facts(session.model);
    char copy[4096], model[64];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(model, sizeof model, "%.*s", (int)strcspn(basename(copy), "."), basename(copy));
    int first = s->count;
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        double weight = 0;
        for (int j = 0; j < facts->kernel_count; j++)
            weight += facts->kernels[j].same_as == i ? (double)k->flops : 0;
        bool wanted = s->options.kernel == NULL || strcmp(s->options.kernel, k->kernel->name) == 0;
        if (k->same_as != i || !wanted)
            continue;
        int count;
        const tl_measure_lowering *lowerings = lowerings_of(s, k->kernel, &count);
        const char *name = tl_arena_format(s->arena, "%s.%s", model, k->kernel->name);
        add_subject(s, name, k->workload, lowerings, count, weight);
    }
    qsort(s->subjects + first, (size_t)(s->count - first), sizeof *s->subjects, heavier);
    if (s->count - first > s->options.tasks)
        s->count = first + (int)s->options.tasks;
    tl_session_close(&session);
}

/* --- answers from recordings ---------------------------------------------------------------------------------------- */

/* Times by program; the least of each. */
static tl_map *read_table(study *s, const subject *of)
{
    tl_map *table = tl_map_create(s->arena);
    DIR *folder = opendir(s->options.table);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        if (strncmp(e->d_name, of->name, strlen(of->name)) != 0 ||
            e->d_name[strlen(of->name)] != '-')
            continue;
        FILE *f = fopen(tl_arena_format(s->arena, "%s/%s", s->options.table, e->d_name), "r");
        char *line = NULL;
        size_t capacity = 0;
        while (f != NULL && getline(&line, &capacity, f) > 0) {
            json_t *json = json_loads(line, 0, NULL);
            const char *program = json_string_value(json_object_get(json, "program"));
            double score = json_number_value(json_object_get(json, "score_ns"));
            if (program != NULL) {
                double *known = tl_map_find(table, program);
                if (known == NULL)
                    tl_map_put(table, program, known = TL_NEW(s->arena, double));
                if (score > 0 && (*known == 0 || score < *known))
                    *known = score;
            }
            json_decref(json);
        }
        free(line);
        if (f != NULL)
            fclose(f);
    }
    if (folder != NULL)
        closedir(folder);
    return table;
}

static void answer(const tl_map *table, const tl_proposal *proposal, tl_result *out)
{
    const double *score = tl_map_find(table, proposal->program);
    *out = (tl_result){ .status = score != NULL && *score > 0 ? TL_RECORD_OK : TL_RECORD_WORKER };
    if (out->status == TL_RECORD_OK)
        out->time_ns = out->score_ns = *score;
}

/* --- a run ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    tl_measurer *measurer; /* NULL: a table answers */
    tl_map *table;
    int task;
} clockwork;

static void start(study *s, const subject *of, const char *policy, uint64_t seed, clockwork *c)
{
    const options *o = &s->options;
    tl_diag diag = { 0 };
    *c = (clockwork){ 0 };
    const char *folder = o->replay != NULL ? o->replay : o->record;
    const char *path = tl_arena_format(s->arena, "%s/%s-%s-%d.jsonl", folder != NULL ? folder : "",
                                       of->name, policy, (int)seed);
    if (o->table != NULL) {
        c->table = read_table(s, of);
        return;
    }
    if (o->replay != NULL) {
        must(tl_replayer_create(path, &c->measurer, &diag), &diag);
    } else {
        tl_measure_options with = {
            .worker = o->worker, .target = &s->target, .threads = (int)o->threads, .seed = 1
        };
        must(tl_measurer_create(&with, &c->measurer, &diag), &diag);
        tl_measurer_leave_core(c->measurer);
    }
    if (o->record != NULL) {
        tl_measurer *recorder;
        must(tl_recorder_create(c->measurer, path, &recorder, &diag), &diag);
        c->measurer = recorder;
    }
    must(tl_measurer_add_task(c->measurer, &of->task, &c->task, &diag), &diag);
}

/* A run's state: proposals wait in a ring until their results are there. */
enum { RING = 256 };
typedef struct {
    tl_arena *arenas[RING];
    tl_proposal proposals[RING];
    int64_t proposed, learned;
    int failed;
    double default_ns, best_ns, first_ns;
    double thought_ns;
    tl_text curve;
    const char *best_origin;
    char best_point[1024];
} run;

/* Processor time of this thread, in nanoseconds. */
static double thinking(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void note(run *r, const tl_proposal *p, const tl_result *result)
{
    bool right = result->status == TL_RECORD_OK && result->score_ns > 0;
    r->failed += !right;
    if (!right)
        return;
    if (strcmp(p->origin, "default") == 0 &&
        (r->default_ns == 0 || result->score_ns < r->default_ns))
        r->default_ns = result->score_ns; /* the best lowering's */
    if (r->best_ns > 0 && result->score_ns >= r->best_ns)
        return;
    r->best_ns = result->score_ns;
    r->best_origin = p->origin;
    snprintf(r->best_point, sizeof r->best_point, "%.*s", (int)strcspn(p->candidate.trace, "\n"),
             p->candidate.trace);
    tl_text_format(&r->curve, "%s[%d,%.4f]", r->curve.size > 0 ? "," : "", (int)r->learned + 1,
                   r->default_ns / r->best_ns);
}

static int64_t propose(run *r, tl_policy *policy, int64_t most, clockwork *c)
{
    tl_diag diag = { 0 };
    tl_proposal batch[RING];
    tl_arena *arena = tl_arena_create(0);
    int count = 0;
    double begun = thinking();
    must(policy->type->propose(policy, arena, (int)most, batch, &count, &diag), &diag);
    r->thought_ns += thinking() - begun;
    for (int i = 0; i < count; i++) {
        int64_t at = r->proposed++ % RING, ticket;
        r->proposals[at] = batch[i];
        r->arenas[at] = i == count - 1 ? arena : NULL;
        if (c->measurer != NULL)
            must(tl_measurer_submit(c->measurer, c->task, &batch[i].candidate, 1, &ticket, &diag),
                 &diag);
    }
    if (count == 0)
        tl_arena_destroy(arena);
    return count;
}

static void take_result(run *r, tl_policy *policy, clockwork *c)
{
    static tl_result result;
    tl_diag diag = { 0 };
    int64_t at = r->learned % RING;
    const tl_proposal *p = &r->proposals[at];
    if (c->measurer != NULL)
        must(tl_measurer_next(c->measurer, -1, &result, &diag), &diag);
    else
        answer(c->table, p, &result);
    note(r, p, &result);
    r->learned++;
    double begun = thinking();
    must(policy->type->learn(policy, p, &result, 1, &diag), &diag);
    r->thought_ns += thinking() - begun;
    tl_arena_destroy(r->arenas[at]);
    r->arenas[at] = NULL;
}

static void run_policy(study *s, const subject *of, const tl_policy_type *type, uint64_t seed)
{
    tl_diag diag = { 0 };
    tl_space *space;
    tl_policy *policy;
    clockwork c;
    run *r = calloc(1, sizeof *r);
    if (r == NULL)
        exit(1);
    must(tl_space_create(s->arena, &of->task, &s->target, &space, &diag), &diag);
    start(s, of, type->name, seed, &c);
    tl_search search = { .task = &of->task,
                         .space = space,
                         .target = &s->target,
                         .threads = (int)s->options.threads,
                         .seed = seed };
    double begun = (double)tl_clock_ns();
    must(type->create(&search, &policy, &diag), &diag);
    int64_t ahead = s->options.ahead, trials = s->options.trials;
    bool more = true;
    while (more || r->learned < r->proposed) {
        int64_t room = ahead - (r->proposed - r->learned), left = trials - r->proposed;
        int64_t most = left < ahead / 2 ? left : ahead / 2;
        if (more && (left <= 0 || (room >= most && propose(r, policy, most, &c) < most)))
            more = false;
        if (r->learned < r->proposed && (!more || r->proposed - r->learned > ahead / 2))
            take_result(r, policy, &c);
    }
    double wall = (double)tl_clock_ns() - begun;
    tl_measure_stats stats = { 0 };
    if (c.measurer != NULL)
        tl_measurer_stats(c.measurer, &stats);
    printf("{\"record\":\"curve\",\"task\":\"%s\",\"workload\":\"%s\",\"policy\":\"%s\","
           "\"seed\":%d,\"trials\":%d,\"failed\":%d,\"default_ns\":%.1f,\"best_ns\":%.1f,"
           "\"gain\":%.4f,\"origin\":\"%s\",\"point\":\"%s\",\"think_ms\":%.3f,\"wall_ms\":%.3f,"
           "\"peak_gflops\":%.1f,\"curve\":[%s]}\n",
           of->name, of->task.workload, type->name, (int)seed, (int)r->learned, r->failed,
           r->default_ns, r->best_ns, r->best_ns > 0 ? r->default_ns / r->best_ns : 0,
           r->best_origin != NULL ? r->best_origin : "", r->best_point,
           r->thought_ns / 1e6 / (double)(r->learned > 0 ? r->learned : 1),
           wall / 1e6 / (double)(r->learned > 0 ? r->learned : 1), stats.peak_gflops,
           tl_text_get(&r->curve));
    fflush(stdout);
    policy->type->destroy(policy);
    if (c.measurer != NULL)
        tl_measurer_destroy(c.measurer);
    tl_text_free(&r->curve);
    free(r);
}

static void run_all(study *s)
{
    for (int i = 0; i < s->count; i++)
        for (int p = 0; p < tl_policy_count; p++)
            for (int64_t k = 0; k < s->options.seeds; k++) {
                const char *name = tl_policies[p]->name, *list = s->options.policies;
                const char *found = list != NULL ? strstr(list, name) : name;
                if (found != NULL)
                    run_policy(s, &s->subjects[i], tl_policies[p], (uint64_t)(s->options.seed + k));
            }
}

int main(int argc, char **argv)
{
    static study s = {
        .options = { .trials = 100, .tasks = 3, .seed = 1, .seeds = 1, .threads = 1, .ahead = 8 }
    };
    options *o = &s.options;
    tl_diag diag = { 0 };
    char beside[4200];
    const tl_option table[] = {
        { "--policies", NULL, TL_OPTION_TEXT, "A,B", "", &o->policies },
        { "--kernel", NULL, TL_OPTION_TEXT, "NAME", "", &o->kernel },
        { "--record", NULL, TL_OPTION_TEXT, "DIR", "", &o->record },
        { "--replay", NULL, TL_OPTION_TEXT, "DIR", "", &o->replay },
        { "--table", NULL, TL_OPTION_TEXT, "DIR", "", &o->table },
        { "--worker", NULL, TL_OPTION_TEXT, "TILTH", "", &o->worker },
        { "--trials", NULL, TL_OPTION_INT, "N", "", &o->trials },
        { "--tasks", NULL, TL_OPTION_INT, "N", "", &o->tasks },
        { "--seed", NULL, TL_OPTION_INT, "N", "", &o->seed },
        { "--seeds", NULL, TL_OPTION_INT, "N", "", &o->seeds },
        { "--threads", NULL, TL_OPTION_INT, "N", "", &o->threads },
        { "--ahead", NULL, TL_OPTION_INT, "N", "", &o->ahead },
        { 0 },
    };
    const tl_verb_help help = { .verb = "policy_study",
                                .arguments = "MODEL.onnx|KERNEL.tk ...",
                                .summary = "Compares search policies.",
                                .options = table,
                                .min_positional = 1,
                                .max_positional = 32 };
    const char *paths[32];
    int path_count, code;
    if (!tl_verb_begin(&help, argc - 1, argv + 1, paths, &path_count, &code))
        return code;
    if (o->worker == NULL) {
        ssize_t size = readlink("/proc/self/exe", beside, 4096);
        beside[size > 0 ? size : 0] = '\0';
        o->worker = tl_arena_format(s.arena = tl_arena_create(0), "%s/../tilth", dirname(beside));
    } else {
        s.arena = tl_arena_create(0);
    }
    o->ahead = o->ahead < 2 ? 2 : o->ahead > RING / 2 ? RING / 2 : o->ahead;
    must(tl_target_resolve(NULL, &s.target, &diag), &diag);
    for (int i = 0; i < path_count; i++) {
        size_t size = strlen(paths[i]);
        if (size > 3 && strcmp(paths[i] + size - 3, ".tk") == 0)
            add_kernel_file(&s, paths[i]);
        else
            add_model(&s, paths[i]);
    }
    run_all(&s);
    tl_arena_destroy(s.arena);
    return 0;
}
