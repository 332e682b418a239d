/* frontend/import/import_attention.h: the parts that ONNX's attention and those of com.microsoft are made of. */
#ifndef TL_FRONTEND_ONNX_IMPORT_ATTENTION_H
#define TL_FRONTEND_ONNX_IMPORT_ATTENTION_H
#include "frontend/import/import_rules.h"

typedef struct {
    tl_value *q, *k, *v; /* [B, heads, S, size] */
    tl_value *bias;      /* added to the scores, or NULL */
    /* [heads] or one: a score more, which takes its share and brings nothing; or NULL */
    tl_value *sink;
    double scale, softcap;
    tl_dtype softmax; /* what softmax computes in */
} tl_attention;

typedef struct {
    tl_value *cosine, *sine, *positions; /* positions NULL: the caches hold a row for each */
    int64_t size;                        /* of the first elements of a head, which turn */
    bool interleaved;
} tl_rotation;

/* [B, S, heads * size] as [B, heads, S, size]; of four axes already: as it is. */
tl_status tl_onnx_split_heads(tl_onnx_call *c, tl_value *x, int64_t heads, tl_value **out);
/* [B, heads, S, size] as [B, S, heads * size]. */
tl_value *tl_onnx_join_heads(tl_onnx_call *c, tl_value *x);
/* past behind, present in front: [B, heads, past + S, size]. */
tl_status tl_onnx_append_past(tl_onnx_call *c, tl_value *past, tl_value **x);
/* `bias` (NULL: none) with `number` added where `hidden` is true. */
tl_value *tl_onnx_add_hidden(tl_onnx_call *c, tl_value *bias, tl_value *hidden, tl_dtype dtype,
                             double number);
/* Queries, keys and values fit together. */
tl_status tl_onnx_check_attention(tl_onnx_call *c, const tl_attention *a);
/* softmax(cap(q k^T) + bias) v; `shown` gets what qk_matmul_output_mode asks for. */
tl_status tl_onnx_attend(tl_onnx_call *c, const tl_attention *a, int64_t mode, tl_value **out,
                         tl_value **shown);
/* [B, heads, S, size] turned by the angles of its positions. */
tl_status tl_onnx_rotate(tl_onnx_call *c, tl_value *x, const tl_rotation *how, tl_value **out);

#endif
