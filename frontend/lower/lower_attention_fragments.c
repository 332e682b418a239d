/* frontend/lower/lower_attention_fragments.c: attention block by block of keys (lower_attention_online.c), written as tensor
 * cores of a GPU hold it: every number between q, k, v and the result stays in the registers of threads, of which four share a
 * row.
 *
 *     for each batch b, head h, block of 64 rows i:      m = the least number, l = 0, acc = 0
 *       for each block of keys t:
 *         scores   s[i, j] = sum over d of q[i, d] * k[j, d]                    j in t
 *         masked   z[i, j] = scale*s + mask
 *         most     n[i, f] = max over j of z, of those j that thread f of the four has: j%8//2 = f
 *         top      u[i, f] = max over all four of n
 *         shrink   c[i, f] = exp(m - max(m, u))
 *         raise    m[i, f] = max(m, u)
 *         exp      p[i, j] = exp(z - m)                   in the operands' dtype, f16 or bf16
 *         part     w[i, f] = sum over the thread's j of p
 *         sum      l[i, f] = l*c + w
 *         mix      acc[i, e] = acc*c
 *         attend   acc[i, e] = acc + sum over j of p * v[j, e]
 *       whole      g[i, f] = sum over all four of l
 *       mean       a[i, e] = acc * (1 / g)
 *     value    a
 *
 * m, u, c and g are the same for all four. The error is that of `online` and of weights that are rounded (lower_attention.c):
 * each is off by half an ulp of the dtype, and their mean by as much as the value's own rounding. */
#include <float.h>
#include "frontend/lower/attention.h"
#include "frontend/lower/lower_private.h"

enum {
    HEIGHT = 64, /* rows of a warpgroup */
    KEYS = 128,  /* in a block, or half of it, or a quarter */
    STEP = 16,   /* of a product's sum */
    WIDTH =
        32, /* features of a value: so many, or twice, three or four times as many, as products have columns */
    MOST_WIDTH = 128, /* their sums and the scores are in registers */
    MOST_DEPTH = 256, /* features of a key */
    THREADS = 4,      /* of a row */
    OWN = 2,          /* columns that follow each other, of a thread */
    MOST_BLOCKS =
        1024 /* one after the other into one accumulator; each of four has a quarter of a row */
};

static int64_t block_of_keys(int64_t columns)
{
    for (int64_t keys = KEYS; keys >= KEYS / 4; keys /= 2)
        if (columns % keys == 0 && columns / keys > 1)
            return columns / keys <= MOST_BLOCKS ? keys : 0;
    return 0;
}

bool tl_lowers_fragments(const tl_node *n)
{
    tl_attention_sizes z = tl_attention_sizes_of(n);
    return tl_lowers_halves(n) && z.rows % HEIGHT == 0 && block_of_keys(z.columns) > 0 &&
           z.depth % STEP == 0 && z.depth <= MOST_DEPTH && z.width % WIDTH == 0 &&
           z.width <= MOST_WIDTH;
}

typedef struct {
    tl_lower *lower;
    const tl_node *node;
    tl_attention_sizes z;
    tl_dtype dtype;                     /* of sums */
    int64_t width;                      /* keys in a block */
    const tl_expr *b, *h, *rows, *keys; /* loops around the nests */
} job;

static tl_view local(const job *j, const char *name, tl_dtype dtype, const int64_t *extents,
                     int rank)
{
    tl_shape shape = tl_shape_of(rank, extents);
    tl_layout plain = tl_layout_plain();
    return tl_lower_local(j->lower, name, dtype, &shape, &plain);
}

/* Numbers of a row, one a thread; of a block of keys. */
static tl_view row_local(const job *j, const char *name)
{
    return local(j, name, j->dtype, (int64_t[]){ j->z.batch, j->z.heads, j->z.rows, THREADS }, 4);
}
static tl_view block_local(const job *j, const char *name)
{
    return local(j, name, j->dtype,
                 (int64_t[]){ j->z.batch, j->z.heads, j->z.columns / j->width, j->z.rows, THREADS },
                 5);
}

/* A nest over rows, at[] = b, h, i; over a block of keys as well, of one kind or the other, at[] = b, h, t, i. */
static tl_block_nest begin_rows(const job *j, const char *name, const tl_expr *at[4])
{
    tl_block_nest nest = tl_nest_begin(j->lower, name);
    at[0] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "b", j->z.batch, j->b, 0);
    at[1] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "h", j->z.heads, j->h, 0);
    at[2] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "i", j->z.rows,
                            tl_muli(tl_lower_arena(j->lower), j->rows, HEIGHT), HEIGHT);
    return nest;
}

static tl_block_nest begin(const job *j, const char *name, tl_iter_kind kind, const tl_expr *at[4])
{
    tl_block_nest nest = begin_rows(j, name, at);
    at[3] = at[2];
    at[2] = tl_nest_iter_at(&nest, kind, "t", j->z.columns / j->width, j->keys, 0);
    return nest;
}

static const tl_expr *thread(tl_block_nest *nest)
{
    return tl_nest_iter(nest, TL_ITER_SPATIAL, "f", THREADS);
}

static const tl_expr *key(const job *j, tl_block_nest *nest)
{
    const tl_expr *from = tl_muli(tl_lower_arena(j->lower), j->keys, j->width);
    return tl_nest_iter_at(nest, TL_ITER_SPATIAL, "j", j->z.columns, from, j->width);
}

/* The number of a key in block `t`, over those of thread f. */
static const tl_expr *own_key(const job *j, tl_block_nest *nest, const tl_expr *t, const tl_expr *f)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    const tl_expr *x = tl_nest_iter(nest, TL_ITER_REDUCE, "x", j->width / (THREADS * OWN));
    const tl_expr *e = tl_nest_iter(nest, TL_ITER_REDUCE, "e", OWN);
    const tl_expr *from =
        tl_add(arena, tl_muli(arena, t, j->width), tl_muli(arena, x, (int64_t)THREADS * OWN));
    return tl_add(arena, tl_add(arena, from, tl_muli(arena, f, OWN)), e);
}

/* Which of the four threads has the column. */
static const tl_expr *thread_of(const job *j, const tl_expr *column)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    const tl_expr *in_tile = tl_floormod_expr(arena, column, tl_int(arena, THREADS * OWN));
    return tl_floordiv_expr(arena, in_tile, tl_int(arena, OWN));
}

static void start(const job *j, const tl_view *most, const tl_view *sum, const tl_view *acc)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    const tl_expr *at[4];
    tl_block_nest nest = begin_rows(j, "start_top", at);
    at[3] = thread(&nest);
    /* no infinity: a difference of two would be no number */
    tl_nest_store(&nest, most, at, tl_float(arena, j->dtype, -(double)FLT_MAX));
    nest = begin_rows(j, "start_sum", at);
    at[3] = thread(&nest);
    tl_nest_store(&nest, sum, at, tl_float(arena, j->dtype, 0));
    nest = begin_rows(j, "start_mix", at);
    at[3] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", j->z.width);
    tl_nest_store(&nest, acc, at, tl_float(arena, j->dtype, 0));
}

static tl_view masked_scores(const job *j)
{
    tl_lower *l = j->lower;
    const int64_t matrix[] = { j->z.batch, j->z.heads, j->z.rows, j->z.columns };
    const tl_expr *at[4];
    tl_view scores = local(j, "s", j->dtype, matrix, 4);
    tl_block_nest nest = begin_rows(j, "scores", at);
    at[3] = key(j, &nest);
    const tl_expr *d = tl_nest_iter(&nest, TL_ITER_REDUCE, "d", j->z.depth);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &scores, at, tl_attention_score(l, j->node, at, d));

    tl_view masked = local(j, "z", j->dtype, matrix, 4);
    nest = begin_rows(j, "masked", at);
    at[3] = key(j, &nest);
    tl_nest_store(&nest, &masked, at,
                  tl_attention_masked(l, j->node, at, tl_view_load(l, &scores, at)));
    return masked;
}

/* What m, l and acc are scaled by; m is the new one then. */
static tl_view raise(const job *j, const tl_view *masked, const tl_view *most)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *at[4];
    tl_view own = block_local(j, "n");
    tl_block_nest nest = begin(j, "most", TL_ITER_SPATIAL, at);
    const tl_expr *f = thread(&nest), *column = own_key(j, &nest, at[2], f);
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &own,
                   (const tl_expr *[]){ at[0], at[1], at[2], at[3], f },
                   tl_view_load(l, masked, (const tl_expr *[]){ at[0], at[1], at[3], column }));

    tl_view all = block_local(j, "u");
    nest = begin(j, "top", TL_ITER_SPATIAL, at);
    f = thread(&nest);
    const tl_expr *other = tl_nest_iter(&nest, TL_ITER_REDUCE, "x", THREADS);
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &all,
                   (const tl_expr *[]){ at[0], at[1], at[2], at[3], f },
                   tl_view_load(l, &own, (const tl_expr *[]){ at[0], at[1], at[2], at[3], other }));

    tl_view shrink = block_local(j, "c");
    nest = begin(j, "shrink", TL_ITER_SPATIAL, at);
    f = thread(&nest);
    const tl_expr *block[] = { at[0], at[1], at[2], at[3], f };
    const tl_expr *before = tl_view_load(l, most, (const tl_expr *[]){ at[0], at[1], at[3], f });
    const tl_expr *after = tl_max(arena, before, tl_view_load(l, &all, block));
    tl_nest_store(&nest, &shrink, block,
                  tl_call1(arena, TL_FUNCTION_EXP, tl_sub(arena, before, after)));

    nest = begin(j, "raise", TL_ITER_ORDERED, at);
    f = thread(&nest);
    const tl_expr *row[] = { at[0], at[1], at[3], f };
    tl_nest_store(&nest, most, row,
                  tl_max(arena, tl_view_load(l, most, row),
                         tl_view_load(l, &all,
                                      (const tl_expr *[]){ at[0], at[1], at[2], at[3], f })));
    return shrink;
}

static tl_view powers(const job *j, const tl_view *masked, const tl_view *most)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    tl_dtype held = j->node->inputs[0]->dtype;
    const tl_expr *at[4];
    tl_view power =
        local(j, "p", held, (int64_t[]){ j->z.batch, j->z.heads, j->z.rows, j->z.columns }, 4);
    tl_block_nest nest = begin_rows(j, "exp", at);
    at[3] = key(j, &nest);
    const tl_expr *row[] = { at[0], at[1], at[2], thread_of(j, at[3]) };
    const tl_expr *below = tl_sub(arena, tl_view_load(l, masked, at), tl_view_load(l, most, row));
    tl_nest_store(&nest, &power, at, tl_cast(arena, held, tl_call1(arena, TL_FUNCTION_EXP, below)));
    return power;
}

/* Adds a block of keys to l and acc. */
static void add_block(const job *j, const tl_view *power, const tl_view *shrink, const tl_view *sum,
                      const tl_view *acc)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    const tl_attention_sizes *z = &j->z;
    const tl_expr *at[4];
    tl_view part = block_local(j, "w");
    tl_block_nest nest = begin(j, "part", TL_ITER_SPATIAL, at);
    const tl_expr *f = thread(&nest), *column = own_key(j, &nest, at[2], f);
    const tl_expr *one = tl_view_load(l, power, (const tl_expr *[]){ at[0], at[1], at[3], column });
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &part,
                   (const tl_expr *[]){ at[0], at[1], at[2], at[3], f },
                   tl_cast(arena, j->dtype, one));

    nest = begin(j, "sum", TL_ITER_ORDERED, at);
    f = thread(&nest);
    const tl_expr *row[] = { at[0], at[1], at[3], f }, *block[] = { at[0], at[1], at[2], at[3], f };
    tl_nest_store(&nest, sum, row,
                  tl_add(arena,
                         tl_mul(arena, tl_view_load(l, sum, row), tl_view_load(l, shrink, block)),
                         tl_view_load(l, &part, block)));

    nest = begin(j, "mix", TL_ITER_ORDERED, at);
    const tl_expr *e = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", z->width);
    const tl_expr *whole[] = { at[0], at[1], at[3], e };
    const tl_expr *by[] = { at[0], at[1], at[2], at[3], thread_of(j, e) };
    tl_nest_store(&nest, acc, whole,
                  tl_mul(arena, tl_view_load(l, acc, whole), tl_view_load(l, shrink, by)));

    nest = begin_rows(j, "attend", at);
    e = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", z->width);
    const tl_expr *from = tl_muli(arena, j->keys, j->width);
    column = tl_nest_iter_at(&nest, TL_ITER_REDUCE, "j", z->columns, from, j->width);
    one = tl_view_load(l, power, (const tl_expr *[]){ at[0], at[1], at[2], column });
    tl_nest_update(&nest, TL_COMBINER_SUM, acc, (const tl_expr *[]){ at[0], at[1], at[2], e },
                   tl_mul(arena, tl_cast(arena, j->dtype, one),
                          tl_attention_weight(l, j->node, at[0], column, at[1], e)));
}

static void finish(const job *j, const tl_view *sum, const tl_view *acc, const tl_view *mean)
{
    tl_lower *l = j->lower;
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *at[4];
    tl_view all = row_local(j, "g");
    tl_block_nest nest = begin_rows(j, "whole", at);
    at[3] = thread(&nest);
    const tl_expr *other = tl_nest_iter(&nest, TL_ITER_REDUCE, "x", THREADS);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &all, at,
                   tl_view_load(l, sum, (const tl_expr *[]){ at[0], at[1], at[2], other }));
    nest = begin_rows(j, "mean", at);
    at[3] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", j->z.width);
    const tl_expr *row[] = { at[0], at[1], at[2], thread_of(j, at[3]) };
    const tl_expr *one = tl_float(arena, j->dtype, 1);
    tl_nest_store(&nest, mean, at,
                  tl_mul(arena, tl_view_load(l, acc, at),
                         tl_div(arena, one, tl_view_load(l, &all, row))));
}

void tl_stages_fragments(tl_lower *l, const tl_node *n)
{
    job j = { .lower = l, .node = n, .z = tl_attention_sizes_of(n) };
    const tl_attention_sizes *z = &j.z;
    const int64_t mixed[] = { z->batch, z->heads, z->rows, z->width };
    j.dtype = tl_accumulate_dtype(n->inputs[0]->dtype);
    j.width = block_of_keys(z->columns);
    for (int i = 0; i < 3; i++)
        tl_lower_materialize(l, n->inputs[i]);
    tl_attention_name_axes(l, z);
    tl_view mean = local(&j, "a", j.dtype, mixed, 4);
    j.b = tl_lower_loop_begin(l, "b", z->batch);
    j.h = tl_lower_loop_begin(l, "h", z->heads);
    j.rows = tl_lower_loop_begin(l, "r", z->rows / HEIGHT);
    tl_view sum = row_local(&j, "l"), most = row_local(&j, "m");
    tl_view acc = local(&j, "acc", j.dtype, mixed, 4);
    start(&j, &most, &sum, &acc);
    j.keys = tl_lower_loop_begin(l, "t", z->columns / j.width);
    tl_view masked = masked_scores(&j), shrink = raise(&j, &masked, &most);
    tl_view power = powers(&j, &masked, &most);
    add_block(&j, &power, &shrink, &sum, &acc);
    tl_lower_loop_end(l);
    finish(&j, &sum, &acc, &mean);
    for (int i = 0; i < 3; i++)
        tl_lower_loop_end(l);
    tl_lower_locals(l, n)->place[0] = mean;
}

const tl_expr *tl_value_fragments(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *width = tl_int(arena, tl_attention_sizes_of(n).width);
    const tl_expr *element[4] = { index[0], tl_floordiv_expr(arena, index[2], width), index[1],
                                  tl_floormod_expr(arena, index[2], width) };
    return tl_cast(arena, n->outputs[0]->dtype,
                   tl_view_load(l, &tl_lower_locals(l, n)->place[0], element));
}
