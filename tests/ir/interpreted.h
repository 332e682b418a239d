/* tests/ir/interpreted.h: a small program over arrays of 64 elements each, ready to be interpreted. */
#ifndef TL_TESTS_IR_INTERPRETED_H
#define TL_TESTS_IR_INTERPRETED_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ir/interpret/interpret.h"

#define MAX_PARAMS 6
#define ELEMENTS   64

typedef struct {
    tl_arena *arena;
    tl_program *program;
    tl_argument arguments[MAX_PARAMS];
    int64_t data[MAX_PARAMS][ELEMENTS]; /* room for any dtype */
} fixture;

/* Element i of every float parameter is i, of every integer one too. */
static inline void start(fixture *f, const char *text)
{
    tl_diag diag = { "" };
    f->arena = tl_arena_create(0);
    if (tl_program_parse(f->arena, text, "test", &f->program, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    assert_true(f->program->param_count <= MAX_PARAMS);
    for (int i = 0; i < f->program->param_count; i++) {
        const tl_buffer *b = f->program->params[i];
        for (int k = 0; k < ELEMENTS; k++) {
            tl_number value;
            if (tl_dtype_is_float(b->dtype))
                value.f = k;
            else
                value.i = k;
            tl_number_store(b->dtype, f->data[i], (size_t)k, value);
        }
        f->arguments[i] = (tl_argument){ b, f->data[i] };
    }
}

static inline tl_status run(fixture *f, const int64_t *dims, const tl_interpret_options *options,
                            tl_diag *diag)
{
    return tl_interpret(f->program, f->arguments, f->program->param_count, dims, options, diag);
}

#endif
