/* frontend/lower/lower_winograd.c: 3x3 convolution of stride 1 by Winograd's minimal filtering (Winograd 1980; for
 * networks Lavin and Gray 2016): F(m x m, 3 x 3) makes a tile of m x m results from one of (m+2) x (m+2) inputs with (m+2)^2
 * multiplications a channel pair instead of 9 m^2.
 *
 *     U = G g G'     weights, in the prepare part     V = B' d B     input tiles
 *     M[x, y] = sum over channels U[x, y] V[x, y]     Y = A' M A     output tiles
 *
 * Each transform is two blocks, rows then columns; a block stores one column of the matrix product, a row of the matrix a
 * store. The result may be taller and wider than the output, up to whole tiles; what the input lacks there is
 * zero.
 *
 * Error: a rounding of M[x, y] reaches an output with the weight A'[i, x] A'[j, y], and M is as large as B' and G make it.
 * For independent terms the variance at an output (i, j), over that of the direct sum of nine, is r[i] r[j] with
 *     r[i] = sum over x of A'[i, x]^2 (sum of G[x, .]^2) (sum of B'[x, .]^2) / 3
 * (growth by the norms of the matrices: Barabasz, Anderson, Soodhalter and Gregg, Error analysis and improving the accuracy
 * of Winograd convolution for deep neural networks, 2020). Its root, over the outputs of a tile: 5/3 for m = 2; for m = 4,
 * where r = 3.0, 2.9, 5.8, 31.4, it is 10.8, and 31.4 in a tile's last corner, within the 8 deviations that
 * tl_program_error_bound allows. */
#include "frontend/lower/lower_private.h"
#include "runtime/base/checked.h"

enum { MAX_POINTS = 6 };

/* The matrices of F(m, 3), points m + 2; by the points 0, 1, -1 (2, -2) and infinity. */
typedef struct {
    int m, points;
    double input[MAX_POINTS][MAX_POINTS]; /* B' */
    double weight[MAX_POINTS][3];         /* G */
    double output[4][MAX_POINTS];         /* A' */
} winograd;

static const winograd f2 = {
    2,
    4,
    { { 1, 0, -1, 0 }, { 0, 1, 1, 0 }, { 0, -1, 1, 0 }, { 0, 1, 0, -1 } },
    { { 1, 0, 0 }, { 0.5, 0.5, 0.5 }, { 0.5, -0.5, 0.5 }, { 0, 0, 1 } },
    { { 1, 1, 1, 0 }, { 0, 1, -1, -1 } },
};
static const winograd f4 = {
    4,
    6,
    { { 4, 0, -5, 0, 1, 0 },
      { 0, -4, -4, 1, 1, 0 },
      { 0, 4, -4, -1, 1, 0 },
      { 0, -2, -1, 2, 1, 0 },
      { 0, 2, -1, -2, 1, 0 },
      { 0, 4, 0, -5, 0, 1 } },
    { { 1.0 / 4, 0, 0 },
      { -1.0 / 6, -1.0 / 6, -1.0 / 6 },
      { -1.0 / 6, 1.0 / 6, -1.0 / 6 },
      { 1.0 / 24, 1.0 / 12, 1.0 / 6 },
      { 1.0 / 24, -1.0 / 12, 1.0 / 6 },
      { 0, 0, 1 } },
    { { 1, 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, -2, 0 }, { 0, 1, 1, 4, 4, 0 }, { 0, 1, -1, 8, -8, 1 } },
};

/* A block in the making whose stores are rows of a matrix times a column of loads. */
typedef struct {
    tl_lower *l;
    const tl_expr *column[MAX_POINTS]; /* the loads */
    int columns;
} transform;

static const tl_expr *combine(const transform *t, const double *row)
{
    tl_arena *arena = tl_lower_arena(t->l);
    const tl_expr *sum = NULL;
    for (int i = 0; i < t->columns; i++) {
        const tl_expr *term = t->column[i];
        if (row[i] == 0)
            continue;
        if (row[i] != 1)
            term = tl_mul(arena, term, tl_float(arena, term->dtype, row[i]));
        sum = sum == NULL ? term : tl_add(arena, sum, term);
    }
    return sum;
}

/* place[index with axis `axis` = 0, 1, ...] = rows of the matrix times the column. */
static void store_rows(tl_block_nest *nest, const transform *t, const double *matrix, int rows,
                       int stride, const tl_view *place, const tl_expr **index, int axis,
                       int64_t step, const tl_expr *start)
{
    tl_arena *arena = tl_lower_arena(t->l);
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, rows);
    for (int r = 0; r < rows; r++) {
        const tl_expr **physical = TL_NEW_ARRAY(arena, const tl_expr *, 2 * TL_MAX_RANK);
        index[axis] = start == NULL ? tl_int(arena, r) : tl_addi(arena, start, r * step);
        tl_view_index(t->l, place, index, physical);
        stores[r] = (tl_store){ place->buffer, physical, combine(t, matrix + r * stride) };
    }
    tl_nest_stores(nest, rows, stores);
}

/* What the stages of one convolution share. */
typedef struct {
    tl_lower *l;
    const winograd *w;
    int64_t batch, channels, features, lanes_in, lanes_out, tiles_down, tiles_across;
} job;

static tl_view local(const job *j, const char *name, int rank, const int64_t *extents)
{
    tl_shape shape = tl_shape_of(rank, extents);
    tl_layout plain = tl_layout_plain();
    return tl_lower_local(j->l, name, TL_F32, &shape, &plain);
}

/* U[x, y, k, c] from the weights, in the prepare part. */
static tl_view transform_weights(const job *j, const tl_view *weights)
{
    tl_lower *l = j->l;
    int points = j->w->points;
    tl_layout plain = tl_layout_plain();
    tl_shape half = tl_shape_of(4, (int64_t[]){ j->features, j->channels, points, 3 });
    tl_shape full = tl_shape_of(4, (int64_t[]){ points, points, j->features, j->channels });
    tl_lower_prepare_begin(l);
    tl_view g = tl_lower_local(l, "g", TL_F32, &half, &plain);
    tl_view u = tl_lower_prepared(l, "u", TL_F32, &full);
    const tl_expr *index[4];

    tl_block_nest nest = tl_nest_begin(l, "weight_rows");
    transform t = { l, { 0 }, 3 };
    const tl_expr *k = tl_nest_iter(&nest, TL_ITER_SPATIAL, "k", j->features);
    const tl_expr *c = tl_nest_iter(&nest, TL_ITER_SPATIAL, "c", j->channels);
    const tl_expr *s = tl_nest_iter(&nest, TL_ITER_SPATIAL, "s", 3);
    for (int r = 0; r < 3; r++)
        t.column[r] =
            tl_view_load(l, weights, (const tl_expr *[]){ k, c, tl_int(tl_lower_arena(l), r), s });
    index[0] = k;
    index[1] = c;
    index[3] = s;
    store_rows(&nest, &t, &j->w->weight[0][0], points, 3, &g, index, 2, 1, NULL);

    nest = tl_nest_begin(l, "weight_columns");
    k = tl_nest_iter(&nest, TL_ITER_SPATIAL, "k", j->features);
    c = tl_nest_iter(&nest, TL_ITER_SPATIAL, "c", j->channels);
    const tl_expr *x = tl_nest_iter(&nest, TL_ITER_SPATIAL, "x", points);
    for (int r = 0; r < 3; r++)
        t.column[r] =
            tl_view_load(l, &g, (const tl_expr *[]){ k, c, x, tl_int(tl_lower_arena(l), r) });
    index[0] = x;
    index[2] = k;
    index[3] = c;
    store_rows(&nest, &t, &j->w->weight[0][0], points, 3, &u, index, 1, 1, NULL);
    tl_lower_prepare_end(l);
    return u;
}

/* V[x, y, n, th, tw, cb, lane] from tiles of the input. */
static tl_view transform_input(const job *j, const tl_view *in, const int64_t *pads)
{
    tl_lower *l = j->l;
    tl_arena *arena = tl_lower_arena(l);
    int points = j->w->points;
    int64_t blocks = j->channels / j->lanes_in;
    tl_view d = local(j, "d", 7,
                      (int64_t[]){ j->batch, j->tiles_down, j->tiles_across, blocks, points, points,
                                   j->lanes_in });
    tl_view v = local(j, "v", 7,
                      (int64_t[]){ points, points, j->batch, j->tiles_down, j->tiles_across, blocks,
                                   j->lanes_in });
    transform t = { l, { 0 }, points };

    tl_block_nest nest = tl_nest_begin(l, "input_rows");
    const tl_expr *n = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->batch);
    const tl_expr *th = tl_nest_iter(&nest, TL_ITER_SPATIAL, "th", j->tiles_down);
    const tl_expr *tw = tl_nest_iter(&nest, TL_ITER_SPATIAL, "tw", j->tiles_across);
    const tl_expr *cb = tl_nest_iter(&nest, TL_ITER_SPATIAL, "cb", blocks);
    const tl_expr *y = tl_nest_iter(&nest, TL_ITER_SPATIAL, "y", points);
    const tl_expr *lane = tl_nest_iter(&nest, TL_ITER_SPATIAL, "ci", j->lanes_in);
    const tl_expr *channel = tl_add(arena, tl_muli(arena, cb, j->lanes_in), lane);
    for (int r = 0; r < points; r++) {
        const tl_expr *row = tl_addi(arena, tl_muli(arena, th, j->w->m), r - pads[0]);
        const tl_expr *column =
            tl_addi(arena, tl_add(arena, tl_muli(arena, tw, j->w->m), y), -pads[1]);
        t.column[r] = tl_view_load(l, in, (const tl_expr *[]){ n, channel, row, column });
    }
    store_rows(&nest, &t, &j->w->input[0][0], points, MAX_POINTS, &d,
               (const tl_expr *[]){ n, th, tw, cb, NULL, y, lane }, 4, 1, NULL);

    nest = tl_nest_begin(l, "input_columns");
    n = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->batch);
    th = tl_nest_iter(&nest, TL_ITER_SPATIAL, "th", j->tiles_down);
    tw = tl_nest_iter(&nest, TL_ITER_SPATIAL, "tw", j->tiles_across);
    cb = tl_nest_iter(&nest, TL_ITER_SPATIAL, "cb", blocks);
    const tl_expr *x = tl_nest_iter(&nest, TL_ITER_SPATIAL, "x", points);
    lane = tl_nest_iter(&nest, TL_ITER_SPATIAL, "ci", j->lanes_in);
    for (int r = 0; r < points; r++)
        t.column[r] =
            tl_view_load(l, &d, (const tl_expr *[]){ n, th, tw, cb, x, tl_int(arena, r), lane });
    store_rows(&nest, &t, &j->w->input[0][0], points, MAX_POINTS, &v,
               (const tl_expr *[]){ x, NULL, n, th, tw, cb, lane }, 1, 1, NULL);
    return v;
}

/* M[x, y, n, th, tw, kb, lane], the products. */
static tl_view multiply(const job *j, const tl_view *u, const tl_view *v)
{
    tl_lower *l = j->l;
    tl_arena *arena = tl_lower_arena(l);
    int points = j->w->points;
    tl_view m = local(j, "m", 7,
                      (int64_t[]){ points, points, j->batch, j->tiles_down, j->tiles_across,
                                   j->features / j->lanes_out, j->lanes_out });
    tl_block_nest nest = tl_nest_begin(l, "product");
    const tl_expr *x = tl_nest_iter(&nest, TL_ITER_SPATIAL, "x", points);
    const tl_expr *y = tl_nest_iter(&nest, TL_ITER_SPATIAL, "y", points);
    const tl_expr *n = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->batch);
    const tl_expr *th = tl_nest_iter(&nest, TL_ITER_SPATIAL, "th", j->tiles_down);
    const tl_expr *tw = tl_nest_iter(&nest, TL_ITER_SPATIAL, "tw", j->tiles_across);
    const tl_expr *kb = tl_nest_iter(&nest, TL_ITER_SPATIAL, "co", j->features / j->lanes_out);
    const tl_expr *lane = tl_nest_iter(&nest, TL_ITER_SPATIAL, "ci", j->lanes_out);
    const tl_expr *rc = tl_nest_iter(&nest, TL_ITER_REDUCE, "rc", j->channels / j->lanes_in);
    const tl_expr *rl = tl_nest_iter(&nest, TL_ITER_REDUCE, "rl", j->lanes_in);
    const tl_expr *k = tl_add(arena, tl_muli(arena, kb, j->lanes_out), lane);
    const tl_expr *c = tl_add(arena, tl_muli(arena, rc, j->lanes_in), rl);
    const tl_expr *product =
        tl_mul(arena, tl_view_load(l, v, (const tl_expr *[]){ x, y, n, th, tw, rc, rl }),
               tl_view_load(l, u, (const tl_expr *[]){ x, y, k, c }));
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &m, (const tl_expr *[]){ x, y, n, th, tw, kb, lane },
                   product);
    return m;
}

/* acc[n, k, oh, ow] from the products. */
static void transform_output(const job *j, const tl_view *m, const tl_view *acc)
{
    tl_lower *l = j->l;
    tl_arena *arena = tl_lower_arena(l);
    int points = j->w->points, size = j->w->m;
    int64_t blocks = j->features / j->lanes_out;
    tl_view o = local(j, "o", 7,
                      (int64_t[]){ j->batch, j->tiles_down, j->tiles_across, blocks, size, points,
                                   j->lanes_out });
    transform t = { l, { 0 }, points };

    tl_block_nest nest = tl_nest_begin(l, "output_rows");
    const tl_expr *n = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->batch);
    const tl_expr *kb = tl_nest_iter(&nest, TL_ITER_SPATIAL, "co", blocks);
    const tl_expr *th = tl_nest_iter(&nest, TL_ITER_SPATIAL, "th", j->tiles_down);
    const tl_expr *tw = tl_nest_iter(&nest, TL_ITER_SPATIAL, "tw", j->tiles_across);
    const tl_expr *y = tl_nest_iter(&nest, TL_ITER_SPATIAL, "y", points);
    const tl_expr *lane = tl_nest_iter(&nest, TL_ITER_SPATIAL, "ci", j->lanes_out);
    for (int r = 0; r < points; r++)
        t.column[r] =
            tl_view_load(l, m, (const tl_expr *[]){ tl_int(arena, r), y, n, th, tw, kb, lane });
    store_rows(&nest, &t, &j->w->output[0][0], size, MAX_POINTS, &o,
               (const tl_expr *[]){ n, th, tw, kb, NULL, y, lane }, 4, 1, NULL);

    nest = tl_nest_begin(l, "output_columns");
    n = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->batch);
    kb = tl_nest_iter(&nest, TL_ITER_SPATIAL, "co", blocks);
    th = tl_nest_iter(&nest, TL_ITER_SPATIAL, "th", j->tiles_down);
    tw = tl_nest_iter(&nest, TL_ITER_SPATIAL, "tw", j->tiles_across);
    const tl_expr *i = tl_nest_iter(&nest, TL_ITER_SPATIAL, "i", size);
    lane = tl_nest_iter(&nest, TL_ITER_SPATIAL, "ci", j->lanes_out);
    for (int r = 0; r < points; r++)
        t.column[r] =
            tl_view_load(l, &o, (const tl_expr *[]){ n, th, tw, kb, i, tl_int(arena, r), lane });
    const tl_expr *k = tl_add(arena, tl_muli(arena, kb, j->lanes_out), lane);
    const tl_expr *row = tl_add(arena, tl_muli(arena, th, size), i);
    store_rows(&nest, &t, &j->w->output[0][0], size, MAX_POINTS, acc,
               (const tl_expr *[]){ n, k, row, NULL }, 3, 1, tl_muli(arena, tw, size));
}

static void stages(tl_lower *l, const tl_node *n, const winograd *w)
{
    const tl_value *x = n->inputs[0], *weight = n->inputs[1], *out = n->outputs[0];
    const int64_t *pads;
    tl_attr_ints(n, "pads", &pads);
    int64_t down = out->shape.dims[2].extent, across = out->shape.dims[3].extent;
    job j = {
        .l = l,
        .w = w,
        .batch = x->shape.dims[0].extent,
        .channels = x->shape.dims[1].extent,
        .features = weight->shape.dims[0].extent,
        .lanes_in = tl_layout_block(&x->layout, 1),
        .lanes_out = tl_layout_block(&out->layout, 1),
        .tiles_down = tl_ceildiv(down, w->m),
        .tiles_across = tl_ceildiv(across, w->m),
    };
    tl_lower_name_window_axes(l, 4);
    int64_t before[TL_MAX_RANK] = { 0, 0, pads[0], pads[1] };
    int64_t after[TL_MAX_RANK] = { 0, 0, pads[2] + j.tiles_down * w->m - down,
                                   pads[3] + j.tiles_across * w->m - across };
    tl_view in = tl_lower_padded(l, x, before, after);
    tl_view weights = tl_lower_materialize(l, weight);

    tl_shape whole = tl_shape_of(4, (int64_t[]){ j.batch, j.features, j.tiles_down * w->m,
                                                 j.tiles_across * w->m });
    tl_view u = transform_weights(&j, &weights);
    tl_view v = transform_input(&j, &in, pads);
    tl_view m = multiply(&j, &u, &v);
    tl_view acc = tl_lower_local(l, "acc", TL_F32, &whole, &out->layout);
    transform_output(&j, &m, &acc);
    tl_lower_locals(l, n)->place[0] = acc;
}

void tl_stages_winograd_f2(tl_lower *l, const tl_node *n)
{
    stages(l, n, &f2);
}

void tl_stages_winograd_f4(tl_lower *l, const tl_node *n)
{
    stages(l, n, &f4);
}
