/* ir/text/text_private.h: what the printer, the lexer and the parser of Programs share. */
#ifndef TL_IR_TEXT_TEXT_PRIVATE_H
#define TL_IR_TEXT_TEXT_PRIVATE_H
#include "ir/expr/expr_private.h"
#include "ir/program/program.h"

/* Words that cannot be names: keywords, dtypes, functions, combiners. */
bool tl_is_reserved(const char *name);
/* What reads the bits of a value as another dtype: bits_f32. */
#define TL_BITS_PREFIX "bits_"
bool tl_bits_from_text(const char *name, tl_dtype *out);
/* Characters of a name: letters, digits, `_` and, inside, `.` */
static inline bool tl_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool tl_is_name_char(char c)
{
    return tl_is_name_start(c) || (c >= '0' && c <= '9');
}

extern const char *const tl_iter_kind_texts[3]; /* "spatial", "reduce", "ordered" */

/* a + b as a sum would print. */
void tl_expr_print_total(const tl_expr *a, const tl_expr *b, const tl_namer *namer, tl_text *out);
/* In parentheses when it is a sum or binds less. */
void tl_expr_print_tight(const tl_expr *e, const tl_namer *namer, tl_text *out);

/* ---- tokens ---- */

typedef enum {
    TL_TOKEN_END,
    TL_TOKEN_NEWLINE,
    TL_TOKEN_INDENT,
    TL_TOKEN_DEDENT,
    TL_TOKEN_NAME,
    TL_TOKEN_INT,
    TL_TOKEN_FLOAT,
    TL_TOKEN_PUNCTUATION,
} tl_token_kind;

typedef struct {
    tl_token_kind kind;
    int line, column; /* from 1 */
    const char *text; /* NAME and PUNCTUATION: NUL-terminated; else for messages */
    uint64_t value;   /* INT */
    double number;    /* FLOAT */
} tl_token;

/* The tokens of a text, END last. TL_BAD_TEXT: "file:line:column: ...". */
tl_status tl_lex(tl_arena *arena, const char *text, const char *file, const tl_token **out,
                 tl_diag *diag);

#endif
