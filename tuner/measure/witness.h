/* tuner/measure/witness.h: small loops whose speed tells whether the machine is disturbed. */
#ifndef TL_TUNER_MEASURE_WITNESS_H
#define TL_TUNER_MEASURE_WITNESS_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/device/pool.h"

typedef struct tl_witness tl_witness;
tl_witness *tl_witness_create(void); /* NULL: no memory; lives as long as the process */
/* Samples (in about 2 ms), when the last sample is `age_ns` old; true when every witness is near its best of late.
 * A NULL witness is always calm. */
bool tl_witness_is_calm(tl_witness *w, tl_pool *pool, int64_t age_ns);
/* Whether nobody else is on this core now (on another hyperthread of it): looks for some 7 us. */
bool tl_witness_is_alone(tl_witness *w);
/* What that is compared with, in a unit of the witness's own: what an earlier one of this machine knew; 0: nothing is known,
 * and it looks for a twentieth of a second. */
void tl_witness_learn_solitude(tl_witness *w, double least);
double tl_witness_solitude(const tl_witness *w);
void tl_witness_accept(tl_witness *w); /* what it is now is what is to be had */
void tl_witness_best(const tl_witness *w, double *peak_gflops, double *l2_gflops, double *copy_gbs);

#endif
