/* ir/text/parse_private.h: the parser's state, shared by parse.c (statements), parse_expr.c and
 * parse_block.c. Everything checks what constructors would only assert. */
#ifndef TL_IR_TEXT_PARSE_PRIVATE_H
#define TL_IR_TEXT_PARSE_PRIVATE_H
#include "ir/text/text_private.h"
#include "runtime/base/map.h"

typedef enum { TL_SYMBOL_DIM, TL_SYMBOL_LOOP, TL_SYMBOL_ITER, TL_SYMBOL_BUFFER } tl_symbol_kind;

enum { TL_PARSE_MAX_RANK = 16 };

/* What a name means here. Scopes nest: `hidden` is what it meant outside. */
typedef struct tl_symbol {
    const char *name;
    tl_symbol_kind kind;
    const tl_var *var;
    const tl_expr *extent; /* of a LOOP */
    const tl_buffer *buffer;
    const tl_token *unread; /* where a stage made it, as long as nothing reads it */
    struct tl_symbol *hidden, *previous;
} tl_symbol;

typedef struct {
    tl_arena *arena;
    const char *file;
    const tl_token *token; /* the next one */
    tl_diag *diag;
    tl_map *symbols;        /* name -> innermost tl_symbol, or NULL */
    tl_map *buffers;        /* every buffer and dim name of the program */
    tl_map *blocks;         /* every block name */
    tl_symbol *last;        /* the stack of symbols */
    const char *iters_only; /* the block whose stores are being read: no loop variables there */
    int depth;              /* of nested expressions */
    int operators;          /* of the current line */
    int loops;              /* around */
} tl_parser;

/* "file:line:column: ..." at the next token, or at `token`. */
tl_status tl_parse_fail(tl_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
tl_status tl_parse_fail_at(tl_parser *p, const tl_token *token, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *tl_token_text(const tl_token *token);

/* Whether the next token is that name or mark; `accept` also takes it, `expect` must. */
bool tl_parse_at(const tl_parser *p, const char *text);
bool tl_parse_accept(tl_parser *p, const char *text);
tl_status tl_parse_expect(tl_parser *p, const char *text);
tl_status tl_parse_newline(tl_parser *p);
/* A name of the user's: not a reserved word. */
tl_status tl_parse_name(tl_parser *p, const char *what, const char **out);
tl_status tl_parse_integer(tl_parser *p, int64_t *out); /* a literal, with an optional minus */

tl_symbol *tl_parse_find(const tl_parser *p, const char *name);
/* If that is a buffer: something reads it. */
void tl_parse_mark_read(tl_parser *p, const tl_token *name);
tl_symbol *tl_parse_push(tl_parser *p, const char *name, tl_symbol_kind kind);
void tl_parse_pop(tl_parser *p, const tl_symbol *until);

/* ir/text/parse_expr.c. `want` is the dtype a lone literal takes; TL_DTYPE_COUNT: i64 or f32. */
tl_status tl_parse_expr(tl_parser *p, tl_dtype want, const tl_expr **out);
tl_status tl_parse_condition(tl_parser *p, const tl_expr **out);
tl_status tl_parse_index(tl_parser *p, const tl_expr **out); /* i64, no comparison in it */
/* [i, j] of `buffer`, `first` being its name's token. */
tl_status tl_parse_indices(tl_parser *p, const tl_buffer *buffer, const tl_token *first,
                           const tl_expr *const **out);
/* NAME[...]: an access to be written or prefetched. */
tl_status tl_parse_access(tl_parser *p, const tl_buffer **buffer, const tl_expr *const **indices);
tl_status tl_parse_buffer_name(tl_parser *p, const tl_buffer **out);
/* 0..EXTENT */
tl_status tl_parse_extent(tl_parser *p, const tl_expr **out);

/* ir/text/parse_block.c */
tl_status tl_parse_block(tl_parser *p, const tl_stmt **out);
tl_status tl_parse_call(tl_parser *p, const tl_intrinsic_call **out);
/* A new block's name. */
tl_status tl_parse_block_name(tl_parser *p, tl_block *block);
/* `sum(` and the like; min and max with two operands are functions. */
bool tl_parse_at_reduction(const tl_parser *p);
/* One line of a block's body, appended to its stores: two at most. */
tl_status tl_parse_store_line(tl_parser *p, tl_block *block, tl_store *stores, int *count);

/* ir/text/parse_stage.c: NAME: store [for NAME in EXTENT, ...], with the buffers it makes, two at most. */
tl_status tl_parse_stage(tl_parser *p, const tl_stmt **out, tl_buffer **allocs, int *alloc_count);

#endif
