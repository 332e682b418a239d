/* tuner/search/surrogate.h: a Gaussian process over the points of a space: what a point that was not measured may take, from
 * those that were, and how sure that is.
 *
 * It sees decisions and not programs, so that a point costs microseconds and need not be built. Points are alike when their
 * answers are: k(a, b) = exp(-sum over decisions of weight x distance), where the distance of two options grows with
 * their places and levels off at 1; 0 is at 1 from all others. Weights, one a decision's name, are fitted to the
 * likelihood of what was measured; so decisions that do not matter are soon ignored. */
#ifndef TL_TUNER_SEARCH_SURROGATE_H
#define TL_TUNER_SEARCH_SURROGATE_H
#include "tuner/search/space.h"

/* GUESSES: of so many cost models at once. */
enum { TL_SURROGATE_POINTS = 160, TL_SURROGATE_NAMES = 64, TL_SURROGATE_GUESSES = 5 };

typedef struct tl_surrogate tl_surrogate;
/* It gets `guesses` of each point, at most TL_SURROGATE_GUESSES. NULL: no memory. */
tl_surrogate *tl_surrogate_create(int guesses);
void tl_surrogate_destroy(tl_surrogate *s);
/* Forgets the points, not the weights. */
void tl_surrogate_clear(tl_surrogate *s);
/* A measured point: the logarithm of its time, and what cheap models had guessed of it, each in a unit of its own: the process is
 * about what is left when each guess, times a slope of its own that is fitted, is taken away. A model that is wrong gets the
 * slope 0, and of two that say the same each gets a half. `guesses` may be NULL when there are none. False: it is full. */
bool tl_surrogate_add(tl_surrogate *s, const tl_point *point, double log_time,
                      const double *guesses);
/* The slopes, of a process that was solved: how much each model is believed. */
const double *tl_surrogate_slopes(const tl_surrogate *s);
void tl_surrogate_fit_weights(tl_surrogate *s);
/* After points were added. False: nothing to go by. */
bool tl_surrogate_solve(tl_surrogate *s);
/* By how much, on average, the point will be better than the best known, in units of log time; 0 or more. 0 also when it is
 * certainly not more than `least`, which saves time. */
double tl_surrogate_gain(const tl_surrogate *s, const tl_point *point, const double *guesses,
                         double least);
/* The same of an idea, a point that was not built: it may have answers which are not asked for beside the others, as far as
 * the known points tell. They do not count. */
double tl_surrogate_hope(const tl_surrogate *s, const tl_point *idea, double least);
/* Adds a point that is being measured as if it came out as expected, so that the next choice is another one. */
void tl_surrogate_expect(tl_surrogate *s, const tl_point *point, const double *guesses);

#endif
