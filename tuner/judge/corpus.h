/* tuner/judge/corpus.h: a data set as samples: every record's program built again, its rows and tokens computed.
 *
 * Rows lie in a file that is mapped, in the order of the data set, so that a corpus may be larger than memory. What
 * takes more than a minute is kept in a folder of the cache, under a key of the records and of what computes rows,
 * and mapped from there the next time. The same data set gives the same corpus, on however many threads. */
#ifndef TL_TUNER_JUDGE_CORPUS_H
#define TL_TUNER_JUDGE_CORPUS_H
#include <signal.h>
#include "tuner/cost/cost_samples.h"
#include "tuner/dataset/dataset.h"

/* Programs that are comparable: of one workload, one machine, one standard. */
typedef struct {
    const tl_data_series *series;
    int workload; /* number of the workload, which may be a task on several machines */
    int first, count;
} tl_corpus_task;

typedef struct {
    const char *target, *machine; /* a fingerprint; a profile's digest, "" without one */
    char name[160];               /* for people */
} tl_corpus_domain;

/* Which rows a model takes. */
typedef enum {
#define ROWS(name, text, words) TL_ROWS_##name,
#include "tuner/judge/rows.def"
#undef ROWS
    TL_ROWS_COUNT
} tl_rows;
typedef struct {
    const char *text, *words;
} tl_rows_info;
extern const tl_rows_info tl_rows_infos[TL_ROWS_COUNT];
tl_sample_shape tl_rows_shape(tl_rows rows);

typedef struct {
    tl_cost_samples samples[TL_ROWS_COUNT]; /* the same programs and tasks */
    int count, task_count, workload_count, domain_count;
    const tl_corpus_task *tasks;
    const tl_corpus_domain *domains;
    const uint8_t *sampler;  /* a program: tl_sampler */
    const uint32_t *program; /* the digits of its structural hash */
    int64_t lost;            /* records that come to another program now, or to none */
    char why[300];           /* one of them */
    bool was_kept;           /* it came from the cache */
    double seconds;          /* that it took */
} tl_corpus;

typedef struct {
    int threads;    /* 0: 1 */
    int unmeasured; /* so many points more of each task, drawn by chance, whose labels are NAN: for a teacher to label */
    const char *folder;  /* of the cache; NULL: nothing is kept */
    const char *build;   /* digest of this tilth, which computes the rows */
    double keep_after_s; /* 0: a minute; below 0: whatever it takes */
    const volatile sig_atomic_t *stop;
    void (*listen)(void *user, int64_t done,
                   int64_t all); /* from any thread, one at a time; may be NULL */
    void *user;
} tl_corpus_options;

/* `set` outlives it. TL_BAD_TEXT: no record can be built, TL_IO: there is no room for its file, TL_INTERRUPTED,
 * TL_NO_MEMORY. */
tl_status tl_corpus_open(const tl_dataset *set, const tl_corpus_options *options, tl_corpus **out,
                         tl_diag *diag);
void tl_corpus_close(tl_corpus *corpus); /* NULL is fine */

#endif
