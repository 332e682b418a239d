/* driver/cost/cost_lesson.h: what the actions of `tilth cost-model` share: data, networks, sides, and models by their
 * names. */
#ifndef TL_DRIVER_COST_COST_LESSON_H
#define TL_DRIVER_COST_COST_LESSON_H
#include "driver/cost/cost_run.h"
#include "tuner/judge/metrics.h"
#include "tuner/judge/split.h"

extern volatile sig_atomic_t tl_cost_stop; /* an interrupt came */

/* Measured programs, ready to be learned from. Everything in `arena`, but for the corpus. */
typedef struct {
    const tl_cost_settings *o;
    tl_session session;
    tl_arena *arena; /* the session's */
    tl_corpus *corpus;
    const float *again;                /* labels of a second measurement; NULL: none was named */
    int network_count, held_out_count; /* of the networks the first ones are held out */
    const tl_network *networks;
    const double *runs; /* network x task */
    uint8_t *side;
    tl_split_sizes sizes;
    tl_split_kind split;
    bool has_split; /* else nothing is held out, and side is TRAIN or CHECK */
} tl_lesson;

/* Starts a session, with data reads, builds and splits what the settings name, and acts; TL_INTERRUPTED where it was
 * told to stop. */
typedef tl_status tl_lesson_action(tl_lesson *lesson, tl_diag *diag);
tl_status tl_lesson_run(const tl_cost_settings *settings, bool with_data, tl_lesson_action *act,
                        tl_diag *diag);
/* A corpus of the files alone, in the lesson's arena, progress shown. */
tl_status tl_lesson_corpus(tl_lesson *lesson, const char *const *files, int count, tl_corpus **out,
                           tl_diag *diag);
/* Samples of the programs of a corpus, without what --without takes away. */
tl_status tl_lesson_pick(const tl_lesson *lesson, const tl_corpus *corpus, tl_rows rows,
                         const int *programs, int count, tl_cost_samples *out, tl_diag *diag);
/* The programs of a side; of that to be judged on, those that were measured. */
tl_status tl_lesson_side(const tl_lesson *lesson, tl_rows rows, tl_side side, const int **programs,
                         tl_cost_samples *out, tl_diag *diag);

/* "attention", "mlp,hidden=256@tenset" or the path of a file; "A.tlm+B.tlm": files that are asked together. */
typedef struct {
    const char *text; /* as it was named */
    const char *type; /* NULL: it is a file */
    const char *settings;
    tl_rows rows;
} tl_model_spec;
tl_status tl_model_spec_read(tl_arena *arena, const char *text, tl_model_spec *out, tl_diag *diag);
/* Loads the file, and finds the rows that it takes. TL_BAD_TEXT: it is of other features or another space than this
 * tilth's. */
tl_status tl_model_spec_load(tl_model_spec *spec, tl_cost_model **out, tl_diag *diag);

/* Trains a new model of that type on the lesson's sides. */
tl_status tl_lesson_train(const tl_lesson *lesson, const tl_model_spec *spec, uint64_t seed,
                          const char *checkpoint, tl_cost_model **out, tl_diag *diag);

/* Models that are asked together: one, or those of several files. */
enum { TL_TOGETHER = 16 };
typedef struct {
    tl_cost_model *models[TL_TOGETHER];
    int count;
} tl_model_group;
/* Of a file, or of files with + between them, all of the same rows. */
tl_status tl_model_group_load(tl_arena *arena, tl_model_spec *spec, tl_model_group *out,
                              tl_diag *diag);
void tl_model_group_destroy(tl_model_group *group);

/* How a model does on some programs of the lesson's corpus. */
typedef struct {
    tl_judgement judgement;
    tl_calibration calibration;
    const tl_corpus *corpus;
    const double *task_values;    /* [metric * tasks + task]; NAN: none */
    int network_count;            /* 0: none are known of the corpus */
    const double *network_values; /* [metric * networks + network]; NAN: none */
    double programs_a_second;     /* of predicting */
    int programs;
    bool has_learned;
} tl_report_card;
tl_status tl_lesson_judge(const tl_lesson *lesson, const tl_corpus *corpus, tl_rows rows,
                          const int *programs, int count, const tl_model_group *group,
                          tl_report_card *out, tl_diag *diag);

/* cost_print.c */
void tl_lesson_print(const tl_lesson *lesson);
void tl_written_print(const tl_lesson *lesson, const char *path, tl_cost_model *model);
void tl_card_print(const tl_lesson *lesson, const char *name, uint64_t seed,
                   const tl_report_card *card);

#endif
