/* ir/expr/buffer.h: named storage of a Program. */
#ifndef TL_IR_EXPR_BUFFER_H
#define TL_IR_EXPR_BUFFER_H
#include "ir/expr/expr.h"

/* ir/expr/scopes.def: where a buffer lives */
typedef enum {
#define SCOPE(name, text, threads) TL_SCOPE_##name,
#include "ir/expr/scopes.def"
#undef SCOPE
    TL_SCOPE_COUNT
} tl_scope;
extern const char *const tl_scope_texts[TL_SCOPE_COUNT];
/* How many threads hold a buffer of that scope together, each its part in registers (scopes.def); 0: no others. */
extern const int tl_scope_threads[TL_SCOPE_COUNT];

typedef enum {
    TL_ROLE_INPUT,    /* a parameter that is only read                                        */
    TL_ROLE_CONST,    /* a parameter whose value is known when the model is compiled          */
    TL_ROLE_OUTPUT,   /* a parameter that is written (and may be read back after the write)   */
    TL_ROLE_INOUT,    /* a parameter that is read and written                                 */
    TL_ROLE_PREPARED, /* written by the program's prepare part, a constant afterwards         */
    TL_ROLE_LOCAL,    /* allocated by an alloc statement                                      */
} tl_role;

struct tl_buffer {
    const char *name;
    tl_dtype dtype;
    tl_scope scope; /* GLOBAL for every parameter */
    tl_role role;
    int rank;                    /* 0: a scalar, accessed as B[] */
    const tl_expr *const *shape; /* i64 over constants and dims; row-major */
    const int64_t *strides;      /* elements, or NULL: packed row-major (set by storage_align) */
    int swizzle;                 /* of shared memory: 0, or 32, 64, 128 bytes (set by swizzle) */
};

tl_buffer *tl_buffer_make(tl_arena *arena, const char *name, tl_dtype dtype, tl_role role,
                          tl_scope scope, int rank, const tl_expr *const *shape);
/* With a constant shape. */
tl_buffer *tl_buffer_make_static(tl_arena *arena, const char *name, tl_dtype dtype, tl_role role,
                                 tl_scope scope, int rank, const int64_t *shape);
/* Elements when the shape is constant, else of the largest value of the dims. -1: overflows. */
int64_t tl_buffer_max_elements(const tl_buffer *b);
int64_t tl_buffer_max_bytes(const tl_buffer *b); /* of them; -1: overflows */

#endif
