/* tuner/search/space.h: all schedules of a task that the sketch rules can make.
 *
 * A point of the space is a lowering and an answer to each decision that its sketch asks for (schedule/decide.h); which
 * decisions there are depends on those before them. Building a point runs the sketch rules and gives a trace like any
 * other, plain text that replays without this space. Its first line is a comment that names the point
 *
 *     # point: winograd_f2 conv.columns=3 conv.rows=8 conv.prefetch=8
 *
 * so that a record can be a seed again. The default schedule of each lowering is the point where no answer differs from
 * the analytic model's. Different points may come to the same program: compare the hashes. */
#ifndef TL_TUNER_SEARCH_SPACE_H
#define TL_TUNER_SEARCH_SPACE_H
#include "ir/program/program.h"
#include "ir/program/target.h"
#include "runtime/base/random.h"
#include "schedule/decide.h"
#include "tuner/measure/measure.h"

typedef struct tl_space tl_space;

typedef enum {
#define SPACE(name, text, schedule, mark, revision, words) TL_SPACE_##name,
#include "tuner/search/spaces.def"
#undef SPACE
    TL_SPACE_KIND_COUNT
} tl_space_kind;

typedef struct {
    const char *name, *words;
    int revision;
} tl_space_info;
extern const tl_space_info tl_space_infos[TL_SPACE_KIND_COUNT];
bool tl_space_kind_from_text(const char *text, tl_space_kind *out);

typedef struct {
    int lowering; /* index in the task's */
    int count;
    const tl_decision *decisions; /* in the order in which they were met */
} tl_point;

/* What a caller asks for: a decision that is not named takes the analytic model's option; one whose value is not on
 * offer the nearest that is. */
typedef struct {
    const char *name;
    int64_t value;
} tl_wish;

/* A point that was built. Everything lives in the arena that the builder was given. */
typedef struct {
    tl_point point;
    const char *trace;
    const tl_program *program; /* scheduled */
    char hash[17];             /* its structure: hex digits of tl_program_hash */
} tl_variant;

/* Parses the task's lowerings. Everything lives in `arena`, as long as the space; `task` and `target` are not copied.
 * threads: that the kernels run on. On a single one parallel loops are as fast as others: which loops are parallel stays
 * as the analytic model has it, and is no decision. (Of 100 trials of a convolution with four halos 37 were different but
 * for that.) */
tl_status tl_space_create(tl_arena *arena, const tl_measure_task *task, const tl_target *target,
                          int threads, tl_space_kind kind, tl_space **out, tl_diag *diag);
tl_space_kind tl_space_kind_of(const tl_space *space);
const tl_measure_task *tl_space_task(const tl_space *space);
const tl_target *tl_space_target(const tl_space *space);
int tl_space_threads(const tl_space *space);
const tl_program *tl_space_program(const tl_space *space, int lowering); /* naive */

/* All of these build one point, in `arena`; TL_ILLEGAL_SCHEDULE when there is no such schedule after all. */
tl_status tl_space_build(const tl_space *space, tl_arena *arena, int lowering,
                         const tl_wish *wishes, int wish_count, tl_variant *out, tl_diag *diag);
/* Every decision, the lowering first, drawn with equal chances. */
tl_status tl_space_sample(const tl_space *space, tl_arena *arena, tl_random *random,
                          tl_variant *out, tl_diag *diag);

/* How many points a lowering has: counted when an estimate says that there are few, else that estimate: the mean product of
 * the numbers of options along random descents (Knuth 1975). Builds a few hundred points at most. */
typedef struct {
    double points;
    bool exact;
} tl_space_size;
tl_status tl_space_count(const tl_space *space, int lowering, uint64_t seed, tl_space_size *out,
                         tl_diag *diag);

tl_point tl_point_copy(tl_arena *arena, const tl_point *point);
void tl_point_print(const tl_space *space, const tl_point *point, tl_text *out);
/* Of which space a trace's first line names a point, and how many characters its mark has; false: it names none. */
bool tl_point_kind(const char *trace, tl_space_kind *kind, size_t *mark);
/* Reads the first line of a trace that tl_space_build made of a space of this kind. False: it names no point of this space's
 * lowerings. */
bool tl_point_read(const tl_space *space, tl_arena *arena, const char *trace, int *lowering,
                   tl_wish **wishes, int *wish_count);

#endif
