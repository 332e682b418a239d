/* tuner/cost/network_state.c: where training stands between two steps, in a file: a line that says of which lesson
 * it is, with the digest of the rest; the state's numbers; then weights, moments and the best weights so far. It is
 * written by the program that reads it, on the same machine, and is not carried elsewhere: what does not fit
 * exactly is no checkpoint. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/cost/network.h"

/* --- of which lesson -------------------------------------------------------------------------------------------------- */

static void add(tl_digest *d, const void *bytes, size_t size)
{
    const uint64_t sum = bytes != NULL ? tl_checksum(bytes, size) : 0;
    tl_digest_add(d, &sum, sizeof sum);
}

static void add_samples(tl_digest *d, const tl_cost_samples *s)
{
    const size_t count = (size_t)s->count;
    const int sizes[] = { s->count, s->task_count, s->domain_count };
    add(d, sizes, sizeof sizes);
    add(d, s->task, sizeof *s->task * count);
    add(d, s->label, sizeof *s->label * count);
    add(d, s->error, sizeof *s->label * count);
    add(d, s->weight, sizeof *s->label * count);
    for (int p = 0; p < s->count; p++) {
        if (s->first_row != NULL)
            add(d, s->rows + (size_t)s->first_row[p] * (size_t)s->shape.row.width,
                sizeof *s->rows * (size_t)s->row_count[p] * (size_t)s->shape.row.width);
        if (s->first_decision != NULL)
            add(d, s->decisions + (size_t)s->first_decision[p] * (size_t)s->shape.decision.width,
                sizeof *s->decisions * (size_t)s->decision_count[p] *
                    (size_t)s->shape.decision.width);
    }
    add(d, s->workloads, sizeof(float) * (size_t)s->task_count * (size_t)s->shape.workload.width);
    add(d, s->machines, sizeof(float) * (size_t)s->domain_count * (size_t)s->shape.machine.width);
}

uint64_t tl_network_lesson(const tl_cost_network *n, const tl_cost_samples *samples,
                           const tl_train_options *o)
{
    tl_digest d;
    const double numbers[] = { o->rate, o->decay, o->clip, o->rank, o->absolute };
    const int counts[] = { o->epochs, o->batch, o->patience };
    tl_digest_start(&d);
    tl_digest_add(&d, n->net->type->name, strlen(n->net->type->name));
    tl_digest_add(&d, n->settings, sizeof n->settings);
    tl_digest_add(&d, &n->model.seed, sizeof n->model.seed);
    tl_digest_add(&d, &n->model.shape, sizeof n->model.shape);
    tl_digest_add(&d, numbers, sizeof numbers);
    tl_digest_add(&d, counts, sizeof counts);
    /* weights at the beginning: of who adapts they are what it knows */
    add(&d, n->weights.value, sizeof(float) * n->weights.size);
    add_samples(&d, samples);
    return d.a ^ d.b;
}

/* --- files ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t step;
    int32_t epoch, batch, stale, unused;
    double loss, held_out, least, sum, weight;
} fixed_state;

static void first_line(uint64_t lesson, const void *bytes, size_t size, tl_text *out)
{
    tl_digest digest;
    char digits[33];
    tl_digest_start(&digest);
    tl_digest_add(&digest, bytes, size);
    tl_digest_text(&digest, digits);
    tl_text_format(out, "tilth training state 1 lesson %016llx content %s\n",
                   (unsigned long long)lesson, digits);
}

tl_status tl_network_save_state(const tl_cost_network *n, const tl_network_state *s,
                                uint64_t lesson, const char *path, tl_diag *diag)
{
    const size_t size = sizeof(float) * n->weights.size;
    const fixed_state fixed = { s->step, s->epoch,    s->batch, s->stale, 0,
                                s->loss, s->held_out, s->least, s->sum,   s->weight };
    tl_text body = { 0 }, file = { 0 };
    tl_text_add_bytes(&body, &fixed, sizeof fixed);
    tl_text_add_bytes(&body, n->weights.value, size);
    tl_text_add_bytes(&body, n->weights.first, size);
    tl_text_add_bytes(&body, n->weights.second, size);
    tl_text_add_bytes(&body, s->best, size);
    if (!body.failed) {
        first_line(lesson, body.data, body.size, &file);
        tl_text_add_bytes(&file, body.data, body.size);
    }
    tl_status status = body.failed || file.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                                  : tl_file_write(path, file.data, file.size, diag);
    tl_text_free(&body);
    tl_text_free(&file);
    return status;
}

static bool read_state(tl_cost_network *n, tl_network_state *s, uint64_t lesson,
                       const tl_text *file)
{
    const size_t size = sizeof(float) * n->weights.size;
    const char *end = file->size > 0 ? memchr(file->data, '\n', file->size) : NULL;
    if (end == NULL)
        return false;
    const size_t head = (size_t)(end - file->data) + 1;
    const char *at = end + 1;
    tl_text line = { 0 };
    first_line(lesson, at, file->size - head, &line);
    const bool sound = !line.failed && line.size == head &&
                       memcmp(line.data, file->data, head) == 0 &&
                       file->size - head == sizeof(fixed_state) + 4 * size;
    tl_text_free(&line);
    if (!sound)
        return false;
    fixed_state fixed;
    memcpy(&fixed, at, sizeof fixed);
    at += sizeof fixed;
    memcpy(n->weights.value, at, size);
    memcpy(n->weights.first, at + size, size);
    memcpy(n->weights.second, at + 2 * size, size);
    memcpy(s->best, at + 3 * size, size);
    *s = (tl_network_state){ fixed.step,  fixed.epoch, fixed.batch,  fixed.loss,  fixed.held_out,
                             fixed.least, fixed.sum,   fixed.weight, fixed.stale, s->best };
    return true;
}

tl_status tl_network_load_state(tl_cost_network *n, tl_network_state *s, uint64_t lesson,
                                const char *path, bool *found, tl_diag *diag)
{
    tl_text file = { 0 };
    *found = false;
    const tl_status status = tl_file_read(path, &file, diag);
    if (status == TL_BAD_ARGUMENT) /* there is none yet */
        return path[0] != '\0' ? TL_OK : status;
    if (status == TL_OK)
        *found = read_state(n, s, lesson, &file);
    tl_text_free(&file);
    return status;
}
