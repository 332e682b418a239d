/* tuner/learn/weights.c: the numbers of a network, and Adam. */
#include "tuner/learn/weights.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"

static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

int tl_weights_add(tl_weights *w, tl_weights_kind kind, int rows, int columns, const char *format,
                   ...)
{
    if (!TL_HEAP_ROOM(w->slices, w->count, w->capacity)) {
        w->failed = true;
        return 0;
    }
    tl_weights_slice *s = &w->slices[w->count];
    *s = (tl_weights_slice){ .kind = kind, .rows = rows, .columns = columns, .at = w->size };
    va_list args;
    va_start(args, format);
    vsnprintf(s->name, sizeof s->name, format, args);
    va_end(args);
    w->size += (size_t)rows * (size_t)columns;
    return w->count++;
}

bool tl_weights_allocate(tl_weights *w)
{
    w->value = calloc(w->size + 1, sizeof *w->value);
    w->gradient = calloc(w->size + 1, sizeof *w->gradient);
    return !w->failed && w->value != NULL && w->gradient != NULL;
}

bool tl_weights_allocate_moments(tl_weights *w)
{
    free(w->first);
    free(w->second);
    w->first = calloc(w->size + 1, sizeof *w->first);
    w->second = calloc(w->size + 1, sizeof *w->second);
    return w->first != NULL && w->second != NULL;
}

void tl_weights_free(tl_weights *w)
{
    free(w->slices);
    free(w->value);
    free(w->gradient);
    free(w->first);
    free(w->second);
    *w = (tl_weights){ 0 };
}

float *tl_weights_of(const tl_weights *w, int slice)
{
    return w->value + w->slices[slice].at;
}

float *tl_weights_gradient_of(const tl_weights *w, int slice)
{
    return w->gradient + w->slices[slice].at;
}

void tl_weights_forget_gradients(tl_weights *w)
{
    memset(w->gradient, 0, sizeof *w->gradient * w->size);
}

static size_t size_of(const tl_weights_slice *s)
{
    return (size_t)s->rows * (size_t)s->columns;
}

void tl_weights_draw(tl_weights *w, tl_random *random)
{
    for (int i = 0; i < w->count; i++) {
        const tl_weights_slice *s = &w->slices[i];
        const double most = sqrt(6.0 / (s->rows + s->columns));
        float *value = tl_weights_of(w, i);
        for (size_t j = 0; j < size_of(s); j++)
            value[j] = s->kind == TL_WEIGHTS_MATRIX
                           ? (float)(most * (2 * tl_random_unit(random) - 1))
                           : (float)(s->kind == TL_WEIGHTS_ONE);
    }
}

double tl_weights_clip(tl_weights *w, double most)
{
    double sum = 0;
    for (size_t i = 0; i < w->size; i++)
        sum += (double)w->gradient[i] * (double)w->gradient[i];
    const double norm = sqrt(sum);
    if (norm > most) {
        const float scale = (float)(most / norm);
        for (size_t i = 0; i < w->size; i++)
            w->gradient[i] *= scale;
    }
    return norm;
}

static void step_slice(tl_weights *w, const tl_weights_slice *s, float rate, float correction,
                       float shrink)
{
    const float b1 = (float)beta1, b2 = (float)beta2, least = (float)epsilon;
    float *restrict value = w->value + s->at, *restrict first = w->first + s->at;
    float *restrict second = w->second + s->at;
    const float *restrict gradient = w->gradient + s->at;
    for (size_t i = 0; i < size_of(s); i++) {
        const float g = gradient[i];
        first[i] = b1 * first[i] + (1 - b1) * g;
        second[i] = b2 * second[i] + (1 - b2) * g * g;
        value[i] = value[i] * shrink - rate * first[i] / (sqrtf(second[i]) * correction + least);
    }
}

void tl_weights_step(tl_weights *w, int64_t step, double rate, double decay)
{
    const double first = 1 - pow(beta1, (double)step), second = 1 - pow(beta2, (double)step);
    for (int i = 0; i < w->count; i++) {
        const tl_weights_slice *s = &w->slices[i];
        if (s->kind != TL_WEIGHTS_FIXED)
            step_slice(w, s, (float)(rate / first), (float)(1 / sqrt(second)),
                       s->kind == TL_WEIGHTS_MATRIX ? (float)(1 - rate * decay) : 1);
    }
}

bool tl_weights_are_numbers(const tl_weights *w)
{
    for (size_t i = 0; i < w->size; i++)
        if (!isfinite(w->value[i]))
            return false;
    return true;
}
