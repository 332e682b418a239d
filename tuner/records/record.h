/* tuner/records/record.h: what one trial of one candidate said: the unit of the tuner's memory.
 *
 * A record is a fact and is never changed. It is complete in itself: with the workload's naive program
 * (tl_workload_info, stored once a workload) it can be replayed on any machine. Times count for the code generator's
 * revision and the target they were measured with; traces stay useful as seeds for ever. A record names itself: `uid`
 * is a digest of everything else in it, so that a damaged record is noticed when it is read, and the same record that
 * comes in twice (a retry, an import, a merge) is one. */
#ifndef TL_TUNER_RECORDS_RECORD_H
#define TL_TUNER_RECORDS_RECORD_H
#include <stdbool.h>
#include <stdint.h>
#include "ir/program/target.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
#define RECORD(name, text, again, words) TL_RECORD_##name,
#include "tuner/records/record_status.def"
#undef RECORD
    TL_RECORD_STATUS_COUNT
} tl_record_status;

typedef struct {
    const char *text, *words;
    bool again; /* another machine, or a quieter one, may get further */
} tl_record_status_info;
extern const tl_record_status_info tl_record_status_infos[TL_RECORD_STATUS_COUNT];
bool tl_record_status_from_text(const char *text, tl_record_status *out);

/* What is cold when a kernel is timed. Times of one kind are compared with their own kind only. */
typedef enum {
#define COLD(name, text, words) TL_COLD_##name,
#include "tuner/records/record_cold.def"
#undef COLD
    TL_COLD_COUNT
} tl_cold;

typedef struct {
    const char *text, *words;
} tl_cold_info;
extern const tl_cold_info tl_cold_infos[TL_COLD_COUNT];
bool tl_cold_from_text(const char *text, tl_cold *out);

/* Texts are "" rather than NULL; they belong to whoever made the record. */
typedef struct {
    char uid[33]; /* digest of all that follows; filled by tl_record_seal */

    /* what was tried */
    /* 32 hex digits of the reference program: extents, dtypes, layouts (tl_workload_key). */
    const char *workload;
    const char *class_key; /* the same without extents (tl_class_key) */
    const char *family;    /* "conv_add_relu" */
    const char *target;    /* tl_target_fingerprint */
    const char *numerics;  /* "strict" or "relaxed": the contract under which it may be used */
    const char *lowering;  /* "direct", "winograd_f4": which naive program the trace applies to */
    const char *trace;     /* schedule/trace.h */
    /* 16 hex digits of the scheduled program's structural hash; "" when it is not known. */
    const char *program;

    /* what came of it */
    tl_record_status status;
    const char *reason; /* a sentence; "" when ok */
    double time_ns;     /* the least of `times_ns`; 0 when not ok */
    double median_ns;   /* of `times_ns` */
    /* The least time of the incumbent in the same rounds; 0: there was none. Compare candidates by
     * time_ns / incumbent_ns and not by time_ns: the machine changes its mind. */
    double incumbent_ns;
    /* time_ns corrected by what the incumbent showed in the same rounds: comparable in a task, and
     * below the incumbent's only of what was crowned. */
    double score_ns;
    int time_count;
    const double *times_ns; /* every repeat, in order */
    bool hopeless;          /* stopped early: far slower than the incumbent */
    bool disturbed;         /* a witness never came back to its best: compare with care */
    tl_cold cold;
    int threads;
    double max_error; /* largest error against the reference, over the largest magnitude expected */
    double build_ns, run_ns; /* what the trial cost: compiling; checking and timing */

    /* where, when, by what */
    int revision; /* TL_CODEGEN_REVISION */
    /* One line of JSON: CPU, cores, LLVM, witnesses (tuner/run/environment.h). */
    const char *environment;
    const char *session; /* names the run of the tuner */
    int64_t sequence;    /* number of the trial in its session, from 1 */
    int64_t created_us;  /* microseconds since 1970 */

    /* what can be learned from it (tuner/LABELS.md); 0 and "" where nobody says */
    const char *origin;   /* how its point was found: "default", "mutation", "walk", ... */
    double probability;   /* that the sampler drew it and no other point of the task */
    const char *standard; /* structural hash of what it took turns with; "": nothing */
    /* Its time over that of the first program of its session, the default schedule: as it was seen, and not, like a score, on
     * the safe side of a verdict. */
    double ratio;
    double ratio_error; /* standard error of the ratio's logarithm, of those turns */
    int turns;          /* that the ratio is the median of */
    double alone;       /* share of them that had the core to themselves */
    /* why less is known than of others: "hopeless", "behind", "lost" (tuner/measure/contest.h) */
    const char *censored;
    const char *machine; /* digest of the machine's profile, an annex; "": there was none */
    int space; /* revision of the space whose point its trace's first line names (tl_space_infos); 0: nobody says */
} tl_record;

/* Fills `uid`. Do it last. */
void tl_record_seal(tl_record *record);
bool tl_record_is_sealed(const tl_record *record); /* whether the content still matches `uid` */

/* One line of JSON and back (the format of export, import and of recorded measurements). Times have the shortest
 * digits that read back exactly. TL_BAD_TEXT says what is wrong; a record whose uid does not match is refused. */
void tl_record_print(const tl_record *record, tl_text *out);
tl_status tl_record_parse(tl_arena *arena, const char *json, tl_record *out, tl_diag *diag);

/* A workload: stored once, so that a database explains itself. */
typedef struct {
    char uid[33]; /* digest of all that follows; filled by tl_workload_seal */
    const char *workload, *class_key, *family;
    const char *name;    /* of a kernel that has it: "conv_relu_3" */
    const char *program; /* text of the reference (naive) program */
    int64_t flops, bytes;
} tl_workload_info;
void tl_workload_seal(tl_workload_info *info);
void tl_workload_print(const tl_workload_info *info, tl_text *out);
tl_status tl_workload_parse(tl_arena *arena, const char *json, tl_workload_info *out,
                            tl_diag *diag);

/* A text that records refer to by its name, stored once: kind "program": the naive program of a lowering, named "WORKLOAD
 * LOWERING", to which its traces apply; kind "machine": a profile (ir/program/machine.h), named by its digest. */
typedef struct {
    char uid[33]; /* digest of all that follows; filled by tl_annex_seal */
    const char *kind, *name, *text;
} tl_annex;
void tl_annex_seal(tl_annex *annex);
void tl_annex_print(const tl_annex *annex, tl_text *out);
tl_status tl_annex_parse(tl_arena *arena, const char *json, tl_annex *out, tl_diag *diag);

/* What was chosen for a whole model: which record each workload's schedule is taken from, as it was checked and timed
 * inside the model. The newest row of a model, target, numerics, threads and revision counts; rows are never changed. */
typedef struct {
    char uid[33];       /* digest of all that follows; filled by tl_choice_seal */
    const char *model;  /* 32 hex digits of the model's bytes and the shapes it was given */
    const char *name;   /* for people: the file's name */
    const char *target; /* tl_target_fingerprint */
    const char *numerics;
    int threads, revision;
    /* False: the model was not faster than untuned beyond doubt, so that nothing was chosen. */
    bool kept;
    /* How the graph is cut, a line a decision (tl_graph_set_form); "" as without tuning. */
    const char *form;
    const char *picks; /* "WORKLOAD UID" a line; what is not named keeps its default schedule */
    double untuned_ns, tuned_ns; /* medians of the last comparison */
    /* Tuned / untuned: median of the pairs, 95 % confidence interval. */
    double ratio, ratio_low, ratio_high;
    int pairs;        /* runs of each */
    double max_error; /* of the outputs against untuned, over the largest magnitude */
    const char *environment, *session;
    int64_t created_us;
} tl_choice;
void tl_choice_seal(tl_choice *choice);
void tl_choice_print(const tl_choice *choice, tl_text *out);
tl_status tl_choice_parse(tl_arena *arena, const char *json, tl_choice *out, tl_diag *diag);

/* What times depend on, as one word without blanks: ISA, LLVM's name of the CPU, caches, cores used, and which device:
 * "x86-64-v4/znver5/l1=48K/l2=1M/l3=32M/cores=1", ".../device=NVIDIA-H200-sm_90-132-SM-1980-MHz", ".../device=emulated".
 * Records of another fingerprint are seeds, not times. */
void tl_target_fingerprint(const tl_target *target, int cores, char out[160]);
/* As much of a target as a fingerprint says, of an instruction set that is known: enough to build schedules for it again.
 * TL_BAD_TEXT: it is none. */
tl_status tl_target_of_fingerprint(const char *fingerprint, tl_target *out, tl_diag *diag);

#endif
