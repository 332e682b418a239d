/* driver/reduce/draft.h: a model that is being edited: the unpacked file in an arena of its own. What an edit takes away is
 * left lying in the arena; tl_draft_tidy drops what nobody needs any more. */
#ifndef TL_DRIVER_REDUCE_DRAFT_H
#define TL_DRIVER_REDUCE_DRAFT_H
#include <stdbool.h>
#include <stdint.h>
#include "frontend/onnx.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/map.h"
#include "runtime/base/text.h"

typedef struct {
    tl_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
} tl_draft;

/* In an arena that is guarded. False: these bytes are no model. */
bool tl_draft_read(tl_arena *arena, const tl_text *bytes, tl_draft *out);
/* False: no memory, or more than a file holds. Free `out`. */
bool tl_draft_write(const tl_draft *d, tl_text *out);
/* Drops nodes that no output needs, weights, inputs, declarations and functions that no node reads, and what is not part of the
 * format that tilth reads (documentation). */
void tl_draft_tidy(tl_draft *d);

/* `visit` for every name that a node reads, those in its graphs included; it may change it. */
typedef void tl_read_visitor(char **name, void *user);
void tl_draft_reads(Onnx__NodeProto *node, tl_read_visitor *visit, void *user);
/* Puts every name that a node reads into the map. */
void tl_draft_collect_reads(Onnx__NodeProto *node, tl_map *names);

/* What is known of a tensor: the model's declarations, or its weights. */
typedef struct {
    int elem_type;  /* of ONNX; 0: not known */
    tl_dtype dtype; /* TL_DTYPE_COUNT: none of tilth's */
    int rank;
    int64_t dims[8], elements;
} tl_draft_type;
/* False: its dtype or an extent is not known. */
bool tl_draft_find_type(const tl_draft *d, const char *name, tl_draft_type *out);
bool tl_draft_weight_type(const Onnx__TensorProto *t, tl_draft_type *out);
/* The numbers of a tensor as they lie in memory; NULL: they are kept in another way. */
const void *tl_draft_numbers(const Onnx__TensorProto *t, const tl_draft_type *type);

Onnx__ValueInfoProto *tl_draft_declare(tl_draft *d, const char *name, const tl_draft_type *type);
/* With memory for its numbers, zeros. */
Onnx__TensorProto *tl_draft_tensor(tl_draft *d, const char *name, const tl_draft_type *type);
/* Numbers that depend on the name alone, so that nobody has to keep them: floats of that mean and deviation, not below zero when
 * `positive`; ones of any other dtype. */
void tl_draft_fill(Onnx__TensorProto *t, const tl_draft_type *type, double mean, double deviation,
                   bool positive);

/* One more pointer in a list of the draft, which is copied. */
void *tl_draft_appended(tl_draft *d, const void *list, size_t count, void *item);
#define TL_DRAFT_APPEND(d, list, count, item)                     \
    do {                                                          \
        (list) = tl_draft_appended((d), (list), (count), (item)); \
        (count)++;                                                \
    } while (0)

static inline const char *tl_draft_name(const char *name)
{
    return name != NULL ? name : "";
}
#endif
