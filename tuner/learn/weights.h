/* tuner/learn/weights.h: the numbers of a network: named arrays in one block, with their gradients, and Adam's
 * steps over them.
 *
 *     tl_weights w = { 0 };
 *     int encoder = tl_weights_add(&w, TL_WEIGHTS_MATRIX, 128, 64, "encoder");    declared first
 *     tl_weights_allocate(&w); tl_weights_draw(&w, &random);
 *     w.value + w.slices[encoder].at */
#ifndef TL_TUNER_LEARN_WEIGHTS_H
#define TL_TUNER_LEARN_WEIGHTS_H
#include <stdbool.h>
#include <stddef.h>
#include "runtime/base/random.h"

/* How an array begins, and whether it decays. */
typedef enum {
    TL_WEIGHTS_MATRIX, /* drawn by its rows and columns (Glorot and Bengio 2010); decays */
    TL_WEIGHTS_ZERO,
    TL_WEIGHTS_ONE,
    TL_WEIGHTS_FIXED, /* not trained: centres and scales of inputs, which are set; zeros at first */
} tl_weights_kind;

enum { TL_WEIGHTS_NAME = 48 };
typedef struct {
    char name[TL_WEIGHTS_NAME];
    tl_weights_kind kind;
    int rows, columns;
    size_t at;
} tl_weights_slice;

typedef struct {
    int count, capacity;
    tl_weights_slice *slices;
    size_t size;             /* of all */
    float *value, *gradient; /* NULL: not allocated */
    float *first, *second;   /* moments of gradients; NULL: nothing was trained yet */
    bool failed;             /* no memory while arrays were declared */
} tl_weights;

/* The number of the new array. */
int tl_weights_add(tl_weights *w, tl_weights_kind kind, int rows, int columns, const char *format,
                   ...) __attribute__((format(printf, 5, 6)));
bool tl_weights_allocate(tl_weights *w);         /* false: no memory */
bool tl_weights_allocate_moments(tl_weights *w); /* zeros */
void tl_weights_free(tl_weights *w);
void tl_weights_draw(tl_weights *w, tl_random *random);
float *tl_weights_of(const tl_weights *w, int slice);
float *tl_weights_gradient_of(const tl_weights *w, int slice);
void tl_weights_forget_gradients(tl_weights *w);

/* Scales the gradients of all arrays so that their norm is at most `most`; the norm before. */
double tl_weights_clip(tl_weights *w, double most);
/* One step of Adam (Kingma and Ba 2015) with weights that decay beside it (Loshchilov and Hutter 2019); step counts
 * from 1. */
void tl_weights_step(tl_weights *w, int64_t step, double rate, double decay);
bool tl_weights_are_numbers(const tl_weights *w);

#endif
