/* frontend/lower/lower_attention_online.c: attention that never has a whole row of scores: a running maximum and a running sum
 * over blocks of keys (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
 *
 *     for each batch b, head h, block of rows i:      m = the least number, l = 0, acc = 0
 *       for each block of keys t:
 *         scores   s[i, j] = sum over d of q[i, d] * k[j, d]                    j in t
 *         masked   z[i, j] = scale*s + mask
 *         most     n[i]    = max over j of z
 *         shrink   c[i]    = exp(m - max(m, n))
 *         top      m[i]    = max(m, n)
 *         exp      p[i, j] = exp(z - m)
 *         part     w[i]    = sum over j of p
 *         attend   o[i, e] = sum over j of p * v[j, e]
 *         sum      l[i]    = l*c + w
 *         mix      acc[i, e] = acc*c + o
 *     value    acc * (1 / l)
 *
 * Between the products there are a block of rows and a block of keys, however long the rows are: a block of the keys and
 * one of the values stay in L1 for all its rows.
 *
 * Each c rounds the sums that it scales: T blocks later the terms of the first one have met T roundings of c and T of the
 * products with it, which add up as those of a sum do, like sqrt(2T). Sums over n terms are held to sqrt(n) roundings
 * (tl_program_error_bound), and T is n / 16 at most: twice that bound covers it. */
#include <float.h>
#include "frontend/lower/attention.h"
#include "frontend/lower/lower_private.h"
#include "runtime/base/checked.h"

enum {
    MOST_KEYS = 64,          /* in a block: with 64 features 16 KB each of keys and values */
    MOST_BLOCKS = 256,       /* that one accumulator takes one after the other: lower_sum.c */
    MOST_OF_ALL_KEYS = 1024, /* where there would be more blocks */
    LEAST_KEYS = 16,
    MOST_ROWS = 128,
    LEAST_BLOCKS = 3, /* of keys: a row of fewer is no longer than what a block of rows needs */
};

/* The largest divisor of n up to `most`. */
static int64_t divisor(int64_t n, int64_t most)
{
    int64_t best = 1;
    for (int64_t d = 1; d <= most && d <= n; d++)
        if (n % d == 0)
            best = d;
    return best;
}

/* How many keys are in a block: the largest divisor that suits the caches; of very many keys the least that leaves not too
 * many blocks. 0: there is none. */
static int64_t block_of_keys(int64_t columns)
{
    int64_t keys = divisor(columns, MOST_KEYS);
    if (columns <= MOST_KEYS * MOST_BLOCKS)
        return keys >= LEAST_KEYS && columns / keys <= MOST_BLOCKS ? keys : 0;
    for (keys = tl_ceildiv(columns, (int64_t)MOST_BLOCKS); keys <= MOST_OF_ALL_KEYS; keys++)
        if (columns % keys == 0)
            return keys;
    return 0;
}

bool tl_lowers_online(const tl_node *n)
{
    tl_attention_sizes z = tl_attention_sizes_of(n);
    return z.columns > (LEAST_BLOCKS - 1) * MOST_KEYS && block_of_keys(z.columns) > 0;
}

int64_t tl_online_rows(const tl_node *n)
{
    return divisor(tl_attention_sizes_of(n).rows, MOST_ROWS);
}

typedef struct {
    tl_lower *lower;
    tl_attention_sizes z;
    int64_t height, width;              /* rows and keys in a block */
    const tl_expr *b, *h, *rows, *keys; /* loops around the nests */
} job;

/* The iters of a nest over rows: all that the loops around it decide, and its own row. */
static tl_block_nest begin_rows(const job *j, const char *name, const tl_expr *at[4])
{
    tl_block_nest nest = tl_nest_begin(j->lower, name);
    at[0] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "b", j->z.batch, j->b, 0);
    at[1] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "h", j->z.heads, j->h, 0);
    at[2] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "i", j->z.rows,
                            tl_muli(tl_lower_arena(j->lower), j->rows, j->height), j->height);
    return nest;
}

/* The same with the block of keys, of one kind or the other. */
static tl_block_nest begin(const job *j, const char *name, tl_iter_kind t, const tl_expr *at[4])
{
    tl_block_nest nest = begin_rows(j, name, at);
    at[3] = tl_nest_iter_at(&nest, t, "t", j->z.columns / j->width, j->keys, 0);
    return nest;
}

/* Where a number of a row and a block of keys stands: rows side by side, at[] as of `begin`. */
static void in_block(const tl_expr *const at[4], const tl_expr *out[4])
{
    out[0] = at[0];
    out[1] = at[1];
    out[2] = at[3];
    out[3] = at[2];
}

/* A spatial iter along the keys of the block. */
static const tl_expr *key(const job *j, tl_block_nest *nest)
{
    const tl_expr *from = tl_muli(tl_lower_arena(j->lower), j->keys, j->width);
    return tl_nest_iter_at(nest, TL_ITER_SPATIAL, "j", j->z.columns, from, j->width);
}

/* A reduce iter along them: the key's number. */
static const tl_expr *sum_over_keys(const job *j, tl_block_nest *nest, const tl_expr *tile)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    const tl_expr *own = tl_nest_iter(nest, TL_ITER_REDUCE, "j", j->width);
    return tl_add(arena, tl_muli(arena, tile, j->width), own);
}

static void start(const job *j, const tl_view *most, const tl_view *sum, const tl_view *acc)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    tl_dtype dtype = most->buffer->dtype;
    const tl_expr *at[4];
    tl_block_nest nest = begin_rows(j, "start_top", at);
    /* no infinity: a difference of two would be no number */
    tl_nest_store(&nest, most, at, tl_float(arena, dtype, -(double)FLT_MAX));
    nest = begin_rows(j, "start_sum", at);
    tl_nest_store(&nest, sum, at, tl_float(arena, dtype, 0));
    nest = begin_rows(j, "start_mix", at);
    const tl_expr *e = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", j->z.width);
    tl_nest_store(&nest, acc, (const tl_expr *[]){ at[0], at[1], at[2], e },
                  tl_float(arena, dtype, 0));
}

/* p of a block of keys, and what m, l and acc are scaled by. */
static tl_view powers(const job *j, const tl_node *n, const tl_view *most, tl_view *shrink)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    tl_dtype dtype = most->buffer->dtype;
    tl_layout plain = tl_layout_plain();
    const tl_attention_sizes *z = &j->z;
    tl_shape matrix = tl_shape_of(4, (int64_t[]){ z->batch, z->heads, z->rows, z->columns });
    tl_shape tiles =
        tl_shape_of(4, (int64_t[]){ z->batch, z->heads, z->columns / j->width, z->rows });
    const tl_expr *at[4], *of[4];

    tl_view scores = tl_lower_local(l, "s", dtype, &matrix, &plain);
    tl_block_nest nest = begin_rows(j, "scores", at);
    at[3] = key(j, &nest);
    const tl_expr *d = tl_nest_iter(&nest, TL_ITER_REDUCE, "d", z->depth);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &scores, at, tl_attention_score(l, n, at, d));

    tl_view masked = tl_lower_local(l, "z", dtype, &matrix, &plain);
    nest = begin_rows(j, "masked", at);
    at[3] = key(j, &nest);
    tl_nest_store(&nest, &masked, at, tl_attention_masked(l, n, at, tl_view_load(l, &scores, at)));

    tl_view largest = tl_lower_local(l, "n", dtype, &tiles, &plain);
    nest = begin(j, "most", TL_ITER_SPATIAL, at);
    in_block(at, of);
    const tl_expr *element[4] = { at[0], at[1], at[2], sum_over_keys(j, &nest, at[3]) };
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &largest, of, tl_view_load(l, &masked, element));

    *shrink = tl_lower_local(l, "c", dtype, &tiles, &plain);
    nest = begin(j, "shrink", TL_ITER_SPATIAL, at);
    in_block(at, of);
    const tl_expr *before = tl_view_load(l, most, at);
    const tl_expr *after = tl_max(arena, before, tl_view_load(l, &largest, of));
    tl_nest_store(&nest, shrink, of,
                  tl_call1(arena, TL_FUNCTION_EXP, tl_sub(arena, before, after)));

    nest = begin(j, "top", TL_ITER_ORDERED, at);
    in_block(at, of);
    tl_nest_store(&nest, most, at,
                  tl_max(arena, tl_view_load(l, most, at), tl_view_load(l, &largest, of)));

    tl_view power = tl_lower_local(l, "p", dtype, &matrix, &plain);
    nest = begin_rows(j, "exp", at);
    at[3] = key(j, &nest);
    tl_nest_store(&nest, &power, at,
                  tl_call1(arena, TL_FUNCTION_EXP,
                           tl_sub(arena, tl_view_load(l, &masked, at), tl_view_load(l, most, at))));
    return power;
}

/* Adds a block of keys to l and acc. */
static void add_block(const job *j, const tl_node *n, const tl_view *power, const tl_view *shrink,
                      const tl_view *sum, const tl_view *acc)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    tl_dtype dtype = sum->buffer->dtype;
    tl_layout plain = tl_layout_plain();
    const tl_attention_sizes *z = &j->z;
    int64_t count = z->columns / j->width;
    tl_shape tiles = tl_shape_of(4, (int64_t[]){ z->batch, z->heads, count, z->rows });
    tl_shape mixed = tl_shape_of(5, (int64_t[]){ z->batch, z->heads, count, z->rows, z->width });
    const tl_expr *at[4], *of[4];

    tl_view part = tl_lower_local(l, "w", dtype, &tiles, &plain);
    tl_block_nest nest = begin(j, "part", TL_ITER_SPATIAL, at);
    in_block(at, of);
    const tl_expr *element[4] = { at[0], at[1], at[2], sum_over_keys(j, &nest, at[3]) };
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &part, of, tl_view_load(l, power, element));

    tl_view attended = tl_lower_local(l, "o", dtype, &mixed, &plain);
    nest = begin(j, "attend", TL_ITER_SPATIAL, at);
    const tl_expr *e = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", z->width);
    const tl_expr *from[4] = { at[0], at[1], at[2], sum_over_keys(j, &nest, at[3]) };
    const tl_expr *to[5] = { at[0], at[1], at[3], at[2], e };
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &attended, to,
                   tl_mul(arena, tl_view_load(l, power, from),
                          tl_attention_weight(l, n, at[0], from[3], at[1], e)));

    nest = begin(j, "sum", TL_ITER_ORDERED, at);
    in_block(at, of);
    tl_nest_store(&nest, sum, at,
                  tl_add(arena,
                         tl_mul(arena, tl_view_load(l, sum, at), tl_view_load(l, shrink, of)),
                         tl_view_load(l, &part, of)));

    nest = begin(j, "mix", TL_ITER_ORDERED, at);
    in_block(at, of);
    e = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", z->width);
    const tl_expr *whole[4] = { at[0], at[1], at[2], e };
    const tl_expr *block[5] = { at[0], at[1], at[3], at[2], e };
    tl_nest_store(&nest, acc, whole,
                  tl_add(arena,
                         tl_mul(arena, tl_view_load(l, acc, whole), tl_view_load(l, shrink, of)),
                         tl_view_load(l, &attended, block)));
}

void tl_stages_online(tl_lower *l, const tl_node *n)
{
    job j = { .lower = l, .z = tl_attention_sizes_of(n) };
    const tl_attention_sizes *z = &j.z;
    tl_dtype dtype = tl_accumulate_dtype(n->inputs[0]->dtype);
    tl_layout plain = tl_layout_plain();
    tl_shape row = tl_shape_of(3, (int64_t[]){ z->batch, z->heads, z->rows });
    tl_shape mixed = tl_shape_of(4, (int64_t[]){ z->batch, z->heads, z->rows, z->width });
    for (int i = 0; i < 3; i++)
        tl_lower_materialize(l, n->inputs[i]);
    tl_attention_name_axes(l, z);
    tl_view sum = tl_lower_local(l, "l", dtype, &row, &plain);
    tl_view acc = tl_lower_local(l, "acc", dtype, &mixed, &plain), shrink;
    j.height = tl_online_rows(n);
    j.width = block_of_keys(z->columns);
    j.b = tl_lower_loop_begin(l, "b", z->batch);
    j.h = tl_lower_loop_begin(l, "h", z->heads);
    j.rows = tl_lower_loop_begin(l, "r", z->rows / j.height);
    tl_view most = tl_lower_local(l, "m", dtype, &row, &plain);
    start(&j, &most, &sum, &acc);
    j.keys = tl_lower_loop_begin(l, "t", z->columns / j.width);
    tl_view power = powers(&j, n, &most, &shrink);
    add_block(&j, n, &power, &shrink, &sum, &acc);
    for (int i = 0; i < 4; i++)
        tl_lower_loop_end(l);
    tl_lower_locals(l, n)->place[0] = acc;
    tl_lower_locals(l, n)->place[1] = sum;
}

const tl_expr *tl_value_online(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *width = tl_int(arena, tl_attention_sizes_of(n).width);
    const tl_expr *head = tl_floordiv_expr(arena, index[2], width);
    const tl_expr *row[3] = { index[0], head, index[1] };
    const tl_expr *element[4] = { index[0], head, index[1],
                                  tl_floormod_expr(arena, index[2], width) };
    return tl_attention_value(l, n, element, row);
}
