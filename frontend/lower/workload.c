/* frontend/lower/workload.c: what a naive program is called among records, and what it costs to run once. */
#include "frontend/frontend.h"
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

static void digest_of(const char *text, char out[33])
{
    tl_digest digest;
    tl_digest_start(&digest);
    tl_digest_add(&digest, text, strlen(text));
    tl_digest_text(&digest, out);
}

/* The text of the program without the kernel's name in the model; numerics are a field of a record of their own. */
void tl_workload_key(tl_arena *arena, const tl_program *naive, char out[33])
{
    tl_program nameless = *naive;
    nameless.name = "workload";
    nameless.strict = nameless.tf32 = false;
    digest_of(tl_program_text(arena, &nameless), out);
}

void tl_class_key(tl_arena *arena, const tl_program *naive, char out[33])
{
    tl_program nameless = *naive;
    nameless.name = "class";
    digest_of(tl_program_class_text(arena, &nameless), out);
}

tl_status tl_kernel_workload_key(tl_arena *arena, const tl_kernel *kernel, char out[33],
                                 tl_diag *diag)
{
    tl_program *direct;
    TL_TRY(tl_kernel_program(arena, kernel, "direct", &direct, diag));
    tl_workload_key(arena, direct, out);
    return TL_OK;
}

static bool count_operation(const tl_expr *e, void *context)
{
    int64_t *count = context;
    if (e->kind == TL_EXPR_LOAD)
        return false; /* index arithmetic is none */
    if (e->kind == TL_EXPR_SELECT &&
        e->arg_count == 3) { /* the condition is about indices as a rule */
        tl_expr_visit(e->args[1], count_operation, context);
        return false;
    }
    bool arithmetic = e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_SUB || e->kind == TL_EXPR_MUL ||
                      e->kind == TL_EXPR_DIV || e->kind == TL_EXPR_MIN || e->kind == TL_EXPR_MAX ||
                      e->kind == TL_EXPR_CALL;
    if (arithmetic && tl_dtype_is_float(e->dtype))
        ++*count;
    return true;
}

/* Instances of a block: the product of its iters' extents (dims at their largest). */
static void add_block(int64_t *total, const tl_block *block)
{
    int64_t each = 0, instances = 1;
    for (int i = 0; i < block->store_count; i++) {
        tl_expr_visit(block->stores[i].value, count_operation, &each);
        if (block->combiner != TL_COMBINER_NONE && tl_dtype_is_float(block->stores[i].value->dtype))
            each++;
    }
    for (int i = 0; i < block->iter_count; i++) {
        tl_range range = tl_expr_range(block->iters[i].extent);
        if (tl_mul_overflows(instances, range.max, &instances))
            instances = INT64_MAX;
    }
    int64_t flops;
    if (tl_mul_overflows(each, instances, &flops) || tl_add_overflows(*total, flops, total))
        *total = INT64_MAX;
}

static bool block_flops(const tl_stmt *stmt, void *context)
{
    if (stmt->kind == TL_STMT_BLOCK)
        add_block(context, stmt->u.block);
    return true;
}

int64_t tl_program_flops(const tl_program *naive)
{
    int64_t total = 0;
    tl_stmt_visit(naive->body, block_flops, &total);
    return total;
}

/* The box around all loads of a buffer. */
typedef struct {
    const tl_buffer *buffer;
    bool is_read;
    int64_t min[2 * TL_MAX_RANK], max[2 * TL_MAX_RANK];
} window;

static bool add_load(const tl_expr *e, void *context)
{
    window *w = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != w->buffer)
        return true;
    for (int axis = 0; axis < w->buffer->rank; axis++) {
        tl_range range = tl_expr_range(e->args[axis]);
        w->min[axis] = w->is_read ? tl_min64(w->min[axis], range.min) : range.min;
        w->max[axis] = w->is_read ? tl_max64(w->max[axis], range.max) : range.max;
    }
    w->is_read = true;
    return true;
}

static bool add_block_loads(const tl_stmt *stmt, void *context)
{
    for (int i = 0; stmt->kind == TL_STMT_BLOCK && i < stmt->u.block->store_count; i++)
        tl_expr_visit(stmt->u.block->stores[i].value, add_load, context);
    return true;
}

/* Elements of a parameter that the program may touch: of one that is read, those in the box around its loads. */
static int64_t touched_elements(const tl_program *naive, const tl_buffer *b)
{
    window w = { .buffer = b };
    int64_t count = 1;
    tl_stmt_visit(naive->body, add_block_loads, &w);
    if (b->role == TL_ROLE_OUTPUT || !w.is_read)
        return tl_buffer_max_elements(b);
    for (int axis = 0; axis < b->rank; axis++) {
        int64_t last = tl_expr_range(b->shape[axis]).max - 1;
        int64_t extent = tl_min64(w.max[axis], last) - tl_max64(w.min[axis], 0) + 1;
        if (tl_mul_overflows(count, tl_max64(extent, 0), &count))
            return INT64_MAX;
    }
    return count;
}

int64_t tl_program_bytes(const tl_program *naive)
{
    int64_t total = 0;
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        int64_t bytes = tl_storage_bytes(b->dtype, touched_elements(naive, b));
        if (bytes < 0 || tl_add_overflows(total, bytes, &total))
            return INT64_MAX;
    }
    return total;
}
