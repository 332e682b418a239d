/* tuner/learn/functions.h: exponentials of many floats at once: the same bits on every machine, without a library's. */
#ifndef TL_TUNER_LEARN_FUNCTIONS_H
#define TL_TUNER_LEARN_FUNCTIONS_H

/* x[i] = exp(x[i]), to two units in the last place; below -87 the least normal number's neighbourhood, above 88
 * that of the largest. */
void tl_exp_floats(float *x, int count);

/* The Gaussian error linear unit, by its usual approximation x / (1 + exp(-1.5958 (x + 0.044715 x^3))); and its
 * derivative. */
void tl_gelu_floats(const float *x, float *out, int count);
void tl_gelu_slopes(const float *x, float *out, int count);

#endif
