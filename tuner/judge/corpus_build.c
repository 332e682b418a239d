/* tuner/judge/corpus_build.c: builds the programs of a data set and computes their rows, series by series on several
 * threads; each writes what it made when all series before have been written, so that sections are in the order of
 * the data set. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <sys/mman.h>
#include "ir/program/machine.h"
#include "tuner/cost/features.h"
#include "tuner/cost/tenset.h"
#include "tuner/dataset/sample_points.h"
#include "tuner/judge/corpus_private.h"
#include "tuner/search/tokens.h"

typedef struct {
    const tl_dataset *set;
    const tl_corpus_options *options;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    size_t next, written; /* series that are taken, and written */
    int64_t done;         /* records */
    FILE *files[TL_SECTION_COUNT];
    size_t sizes[TL_SECTION_COUNT];
    int64_t lost;
    char why[300];
    tl_status status; /* of the first that failed */
    char problem[300];
} builder;

/* One series in the making. */
typedef struct {
    builder *b;
    const tl_data_series *series;
    int number;
    tl_target target,
        measured; /* what schedules are for; the same with the profile of the machine that measured */
    tl_machine machine;
    tl_space *spaces[TL_SPACE_KIND_COUNT];
    tl_tokens *tokens[TL_SPACE_KIND_COUNT];
    float (*tags)[TL_TENSET_TAGS]; /* a lowering */
    tl_text sections[TL_SECTION_COUNT];
    int64_t lost;
    char why[300];
} making;

/* --- one program -------------------------------------------------------------------------------------------------- */

static void add_tenset(making *m, tl_arena *scratch, const tl_variant *v, tl_kept_program *kept)
{
    const float *rows;
    tl_text *out = &m->sections[TL_SECTION_TENSET];
    kept->tenset_count = tl_tenset_features_of(scratch, v->program, &rows);
    for (int i = 0; i < kept->tenset_count; i++) {
        tl_text_add_bytes(out, (const char *)(rows + (size_t)i * TL_TENSET_WIDTH),
                          TL_TENSET_WIDTH * sizeof *rows);
        tl_text_add_bytes(out, (const char *)m->tags[v->point.lowering], sizeof m->tags[0]);
    }
}

/* As a file has it: nothing is 2^24 times slower, whatever a database says. */
static float label_of(const tl_data_record *r)
{
    const double least = -8 * log(2), most = 24 * log(2);
    return r->status == TL_RECORD_OK ? (float)fmin(fmax(log(r->ratio), least), most) : INFINITY;
}

static float error_of(const tl_data_record *r)
{
    return r->ratio_error > 0 ? (float)fmin(r->ratio_error, 4) : 0;
}

static void add_program(making *m, tl_arena *scratch, tl_space_kind kind, const tl_variant *v,
                        tl_kept_program kept)
{
    const float *rows, *decisions;
    kept.series = m->number;
    kept.row_count = tl_features_of(scratch, v->program, &m->measured, &rows);
    tl_text_add_bytes(&m->sections[TL_SECTION_ROWS], (const char *)rows,
                      (size_t)kept.row_count * TL_FEATURE_WIDTH * sizeof *rows);
    kept.decision_count = tl_tokens_of_point(m->tokens[kind], scratch, &v->point, &decisions);
    tl_text_add_bytes(&m->sections[TL_SECTION_DECISIONS], (const char *)decisions,
                      (size_t)kept.decision_count *
                          (size_t)tl_cost_token_width(TL_COST_TOKEN_DECISION) * sizeof *decisions);
    add_tenset(m, scratch, v, &kept);
    tl_text_add_bytes(&m->sections[TL_SECTION_PROGRAMS], (const char *)&kept, sizeof kept);
}

static void make_program(making *m, const tl_data_record *r)
{
    tl_diag why = { 0 };
    tl_variant variant;
    tl_arena *scratch = tl_arena_create(0);
    if (scratch != NULL && !TL_ARENA_GUARD(scratch) &&
        tl_dataset_build(m->spaces[r->kind], scratch, r, &variant, &why) == TL_OK) {
        add_program(m, scratch, r->kind, &variant,
                    (tl_kept_program){ .label = label_of(r),
                                       .error = error_of(r),
                                       .program = r->program,
                                       .sampler = r->sampler });
    } else {
        m->lost++;
        snprintf(m->why, sizeof m->why, "%.299s", *why.text ? why.text : "out of memory");
    }
    tl_arena_destroy(scratch);
}

/* A point that nobody measured; those that are no schedules are not there. */
static void make_unmeasured(making *m, int number)
{
    const uint64_t seed = 0x756e6d6561u;
    const tl_sampler sampler = number % 2 == 0 ? TL_SAMPLER_WALK : TL_SAMPLER_PLAIN;
    const tl_space_kind kind = tl_sampler_space(sampler);
    tl_variant variant;
    double probability;
    tl_arena *scratch = tl_arena_create(0);
    if (scratch != NULL && !TL_ARENA_GUARD(scratch) &&
        tl_sample_point(m->spaces[kind], scratch, sampler, number, seed, &variant, &probability,
                        NULL) == TL_OK)
        add_program(m, scratch, kind, &variant,
                    (tl_kept_program){ .label = NAN,
                                       .program = tl_data_program_of(variant.hash),
                                       .sampler = sampler });
    tl_arena_destroy(scratch);
}

/* --- one series --------------------------------------------------------------------------------------------------- */

static tl_status open_series(making *m, tl_arena *arena, tl_diag *diag)
{
    const tl_data_series *s = m->series;
    TL_TRY(tl_target_of_fingerprint(s->target, &m->target, diag));
    m->target.cores = s->cores;
    m->measured = m->target;
    if (*s->machine != '\0') {
        TL_TRY(tl_machine_parse(s->machine, strlen(s->machine), &m->machine, diag));
        m->measured.machine = &m->machine;
    }
    for (int k = 0; k < TL_SPACE_KIND_COUNT; k++) {
        TL_TRY(tl_space_create(arena, tl_dataset_task(s->task, arena), &m->target, s->threads,
                               (tl_space_kind)k, &m->spaces[k], diag));
        m->tokens[k] = tl_tokens_create(arena, m->spaces[k]);
    }
    m->tags = (float(*)[TL_TENSET_TAGS])(
        void *)TL_NEW_ARRAY(arena, float, s->task->lowering_count *TL_TENSET_TAGS);
    for (int i = 0; i < s->task->lowering_count; i++)
        tl_tenset_tags_of(tl_space_program(m->spaces[TL_SPACE_FULL], i), s->task->family,
                          s->task->lowerings[i], m->tags[i]);
    return TL_OK;
}

static bool stops(const builder *b)
{
    return b->options->stop != NULL && *b->options->stop;
}

static void make_series(making *m)
{
    const tl_data_series *s = m->series;
    tl_diag why = { 0 };
    tl_text *out = &m->sections[TL_SECTION_WORKLOADS];
    float *token = calloc((size_t)tl_cost_token_width(TL_COST_TOKEN_WORKLOAD), sizeof *token);
    tl_arena *arena = tl_arena_create(0);
    if (token == NULL) {
        out->failed = true;
    } else if (arena != NULL && !TL_ARENA_GUARD(arena) && open_series(m, arena, &why) == TL_OK) {
        tl_cost_token_of_workload(m->tokens[TL_SPACE_FULL], s->task->family, (double)s->task->flops,
                                  (double)s->task->bytes, token);
        for (int i = 0; i < s->count && !stops(m->b); i++)
            make_program(m, &s->records[i]);
        for (int i = 0; i < m->b->options->unmeasured && !stops(m->b); i++)
            make_unmeasured(m, i);
    } else {
        m->lost += s->count;
        snprintf(m->why, sizeof m->why, "%.299s", *why.text ? why.text : "out of memory");
    }
    if (token != NULL)
        tl_text_add_bytes(out, (const char *)token,
                          (size_t)tl_cost_token_width(TL_COST_TOKEN_WORKLOAD) * sizeof *token);
    free(token);
    tl_arena_destroy(arena);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void fail(builder *b, tl_status status, const char *problem)
{
    if (b->status == TL_OK)
        snprintf(b->problem, sizeof b->problem, "%s", problem);
    b->status = b->status == TL_OK ? status : b->status;
}

/* In turn, with the lock. */
static void write_series(making *m)
{
    builder *b = m->b;
    for (int k = 0; k < TL_SECTION_COUNT && b->status == TL_OK; k++) {
        const tl_text *section = &m->sections[k];
        if (section->failed)
            fail(b, TL_NO_MEMORY, "out of memory");
        else if (section->size > 0 &&
                 fwrite(section->data, 1, section->size, b->files[k]) != section->size)
            fail(b, TL_IO, "there is no room for the rows in the folder of temporary files");
        b->sizes[k] += section->size;
    }
    b->lost += m->lost;
    if (m->lost > 0)
        memcpy(b->why, m->why, sizeof b->why);
    b->done += m->series->count;
    if (b->options->listen != NULL)
        b->options->listen(b->options->user, b->done, b->set->count);
}

static void *work(void *user)
{
    builder *b = user;
    size_t all = tl_map_count(b->set->series);
    pthread_mutex_lock(&b->lock);
    while (b->next < all && b->status == TL_OK && !stops(b)) {
        making m = { .b = b, .number = (int)b->next++ };
        m.series = tl_map_at(b->set->series, (size_t)m.number).value;
        pthread_mutex_unlock(&b->lock);
        make_series(&m);
        pthread_mutex_lock(&b->lock);
        while (b->written != (size_t)m.number)
            pthread_cond_wait(&b->turn, &b->lock);
        write_series(&m);
        b->written++;
        pthread_cond_broadcast(&b->turn);
        for (int k = 0; k < TL_SECTION_COUNT; k++)
            tl_text_free(&m.sections[k]);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void work_on_threads(builder *b)
{
    enum { MOST_THREADS = 256 };
    pthread_t threads[MOST_THREADS];
    int wanted = b->options->threads > 1 ? b->options->threads - 1 : 0, started = 0;
    while (started < wanted && started < MOST_THREADS &&
           pthread_create(&threads[started], NULL, work, b) == 0)
        started++;
    work(b);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static tl_status map_section(builder *b, int k, tl_sections *out, tl_diag *diag)
{
    if (b->sizes[k] == 0)
        return TL_OK;
    void *map = MAP_FAILED;
    if (fflush(b->files[k]) == 0)
        map = mmap(NULL, b->sizes[k], PROT_READ, MAP_SHARED, fileno(b->files[k]), 0);
    if (map == MAP_FAILED)
        return tl_fail(diag, TL_IO, "the rows cannot be mapped from the folder of temporary files");
    out->maps[k] = map;
    out->data[k] = map;
    out->size[k] = out->map_sizes[k] = b->sizes[k];
    return TL_OK;
}

void tl_sections_unmap(tl_sections *sections)
{
    for (int k = 0; k < TL_SECTION_COUNT; k++)
        if (sections->maps[k] != NULL)
            munmap(sections->maps[k], sections->map_sizes[k]);
    memset(sections, 0, sizeof *sections);
}

static tl_status build(builder *b, tl_sections *out, tl_diag *diag)
{
    for (int k = 0; k < TL_SECTION_COUNT; k++) {
        b->files[k] = tmpfile();
        if (b->files[k] == NULL)
            return tl_fail(diag, TL_IO, "no temporary file can be made for the rows");
    }
    work_on_threads(b);
    if (stops(b))
        return tl_fail(diag, TL_INTERRUPTED, "interrupted while rows were computed");
    if (b->status != TL_OK)
        return tl_fail(diag, b->status, "%s", b->problem);
    for (int k = 0; k < TL_SECTION_COUNT; k++)
        TL_TRY(map_section(b, k, out, diag));
    out->lost = b->lost;
    memcpy(out->why, b->why, sizeof out->why);
    return TL_OK;
}

tl_status tl_sections_build(const tl_dataset *set, const tl_corpus_options *options,
                            tl_sections *out, tl_diag *diag)
{
    builder b = { .set = set,
                  .options = options,
                  .lock = PTHREAD_MUTEX_INITIALIZER,
                  .turn = PTHREAD_COND_INITIALIZER };
    *out = (tl_sections){ 0 };
    tl_status status = build(&b, out, diag);
    for (int k = 0; k < TL_SECTION_COUNT; k++)
        if (b.files[k] != NULL)
            fclose(b.files[k]);
    if (status != TL_OK)
        tl_sections_unmap(out);
    return status;
}
