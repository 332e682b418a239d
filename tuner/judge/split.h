/* tuner/judge/split.h: which programs of a corpus a model learns from, which tell it when to stop, and which it is
 * judged on.
 *
 * Sides are drawn by digests of workloads (of programs, within tasks) and a seed: what is measured on two machines is
 * on one side, and more records change the side of none. */
#ifndef TL_TUNER_JUDGE_SPLIT_H
#define TL_TUNER_JUDGE_SPLIT_H
#include "tuner/judge/corpus.h"

typedef enum {
#define SPLIT(name, text, words) TL_SPLIT_##name,
#include "tuner/judge/splits.def"
#undef SPLIT
    TL_SPLIT_COUNT
} tl_split_kind;
typedef struct {
    const char *text, *words;
} tl_split_info;
extern const tl_split_info tl_split_infos[TL_SPLIT_COUNT];
bool tl_split_from_text(const char *text, tl_split_kind *out);

/* A network: which workloads it runs how often. */
typedef struct {
    const char *name;
    int count;
    const char *const *workloads;
    const double *runs;
} tl_network;

typedef enum { TL_SIDE_TRAIN, TL_SIDE_CHECK, TL_SIDE_TEST } tl_side;

typedef struct {
    tl_split_kind kind;
    double test;  /* share to be judged on, of splits within tasks and by task */
    double check; /* share of the rest that tells when to stop */
    uint64_t seed;
    const tl_network *held_out; /* of a split by model */
    int held_out_count;
    /* of a split by machine: a part of its domain's name or digest; NULL: the last one */
    const char *machine;
} tl_split_options;

typedef struct {
    /* by side, of what was measured; a task of a split within tasks is on several */
    int programs[3], tasks[3];
    int unmeasured[3]; /* besides: programs that have no label */
} tl_split_sizes;

/* Fills side[corpus->count]. TL_BAD_ARGUMENT with the rule: no second machine, nothing held out, a side that is
 * empty. */
tl_status tl_split_make(const tl_corpus *corpus, const tl_split_options *options, uint8_t *side,
                        tl_split_sizes *sizes, tl_diag *diag);
/* Numbers of the programs of a side, in their order; how many. `out` has room for corpus->count. */
int tl_split_side(const tl_corpus *corpus, const uint8_t *side, tl_side wanted, int *out);

#endif
