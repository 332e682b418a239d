/* tuner/search/tokens.h: what a cost model is told beside the rows of a program: a token, a vector of numbers, for
 * each decision of the point, one for the workload, one for the machine. A point that was not built has its decisions
 * all the same.
 *
 * What is a name (of a block, a role, an operator, a lowering) is a code: numbers of +1 and -1 that are drawn from
 * the name, so that names of later tilths need no table, and the words of a family add up. The first decision of
 * every point is its lowering. */
#ifndef TL_TUNER_SEARCH_TOKENS_H
#define TL_TUNER_SEARCH_TOKENS_H
#include "ir/program/machine.h"
#include "tuner/cost/cost_samples.h"
#include "tuner/search/space.h"

typedef enum {
    TL_COST_TOKEN_DECISION,
    TL_COST_TOKEN_WORKLOAD,
    TL_COST_TOKEN_MACHINE,
    TL_COST_TOKEN_COUNT
} tl_cost_token;
int tl_cost_token_width(tl_cost_token kind);
void tl_cost_token_name(tl_cost_token kind, int column, char out[48]);

/* What of the task the tokens of its points ask for; in `arena`. */
typedef struct tl_tokens tl_tokens;
tl_tokens *tl_tokens_create(tl_arena *arena, const tl_space *space);

/* Decisions of a point of the space: tokens in `arena`; how many. */
int tl_tokens_of_point(const tl_tokens *tokens, tl_arena *arena, const tl_point *point,
                       const float **out);
/* Fills the workload's token; family: words with "_" between them. */
void tl_cost_token_of_workload(const tl_tokens *tokens, const char *family, double flops,
                               double bytes, float *out);
/* Fills the machine's token: of the target with its profile. */
void tl_cost_token_of_machine(const tl_target *target, float *out);

/* Our rows with these tokens, as models of points take them. */
tl_sample_shape tl_sample_shape_of_points(void);

#endif
