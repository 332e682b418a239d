/* tuner/search/catalog.h: every different program of a task's space that a search has met, built at most once.
 *
 * Points are recognised by their answers before they are built, programs by their structural hash afterwards: points
 * that come to the same program are one entry, the first that was met. Entries are numbered from 0 in the order in
 * which they were met and keep their number. */
#ifndef TL_TUNER_SEARCH_CATALOG_H
#define TL_TUNER_SEARCH_CATALOG_H
#include "tuner/search/space.h"

typedef struct tl_catalog tl_catalog;

typedef enum {
    TL_ENTRY_NEW,      /* never proposed */
    TL_ENTRY_PROPOSED, /* its result has not come */
    TL_ENTRY_RIGHT,    /* it has a time */
    TL_ENTRY_WRONG,    /* it failed, whatever the reason */
} tl_entry_state;

enum { TL_ENTRY_EXPECTATIONS = 4 };

typedef struct {
    tl_point point;
    uint64_t program; /* the structural hash */
    tl_entry_state state;
    double score_ns;  /* of RIGHT ones */
    bool expanded;    /* all its neighbours are entries (tl_catalog_expand) */
    const char *axis; /* the decision whose step led here in a descent; NULL: none */
    int direction;    /* of that step, in options */
    bool recorded;    /* it was in a record */
    int row_count;
    char *trace; /* kept as long as the rows; NULL: to be built again */
    float *rows; /* features (tuner/cost/features.h); NULL: without, or forgotten */
    float expected[TL_ENTRY_EXPECTATIONS]; /* what experts say of it: the logarithm of its time */
    bool is_expected;                      /* they were asked */
    float score; /* what a model said of it last, and which state of the model that was; 0: none */
    int scored_by;
} tl_entry;

enum { TL_NO_ENTRY = -1 };

/* The space must outlive the catalog. `features`: entries get rows when they are met, for kernels on as many threads as
 * the space is for. NULL: no memory. */
tl_catalog *tl_catalog_create(const tl_space *space, bool features);
void tl_catalog_destroy(tl_catalog *catalog);
int tl_catalog_count(const tl_catalog *catalog);
tl_entry *tl_catalog_at(tl_catalog *catalog, int entry);          /* until the next entry is met */
int tl_catalog_find(const tl_catalog *catalog, uint64_t program); /* TL_NO_ENTRY: not met */

/* Whatever comes to this program is in that state from the start: it was tried before. */
void tl_catalog_know(tl_catalog *catalog, uint64_t program, tl_entry_state state, double score_ns);

/* Each returns an entry, new or met before; TL_NO_ENTRY when the sketch rules refuse the point. Memory that runs out is
 * a refusal, too, and shows in tl_catalog_failed. */
int tl_catalog_build(tl_catalog *catalog, int lowering, const tl_wish *wishes, int wish_count);
/* The point's answers as wishes. */
int tl_catalog_build_point(tl_catalog *catalog, const tl_point *point);
/* Whether these answers were built before; then *entry is what came of it, or TL_NO_ENTRY. */
bool tl_catalog_met(const tl_catalog *catalog, const tl_point *point, int *entry);
int tl_catalog_sample(tl_catalog *catalog, tl_random *random);
int tl_catalog_step(tl_catalog *catalog, int from, int decision, int64_t value);
/* Every entry that differs from one in a single answer becomes known. */
void tl_catalog_expand(tl_catalog *catalog, int entry);
/* Its trace, in `arena`; built again when it was not kept. */
tl_status tl_catalog_trace(tl_catalog *catalog, int entry, tl_arena *arena, const char **trace,
                           tl_diag *diag);

/* Makes the rows of an entry again when they were forgotten; false: no memory. */
bool tl_catalog_rows(tl_catalog *catalog, int entry);
/* Forgets the rows of NEW entries when all rows together take more than that. */
void tl_catalog_forget(tl_catalog *catalog, int64_t bytes);

bool tl_catalog_failed(const tl_catalog *catalog);    /* memory ran out */
int64_t tl_catalog_builds(const tl_catalog *catalog); /* how many points were built */

#endif
