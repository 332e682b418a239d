/* tuner/cost/tenset_tags.c: the operator tags that TenSet's networks have behind each row: which words the text of
 * the computation has. The text is TVM's and not ours; so each word has its meaning here. */
#include <string.h>
#include "tuner/cost/tenset_private.h"

typedef enum { MAX, MIN, ADD, CONV2D, WINOGRAD, DEPTHWISE, DENSE, SOFTMAX, BATCHED } tag;

/* Words of families (frontend's operators), and the tags that their computation has. */
static const struct {
    const char *word;
    tag tag;
} words[] = {
    { "add", ADD },         { "gemm", DENSE },        { "matmul", DENSE },
    { "softmax", SOFTMAX }, { "attention", SOFTMAX }, { "attention", BATCHED },
    { "softmax", MAX },     { "maxpool", MAX },       { "relu", MAX },
    { "clip", MAX },        { "clip", MIN },          { "globalmaxpool", MAX },
};

static bool has_word(const char *family, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = family; *at != '\0';) {
        size_t size = strcspn(at, "_");
        if (size == length && memcmp(at, word, size) == 0)
            return true;
        at += size + (at[size] == '_');
    }
    return false;
}

static bool look_for_bounds(const tl_expr *e, void *user)
{
    float *out = user;
    if (e->kind == TL_EXPR_MAX && tl_dtype_is_float(e->dtype))
        out[MAX] = 1;
    if (e->kind == TL_EXPR_MIN && tl_dtype_is_float(e->dtype))
        out[MIN] = 1;
    return true;
}

/* A product of two operands that both move with one and the same axis of the result: many products. */
static bool is_batched(const tl_block *block)
{
    const tl_store *store = &block->stores[0];
    const tl_expr *value = store->value;
    if (block->combiner != TL_COMBINER_SUM || value->kind != TL_EXPR_MUL ||
        value->args[0]->kind != TL_EXPR_LOAD || value->args[1]->kind != TL_EXPR_LOAD)
        return false;
    for (int i = 0; i < block->iter_count; i++) {
        int64_t one;
        if (block->iters[i].kind == TL_ITER_SPATIAL &&
            !(tl_const_int(block->iters[i].extent, &one) && one == 1) &&
            tl_expr_uses_var(value->args[0], block->iters[i].var) &&
            tl_expr_uses_var(value->args[1], block->iters[i].var))
            return true;
    }
    return false;
}

/* A sum over a window alone: of each channel its own. */
static bool is_depthwise(const tl_block *block)
{
    int spatial_of_both = is_batched(block), windows = 0;
    for (int i = 0; i < block->iter_count; i++) {
        int64_t extent;
        windows += block->iters[i].kind == TL_ITER_REDUCE &&
                   !(tl_const_int(block->iters[i].extent, &extent) && extent == 1);
    }
    return spatial_of_both && windows <= 2;
}

typedef struct {
    float *out;
    bool is_conv;
} reading;

static bool read_block(const tl_stmt *stmt, void *user)
{
    reading *r = user;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    r->out[MAX] = block->combiner == TL_COMBINER_MAX ? 1 : r->out[MAX];
    r->out[MIN] = block->combiner == TL_COMBINER_MIN ? 1 : r->out[MIN];
    for (int i = 0; i < block->store_count; i++)
        tl_expr_visit(block->stores[i].value, look_for_bounds, r->out);
    if (block->store_count > 0 && r->is_conv && is_depthwise(block))
        r->out[DEPTHWISE] = 1;
    else if (block->store_count > 0 && !r->is_conv && is_batched(block))
        r->out[BATCHED] = 1;
    return true;
}

void tl_tenset_tags_of(const tl_program *naive, const char *family, const char *lowering,
                       float out[TL_TENSET_TAGS])
{
    reading r = { out, has_word(family, "conv") };
    for (int i = 0; i < TL_TENSET_TAGS; i++)
        out[i] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(family, words[i].word))
            out[words[i].tag] = 1;
    tl_stmt_visit(naive->body, read_block, &r);
    if (strncmp(lowering, "winograd", strlen("winograd")) == 0)
        out[WINOGRAD] = 1;
    else if (r.is_conv && out[DEPTHWISE] == 0)
        out[CONV2D] = 1;
}
