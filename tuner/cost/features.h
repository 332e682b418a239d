/* tuner/cost/features.h: a scheduled program in numbers, for cost models: one row for each store of its body, in program order,
 * as in features.def, features_access.def (five times) and an intensity curve: the FLOP per byte of what is inside the
 * innermost loops that do 1/10, 2/10 ... 10/10 of the statement's arithmetic. The same program and target give the same
 * bits. */
#ifndef TL_TUNER_COST_FEATURES_H
#define TL_TUNER_COST_FEATURES_H
#include "ir/program/program.h"
#include "ir/program/target.h"

enum {
#define FEATURE(name, kind, words) TL_FEATURE_##name,
#include "tuner/cost/features.def"
#undef FEATURE
    TL_FEATURE_SCALARS,
};
enum {
#define ACCESS(name, kind, words) TL_ACCESS_##name,
#include "tuner/cost/features_access.def"
#undef ACCESS
    TL_ACCESS_WIDTH,
};
enum {
    TL_FEATURE_ACCESSES = 5,
    TL_FEATURE_CURVE = 10,
    TL_FEATURE_FIRST_ACCESS = TL_FEATURE_SCALARS,
    TL_FEATURE_FIRST_CURVE = TL_FEATURE_FIRST_ACCESS + TL_FEATURE_ACCESSES * TL_ACCESS_WIDTH,
    TL_FEATURE_WIDTH = TL_FEATURE_FIRST_CURVE + TL_FEATURE_CURVE,
};

/* Rows of TL_FEATURE_WIDTH numbers, in `arena`; how many. */
int tl_features_of(tl_arena *arena, const tl_program *program, const tl_target *target,
                   const float **rows);
void tl_feature_name(int column, char out[48]); /* "cycles", "access1.lines", "intensity3" */
/* A magnitude as a row has it, and back. */
float tl_feature_log(double magnitude);
double tl_feature_unlog(float feature);

#endif
