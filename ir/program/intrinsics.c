/* ir/program/intrinsics.c: the reference meaning of the intrinsics. Each checks its operands against its signature and
 * computes in plain loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/intrinsics.h"

/* What an operand must look like: a dtype and extents, -1 for an extent that is free. Axes of extent 1 do
 * not count, so that a row X[i..i + 1, 0..n] is a vector of n. */
typedef struct {
    const char *name;
    tl_dtype dtype;
    int rank;
    int64_t extents[3];
} shape_rule;

static tl_status check_operand(const char *intrinsic, const shape_rule *rule, const tl_operand *op,
                               tl_diag *diag)
{
    if (op->dtype != rule->dtype)
        return tl_fail(diag, TL_BAD_IR, "%s: operand %s is %s, not %s", intrinsic, rule->name,
                       tl_dtype_infos[op->dtype].text, tl_dtype_infos[rule->dtype].text);

    int64_t wanted = 1, found = 1;
    for (int i = 0; i < rule->rank; i++)
        wanted *= rule->extents[i];
    for (int i = 0; i < op->rank; i++)
        found *= op->extents[i];
    if (found != wanted)
        return tl_fail(diag, TL_BAD_IR,
                       "%s: the region of operand %s has %lld elements, it needs %lld", intrinsic,
                       rule->name, (long long)found, (long long)wanted);

    int axis = 0;
    for (int i = 0; i < op->rank; i++) {
        if (op->extents[i] == 1)
            continue;
        while (axis < rule->rank && rule->extents[axis] == 1)
            axis++;
        if (axis == rule->rank || op->extents[i] != rule->extents[axis])
            return tl_fail(diag, TL_BAD_IR,
                           "%s: axis %d of the region of operand %s has extent %lld, which is not "
                           "that of the operand",
                           intrinsic, i, rule->name, (long long)op->extents[i]);
        axis++;
    }
    return TL_OK;
}

static int64_t elements(const tl_operand *op)
{
    int64_t count = 1;
    for (int i = 0; i < op->rank; i++)
        count *= op->extents[i];
    return count;
}

/* A NaN sorts behind every number, in both directions. */
static bool goes_before(float a, float b, bool descending)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) && isnan(b);
    return descending ? a > b : a < b;
}

/* Stable bottom-up merge sort of positions. */
static void sort_positions(const float *values, int64_t n, bool descending, int64_t *positions,
                           int64_t *scratch)
{
    for (int64_t i = 0; i < n; i++)
        positions[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t middle = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            int64_t left = low, right = middle;
            for (int64_t at = low; at < high; at++) {
                bool take_right =
                    left == middle ||
                    (right < high &&
                     goes_before(values[positions[right]], values[positions[left]], descending));
                scratch[at] = positions[take_right ? right++ : left++];
            }
        }
        memcpy(positions, scratch, (size_t)n * sizeof *positions);
    }
}

static tl_status sort_f32(const tl_operand *reads, const tl_operand *writes, const int64_t *scalars,
                          tl_diag *diag)
{
    int64_t n = elements(&reads[0]);
    TL_TRY(check_operand("sort_f32", &(shape_rule){ "X", TL_F32, 1, { n } }, &reads[0], diag));
    TL_TRY(check_operand("sort_f32", &(shape_rule){ "Y", TL_F32, 1, { n } }, &writes[0], diag));
    TL_TRY(check_operand("sort_f32", &(shape_rule){ "I", TL_I64, 1, { n } }, &writes[1], diag));

    const float *x = reads[0].data;
    float *y = writes[0].data;
    int64_t *positions = writes[1].data;
    if (n == 0)
        return TL_OK;
    int64_t *scratch = malloc((size_t)n * sizeof *scratch);
    if (scratch == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "sort_f32: no memory for %lld elements", (long long)n);
    sort_positions(x, n, scalars[0] == 1, positions, scratch);
    free(scratch);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[positions[i]];
    return TL_OK;
}

static tl_status dot_u8i8_i32x16(const tl_operand *reads, const tl_operand *writes,
                                 const int64_t *scalars, tl_diag *diag)
{
    (void)scalars;
    const char *name = "dot_u8i8_i32x16";
    const shape_rule c_rule = { "C", TL_I32, 1, { 16 } };
    TL_TRY(check_operand(name, &c_rule, &reads[0], diag));
    TL_TRY(check_operand(name, &(shape_rule){ "A", TL_U8, 1, { 4 } }, &reads[1], diag));
    TL_TRY(check_operand(name, &(shape_rule){ "B", TL_I8, 2, { 16, 4 } }, &reads[2], diag));
    TL_TRY(check_operand(name, &c_rule, &writes[0], diag));

    const int32_t *c = reads[0].data;
    const uint8_t *a = reads[1].data;
    const int8_t *b = reads[2].data;
    int32_t *out = writes[0].data;
    for (int j = 0; j < 16; j++) {
        int32_t dot = 0; /* at most 4 * 255 * 128: fits */
        for (int k = 0; k < 4; k++)
            dot += a[k] * b[4 * j + k];
        out[j] = (int32_t)((uint32_t)c[j] + (uint32_t)dot);
    }
    return TL_OK;
}

/* Products of two bf16 are exact in f32; the pair is added in the order of AVX512_BF16, the odd element first. */
static tl_status dot_bf16_f32x16(const tl_operand *reads, const tl_operand *writes,
                                 const int64_t *scalars, tl_diag *diag)
{
    (void)scalars;
    const char *name = "dot_bf16_f32x16";
    const shape_rule c_rule = { "C", TL_F32, 1, { 16 } };
    TL_TRY(check_operand(name, &c_rule, &reads[0], diag));
    TL_TRY(check_operand(name, &(shape_rule){ "A", TL_BF16, 1, { 2 } }, &reads[1], diag));
    TL_TRY(check_operand(name, &(shape_rule){ "B", TL_BF16, 2, { 16, 2 } }, &reads[2], diag));
    TL_TRY(check_operand(name, &c_rule, &writes[0], diag));

    const float *c = reads[0].data;
    const uint16_t *a = reads[1].data, *b = reads[2].data;
    float *out = writes[0].data;
    for (int j = 0; j < 16; j++) {
        float sum = c[j];
        for (int k = 1; k >= 0; k--)
            sum += tl_bf16_to_f32(a[k]) * tl_bf16_to_f32(b[2 * j + k]);
        out[j] = sum;
    }
    return TL_OK;
}

/* ---- what goes on by itself on a GPU: done at once by whoever runs this ---- */

static tl_status nothing(const tl_operand *reads, const tl_operand *writes, const int64_t *scalars,
                         tl_diag *diag)
{
    (void)reads;
    (void)writes;
    (void)scalars;
    (void)diag;
    return TL_OK;
}

/* What it reads is what it writes. */
static tl_status hand_on(const char *name, const tl_operand *reads, const tl_operand *writes,
                         tl_diag *diag)
{
    if (reads[0].dtype != writes[0].dtype || elements(&reads[0]) != elements(&writes[0]))
        return tl_fail(diag, TL_BAD_IR, "%s: what it reads is not what it writes", name);
    memcpy(writes[0].data, reads[0].data,
           (size_t)elements(&reads[0]) * tl_dtype_size(reads[0].dtype));
    return TL_OK;
}

static tl_status products_done(const tl_operand *reads, const tl_operand *writes,
                               const int64_t *scalars, tl_diag *diag)
{
    (void)scalars;
    return hand_on("products_done", reads, writes, diag);
}

static tl_status bulk_copy(const tl_operand *reads, const tl_operand *writes,
                           const int64_t *scalars, tl_diag *diag)
{
    (void)scalars;
    return hand_on("bulk_copy", reads, writes, diag);
}

static tl_status bulk_load(const tl_operand *reads, const tl_operand *writes,
                           const int64_t *scalars, tl_diag *diag)
{
    return bulk_copy(reads, writes, scalars, diag);
}

static tl_status bulk_store(const tl_operand *reads, const tl_operand *writes,
                            const int64_t *scalars, tl_diag *diag)
{
    return bulk_copy(reads, writes, scalars, diag);
}

/* ---- products of a warp, and of a warpgroup ---- */

typedef enum { OPERANDS_EXACT, OPERANDS_CUT } operands;
typedef struct {
    const char *name;
    tl_dtype c, a, b;
    int m, n, k;
    bool is_nk; /* how B lies */
    operands operands;
} product;

static float float_of(tl_dtype dtype, const void *data, int at)
{
    if (dtype == TL_F32)
        return ((const float *)data)[at];
    uint16_t word = ((const uint16_t *)data)[at];
    return dtype == TL_BF16 ? tl_bf16_to_f32(word) : tl_f16_to_f32(word);
}

static int32_t integer_of(tl_dtype dtype, const void *data, int at)
{
    return dtype == TL_I8 ? ((const int8_t *)data)[at] : ((const uint8_t *)data)[at];
}

/* To 10 bits behind the point: the rest of its bits is not looked at. */
static float cut_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~0x1FFFu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float as_operand(operands how, float x)
{
    return how == OPERANDS_CUT ? cut_tf32(x) : x;
}

/* Where B's element of row k and column j is, its columns in blocks. */
static int place_in_b(const product *p, int columns, int k, int j)
{
    return p->is_nk ? p->k * j + k : (j / columns * p->k + k) * columns + j % columns;
}

static float float_element(const product *p, const void *c, const void *a, const void *b,
                           int columns, int i, int j)
{
    float sum = ((const float *)c)[p->n * i + j];
    for (int k = 0; k < p->k; k++)
        sum += as_operand(p->operands, float_of(p->a, a, p->k * i + k)) *
               as_operand(p->operands, float_of(p->b, b, place_in_b(p, columns, k, j)));
    return sum;
}

static int32_t integer_element(const product *p, const void *c, const void *a, const void *b,
                               int columns, int i, int j)
{
    uint32_t sum = (uint32_t)((const int32_t *)c)[p->n * i + j];
    for (int k = 0; k < p->k; k++)
        sum += (uint32_t)(integer_of(p->a, a, p->k * i + k) *
                          integer_of(p->b, b, place_in_b(p, columns, k, j)));
    return (int32_t)sum;
}

/* The columns of a block of B: all of them, or those of the last of three axes. */
static int block_of(const product *p, const tl_operand *b)
{
    int axes = 0;
    for (int i = 0; i < b->rank; i++)
        axes += b->extents[i] != 1;
    int64_t last = axes == 3 && !p->is_nk ? b->extents[b->rank - 1] : p->n;
    return p->n % last == 0 ? (int)last : p->n;
}

static tl_status run_product(const product *p, const tl_operand *reads, const tl_operand *writes,
                             tl_diag *diag)
{
    const shape_rule c_rule = { "C", p->c, 2, { p->m, p->n } };
    const shape_rule a_rule = { "A", p->a, 2, { p->m, p->k } };
    int columns = block_of(p, &reads[2]);
    const shape_rule b_rule = {
        "B", p->b, 3, { p->n / columns, p->is_nk ? columns : p->k, p->is_nk ? p->k : columns }
    };
    TL_TRY(check_operand(p->name, &c_rule, &reads[0], diag));
    TL_TRY(check_operand(p->name, &a_rule, &reads[1], diag));
    TL_TRY(check_operand(p->name, &b_rule, &reads[2], diag));
    TL_TRY(check_operand(p->name, &c_rule, &writes[0], diag));
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            const void *c = reads[0].data, *a = reads[1].data, *b = reads[2].data;
            if (p->c == TL_F32)
                ((float *)writes[0].data)[p->n * i + j] = float_element(p, c, a, b, columns, i, j);
            else
                ((int32_t *)writes[0].data)[p->n * i + j] =
                    integer_element(p, c, a, b, columns, i, j);
        }
    return TL_OK;
}

/* (A # at the head of a line would be a directive to whoever reads the lines of this file one by one: fingerprint.sh.) */
#define WORD(x) #x
#define PRODUCT(name, c, a, b, m, n, k, lies, operands)                                            \
    static tl_status name(const tl_operand *reads, const tl_operand *writes,                       \
                          const int64_t *scalars, tl_diag *diag)                                   \
    {                                                                                              \
        (void)scalars;                                                                             \
        static const product p = {                                                                 \
            WORD(name), TL_##c, TL_##a, TL_##b, m, n, k, WORD(lies)[0] == 'n', OPERANDS_##operands \
        };                                                                                         \
        return run_product(&p, reads, writes, diag);                                               \
    }
#include "ir/program/warp_products.def"
#include "ir/program/warpgroup_products.def"
#undef PRODUCT
#undef WORD

const tl_intrinsic_info tl_intrinsic_infos[TL_INTRINSIC_COUNT] = {
#define INTRINSIC(name, reads, writes, scalars) \
    [TL_INTRINSIC_##name] = { #name, reads, writes, scalars, name },
#define SYNC(name, scalars, who) [TL_INTRINSIC_##name] = { #name, 0, 0, scalars, nothing },
#include "ir/program/intrinsics.def"
#undef INTRINSIC
};

bool tl_intrinsic_from_name(const char *name, tl_intrinsic *out)
{
    for (int i = 0; i < TL_INTRINSIC_COUNT; i++) {
        if (strcmp(tl_intrinsic_infos[i].name, name) == 0) {
            *out = (tl_intrinsic)i;
            return true;
        }
    }
    return false;
}

/* Who of a GPU computes a product, and whether its operands are rounded for it. */
typedef struct {
    const char *name;
    bool of_group, rounds;
} product_trait;

static const product_trait *find_product(const char *name)
{
    static const product_trait traits[] = {
#define PRODUCT(product, c, a, b, m, n, k, lies, operands) \
    { #product, false, OPERANDS_##operands != OPERANDS_EXACT },
#include "ir/program/warp_products.def"
#undef PRODUCT
#define PRODUCT(product, c, a, b, m, n, k, lies, operands) \
    { #product, true, OPERANDS_##operands != OPERANDS_EXACT },
#include "ir/program/warpgroup_products.def"
#undef PRODUCT
    };
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++)
        if (strcmp(traits[i].name, name) == 0)
            return &traits[i];
    return NULL;
}

bool tl_intrinsic_rounds(const char *name)
{
    const product_trait *found = find_product(name);
    return found != NULL && found->rounds;
}

bool tl_intrinsic_of_warp(const char *name)
{
    const product_trait *found = find_product(name);
    return found != NULL && !found->of_group;
}

bool tl_intrinsic_of_group(const char *name)
{
    const product_trait *found = find_product(name);
    return found != NULL && found->of_group;
}

bool tl_intrinsic_goes_outside(tl_intrinsic which)
{
    return which == TL_INTRINSIC_bulk_copy || which == TL_INTRINSIC_bulk_load ||
           which == TL_INTRINSIC_bulk_store;
}
