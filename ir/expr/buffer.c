/* ir/expr/buffer.c: buffers are plain data; here are their constructors and sizes. */
#include "ir/expr/buffer.h"
#include <assert.h>
#include "ir/expr/index.h"
#include "runtime/base/checked.h"

const char *const tl_scope_texts[TL_SCOPE_COUNT] = {
#define SCOPE(name, text, threads) [TL_SCOPE_##name] = text,
#include "ir/expr/scopes.def"
#undef SCOPE
};

const int tl_scope_threads[TL_SCOPE_COUNT] = {
#define SCOPE(name, text, threads) [TL_SCOPE_##name] = threads,
#include "ir/expr/scopes.def"
#undef SCOPE
};

tl_buffer *tl_buffer_make(tl_arena *arena, const char *name, tl_dtype dtype, tl_role role,
                          tl_scope scope, int rank, const tl_expr *const *shape)
{
    assert(name != NULL && rank >= 0 && (rank == 0 || shape != NULL));
    assert(dtype < TL_DTYPE_COUNT);
    tl_buffer *b = TL_NEW(arena, tl_buffer);
    b->name = tl_arena_strdup(arena, name);
    b->dtype = dtype;
    b->role = role;
    b->scope = scope;
    b->rank = rank;
    b->shape = tl_arena_copy(arena, shape, (size_t)rank * sizeof *shape, _Alignof(tl_expr *));
    return b;
}

tl_buffer *tl_buffer_make_static(tl_arena *arena, const char *name, tl_dtype dtype, tl_role role,
                                 tl_scope scope, int rank, const int64_t *shape)
{
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    for (int i = 0; i < rank; i++)
        extents[i] = tl_int(arena, shape[i]);
    return tl_buffer_make(arena, name, dtype, role, scope, rank, extents);
}

int64_t tl_buffer_max_elements(const tl_buffer *b)
{
    assert(b->rank >= 0 && (b->rank == 0 || b->shape != NULL));
    int64_t elements = 1, span = 0, part = 0;
    for (int i = 0; i < b->rank; i++) {
        int64_t extent = tl_expr_range(b->shape[i]).max;
        if (extent < 0 || extent == INT64_MAX)
            return -1;
        if (b->strides == NULL) {
            if (tl_mul_overflows(elements, extent, &elements))
                return -1;
        } else if (extent == 0) {
            return 0;
        } else if (tl_mul_overflows(extent - 1, b->strides[i], &part) ||
                   tl_add_overflows(span, part, &span)) {
            return -1;
        }
    }
    return b->strides == NULL ? elements : span == INT64_MAX ? -1 : span + 1;
}

int64_t tl_buffer_max_bytes(const tl_buffer *b)
{
    return tl_storage_bytes(b->dtype, tl_buffer_max_elements(b));
}
