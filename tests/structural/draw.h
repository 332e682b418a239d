/* tests/structural/draw.h: a random valid ONNX graph in the making, as the text of tests/frontend/onnx_text.h.
 *
 *     drawing --draw_FAMILY (families.def), again and again--> drawing --draw_graph--> text --text_model--> bytes
 *
 * Of every value is known what it is, between which numbers it lies, and whether it is exact: a whole multiple of a power of
 * two that its dtype holds. Operators that jump (Floor, ArgMax, comparisons) read exact values alone, so that a last bit more
 * or less never decides anything; with that, what any right compiler makes of the graph is known but for roundings. */
#ifndef TL_TESTS_STRUCTURAL_DRAW_H
#define TL_TESTS_STRUCTURAL_DRAW_H
#include <stdbool.h>
#include <stdint.h>
#include "ir/graph/graph.h"
#include "runtime/base/random.h"
#include "runtime/base/text.h"

enum {
    DRAW_VALUES = 160,
    DRAW_ELEMENTS = 2048, /* of a value, at most */
    DRAW_WORK = 400000    /* multiplications of a node, at most */
};

typedef struct {
    double low, high, step; /* step 0: any real number between */
} draw_range;

typedef struct {
    const char *name;
    tl_dtype dtype;
    int rank;
    int64_t dims[TL_MAX_RANK];
    /* the axis is the graph's n, which may be another one in another call */
    bool open[TL_MAX_RANK];
    draw_range range;
    bool is_made, is_read; /* by a node */
    bool counted;          /* data decide some extent of it; `dims` says what they decide */
    bool kept_apart;       /* nobody else reads it: its extents are not known for other calls */
} draw_value;

typedef struct {
    tl_random random;
    tl_arena *arena;
    tl_text head, nodes; /* inputs and weights; nodes */
    int opset, count, node_count, depth;
    bool has_open, closed; /* closed: the family at work knows nothing of open axes */
    bool plain;            /* and nothing of counts */
    bool counts;           /* data decide extents of the latest node's results */
    int64_t open_extent;
    bool has_contrib;
    tl_dtype main; /* the float dtype that most values have */
    draw_value values[DRAW_VALUES];
} drawing;

/* What a family draws: false when nothing came of it (no value fits, the opset has no such form). */
typedef bool draw_fn(drawing *c);
typedef struct {
    const char *name;
    int weight, since, until; /* how often beside the others; opsets (until 0: the newest) */
    bool open;                /* it reads values with open axes, too */
    bool counts;              /* and those whose extents data decide */
    draw_fn *draw;
} draw_family;
extern const draw_family draw_families[];
extern const int draw_family_count;
#define FAMILY(name, weight, since, until, open, counts) draw_fn draw_##name;
#include "tests/structural/families.def"
#undef FAMILY

/* ---- numbers ---- */

int64_t draw_below(drawing *c, int64_t n);                     /* 0 .. n-1 */
int64_t draw_between(drawing *c, int64_t least, int64_t most); /* both included */
bool draw_chance(drawing *c, int percent);
int64_t draw_extent(drawing *c); /* mostly small; 0, 1, primes, a vector and one more */
int draw_shape(drawing *c, int least_rank, int most_rank, int64_t dims[TL_MAX_RANK]);
const char *draw_word(drawing *c, const char *words); /* one of those with a blank between */
static inline const char *draw_words(int index, const char *words[])
{
    return words[index];
}
tl_dtype draw_of(drawing *c, unsigned dtypes);

/* Sets of dtypes. */
#define DRAW_BIT(d)       (1u << (d))
#define DRAW_FLOATS       (DRAW_BIT(TL_F16) | DRAW_BIT(TL_BF16) | DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64))
#define DRAW_USUAL_FLOATS (DRAW_FLOATS & ~DRAW_BIT(TL_BF16)) /* what older operators take */
#define DRAW_WIDE         (DRAW_BIT(TL_I32) | DRAW_BIT(TL_I64) | DRAW_BIT(TL_U32) | DRAW_BIT(TL_U64))
#define DRAW_NARROW       (DRAW_BIT(TL_I8) | DRAW_BIT(TL_I16) | DRAW_BIT(TL_U8) | DRAW_BIT(TL_U16))
#define DRAW_SIGNED       (DRAW_BIT(TL_I8) | DRAW_BIT(TL_I16) | DRAW_BIT(TL_I32) | DRAW_BIT(TL_I64))
#define DRAW_UNSIGNED     (DRAW_BIT(TL_U8) | DRAW_BIT(TL_U16) | DRAW_BIT(TL_U32) | DRAW_BIT(TL_U64))
#define DRAW_BOOL         DRAW_BIT(TL_BOOL)
#define DRAW_MAIN         0u /* the graph's float dtype */
#define DRAW_ANY          (DRAW_FLOATS | DRAW_WIDE | DRAW_NARROW | DRAW_BOOL)
/* What operators take that have bf16 from opset 22 on. */
unsigned draw_floats_22(const drawing *c);
/* What arithmetic takes: from opset 14 on integers of 8 and 16 bits as well. */
unsigned draw_sums(const drawing *c);

/* ---- values ---- */

/* What an operand has to be. */
typedef struct {
    unsigned dtypes;
    double low, high; /* both 0: any numbers */
    bool exact;
    int least_rank, most_rank; /* most 0: any (6) */
    bool scalar;               /* rank 0 is wanted */
    bool full;                 /* no axis is empty */
    int64_t most_elements;     /* 0: any */
} draw_want;
const draw_value *draw_pick(drawing *c,
                            const draw_want *want); /* one that is there, or a new one */
/* A new input, weight or constant. */
const draw_value *draw_new(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                           draw_range range);
const draw_value *draw_new_open(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                                const bool *open, draw_range range);
/* A weight or constant: what is known when the model is read. */
const draw_value *draw_weight(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                              draw_range range);
/* These numbers, of i64 or i32 and rank 1 (or 0: `scalar`): a weight, a Constant, now and then an input that the caller
 * always gives so. */
const draw_value *draw_numbers(drawing *c, tl_dtype dtype, int count, const int64_t *numbers,
                               bool scalar);
/* The same, and only the call says which they are; of bools, too. */
const draw_value *draw_given(drawing *c, tl_dtype dtype, int count, const int64_t *numbers,
                             bool scalar);
int64_t draw_elements(int rank, const int64_t *dims);
static inline int64_t draw_size(const draw_value *v)
{
    return draw_elements(v->rank, v->dims);
}
static inline bool draw_is_exact(const draw_value *v)
{
    return v->range.step > 0;
}
bool draw_is_open(const draw_value *v); /* some axis is */
/* Whether the family at work may look at it. */
bool draw_may_read(const drawing *c, const draw_value *v);

/* The usual numbers of a new float: exact quarters between -2 and 2; of an integer: small ones. */
draw_range draw_usual(tl_dtype dtype);
#define DRAW_REAL(l, h)  ((draw_range){ (l), (h), 0 })
#define DRAW_WHOLE(l, h) ((draw_range){ (l), (h), 1 })

/* Whether numbers of the range, and sums of them, are of use in the dtype. Where it cannot hold them exactly they become
 * reals; integers wrap. */
bool draw_fits(tl_dtype dtype, draw_range *range);

/* ---- nodes ---- */

/* A node; NULL inputs are not given. Then its results, in the order of its outputs. */
typedef struct {
    int count;
    const draw_value *const *values;
} draw_inputs;
#define DRAW_IN(...)                                                                      \
    ((draw_inputs){ sizeof((const draw_value *[]){ __VA_ARGS__ }) / sizeof(draw_value *), \
                    (const draw_value *const[]){ __VA_ARGS__ } })
void draw_node(drawing *c, const char *op, draw_inputs inputs, int outputs, const char *attributes,
               ...) __attribute__((format(printf, 5, 6)));
const draw_value *draw_result(drawing *c, tl_dtype dtype, int rank, const int64_t *dims,
                              const bool *open, draw_range range);
static inline const draw_value *draw_result_like(drawing *c, const draw_value *x, tl_dtype dtype,
                                                 draw_range range)
{
    return draw_result(c, dtype, x->rank, x->dims, x->open, range);
}
/* "1,2,3" in the arena. */
const char *draw_list(drawing *c, int count, const int64_t *numbers);

/* The shape of two that broadcast; false: they do not. */
typedef struct {
    int rank;
    int64_t dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK];
} draw_dims;
bool draw_broadcast(const draw_value *a, const draw_value *b, draw_dims *out);
/* A value that broadcasts with x: one that is there, or a new one. */
const draw_value *draw_beside(drawing *c, const draw_value *x, const draw_want *want);
/* One that broadcasts to the shape of x and no further. */
const draw_value *draw_within(drawing *c, const draw_value *x, tl_dtype dtype, draw_range range);
/* An axis of x that is not open; -1: none. As a number of ONNX it may count from the end. */
int draw_axis(drawing *c, const draw_value *x);
int64_t draw_signed_axis(drawing *c, int axis, int rank);

/* ---- graphs ---- */

typedef struct {
    const char *text;
    int nodes, opset;
    bool is_open;
    int64_t open_extent, other_extent, third_extent; /* of n */
} draw_result_graph;
/* The graph of a seed, its text in the arena. `family`: of that family's nodes mainly; NULL: of all. */
void draw_graph(tl_arena *arena, uint64_t seed, const char *family, draw_result_graph *out);

#endif
