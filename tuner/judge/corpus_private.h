/* tuner/judge/corpus_private.h: what the parts of a corpus share: its sections, and what is kept of them. */
#ifndef TL_TUNER_JUDGE_CORPUS_PRIVATE_H
#define TL_TUNER_JUDGE_CORPUS_PRIVATE_H
#include <stdio.h>
#include "tuner/judge/corpus.h"

typedef enum {
    TL_SECTION_ROWS,
    TL_SECTION_TENSET,
    TL_SECTION_DECISIONS,
    TL_SECTION_WORKLOADS, /* a token a series; of one whose programs are all lost, too */
    TL_SECTION_PROGRAMS,  /* tl_kept_program */
    TL_SECTION_COUNT
} tl_section;

/* What is known of a program beside its rows. */
typedef struct {
    int32_t series, row_count, tenset_count, decision_count;
    float label, error;
    uint32_t program;
    uint32_t sampler;
} tl_kept_program;

/* Where sections lie: each in a file without a name while they are made, or all in one file that is kept. */
typedef struct {
    const void *data[TL_SECTION_COUNT]; /* NULL: empty */
    size_t size[TL_SECTION_COUNT];
    void *maps[TL_SECTION_COUNT];
    size_t map_sizes[TL_SECTION_COUNT];
    int64_t lost;
    char why[300];
} tl_sections;
void tl_sections_unmap(tl_sections *sections);

/* corpus_build.c: builds all. `set`'s series in their order. */
tl_status tl_sections_build(const tl_dataset *set, const tl_corpus_options *options,
                            tl_sections *out, tl_diag *diag);

/* corpus_file.c: the kept ones. A file that is damaged or of another key is none. */
void tl_corpus_key(const tl_dataset *set, const tl_corpus_options *options, char out[33]);
bool tl_sections_find(const char *folder, const char *key, tl_sections *out);
void tl_sections_keep(const char *folder, const char *key, const tl_sections *sections);

#endif
