/* tuner/learn/losses.h: what is wrong with predictions of one group (the measured programs of a task), and in which
 * direction. All add the loss's derivatives to d_mean and d_spread and return the loss, a sum over the group. */
#ifndef TL_TUNER_LEARN_LOSSES_H
#define TL_TUNER_LEARN_LOSSES_H

typedef struct {
    int count;
    const float *mean,
        *spread; /* predicted: of the label, up to a constant of the group; log of the variance */
    const float *label; /* INFINITY: worse than any */
    const float *error; /* standard errors of labels */
    const float *weight;
    float *d_mean, *d_spread;
} tl_loss_group;

/* Likelihood of the labels, normal with the variance that was predicted and the label's own, up to the constant of
 * the group that fits best; beyond three deviations linear (Huber 1964). *constant: labels minus means, on the
 * average. */
double tl_loss_likelihood(const tl_loss_group *group, double *constant);
/* How badly the group is ordered (Burges 2010, LambdaRank): of each pair, log(1 + exp(-difference)) where the
 * better should be ahead, weighted by what their exchange does to the gain of the list, which the first places
 * decide, plus `even` for all pairs alike; pairs whose labels differ by less than their errors weigh less. */
double tl_loss_rank(const tl_loss_group *group, double weight, double even);

#endif
