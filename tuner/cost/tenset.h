/* tuner/cost/tenset.h: the field's features: 164 numbers of each buffer that a program writes, as TenSet (Zheng et
 * al., NeurIPS 2021 Datasets) and all that build on it take them, for comparisons with what was published. Ours are
 * in features.h.
 *
 * Exact means: the same numbers as its extractor gives for the same loops, its errors included, so that a model of
 * theirs can be trained as they did. tuner/COSTMODEL.md lists those errors, and the few places where the two kinds of
 * programs differ. */
#ifndef TL_TUNER_COST_TENSET_H
#define TL_TUNER_COST_TENSET_H
#include "ir/program/program.h"

#define TENSET_STATEMENT(name, kind, text, words) TL_TENSET_##name,
#define TENSET_ACCESS(name, kind, text, words)
#define TENSET_SCOPE(name, kind, text, words)
enum {
#include "tuner/cost/tenset.def"
    TL_TENSET_STATEMENT_WIDTH,
};
#undef TENSET_STATEMENT
#undef TENSET_ACCESS
#undef TENSET_SCOPE
#define TENSET_ACCESS(name, kind, text, words) TL_TENSET_ACCESS_##name,
enum {
#include "tuner/cost/tenset.def"
    TL_TENSET_ACCESS_WIDTH,
};
#undef TENSET_ACCESS
#define TENSET_SCOPE(name, kind, text, words) TL_TENSET_SCOPE_##name,
enum {
#include "tuner/cost/tenset.def"
    TL_TENSET_SCOPE_WIDTH,
};
#undef TENSET_SCOPE
enum {
    TL_TENSET_ACCESSES = 5,
    TL_TENSET_CURVE = 10,
    TL_TENSET_FIRST_ACCESS = TL_TENSET_STATEMENT_WIDTH,
    TL_TENSET_FIRST_CURVE = TL_TENSET_FIRST_ACCESS + TL_TENSET_ACCESSES * TL_TENSET_ACCESS_WIDTH,
    TL_TENSET_FIRST_SCOPE = TL_TENSET_FIRST_CURVE + TL_TENSET_CURVE,
    TL_TENSET_WIDTH = TL_TENSET_FIRST_SCOPE + TL_TENSET_SCOPE_WIDTH,
    /* The operator's tags, which their networks have behind each row; the last is always 0. */
    TL_TENSET_TAGS = 10,
};

/* Rows of TL_TENSET_WIDTH numbers, in `arena`; how many: one a buffer that is written, in the order of the first
 * stores. */
int tl_tenset_features_of(tl_arena *arena, const tl_program *program, const float **rows);
void tl_tenset_name(int column,
                    char out[48]); /* "float_mad", "B0.bytes", "arith_intensity_curve_3" */
/* What the naive program of a lowering is made of: maxima, minima, sums, convolution, ... (tenset_tags.c). */
void tl_tenset_tags_of(const tl_program *naive, const char *family, const char *lowering,
                       float out[TL_TENSET_TAGS]);

#endif
