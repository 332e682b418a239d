/* tests/frontend/test_open_shapes.c: models whose axes are open: what the file says of them, and the shapes of a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "frontend/frontend.h"
#include "tests/frontend/onnx_text.h"

#define MODEL                                                                                     \
    "opset 13; input x f32 batch,3,h,w; input mask f32 batch; input fixed i64 2,3; init k f32 2 " \
    "= 1,2; "                                                                                     \
    "node Relu x -> y; output y"

typedef struct {
    tl_arena *arena;
    tl_onnx_signature signature;
} fixture;

static fixture open_signature(const char *text)
{
    fixture f = { .arena = tl_arena_create(0) };
    tl_text bytes = text_model(text);
    tl_diag diag = { 0 };
    tl_status status =
        tl_onnx_read_signature_memory(f.arena, bytes.data, bytes.size, &f.signature, &diag);
    if (status != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&bytes);
    return f;
}

static void the_signature_has_names(void **state)
{
    (void)state;
    fixture f = open_signature(MODEL);
    assert_int_equal(f.signature.input_count, 3);
    const tl_onnx_input *x = &f.signature.inputs[0];
    assert_string_equal(x->name, "x");
    assert_true(x->dtype_known && x->dtype == TL_F32);
    assert_int_equal(x->shape.rank, 4);
    assert_string_equal(x->shape.dims[0].name, "batch");
    assert_int_equal(x->shape.dims[1].extent, 3);
    assert_true(tl_onnx_signature_is_open(&f.signature));
    tl_arena_destroy(f.arena);
}

static const struct {
    const char *given; /* NAME EXTENT... ; another */
    tl_status status;
    const char *expected; /* the shapes, or a part of the sentence */
} calls[] = {
    { "x 4 3 32 48", TL_OK, "x 4 3 32 48;mask 4;" },
    { "mask 4", TL_UNBOUND,
      "axis 2 of input 'x' (h) is open: give its shape (--shape x=batch,3,h,w)" },
    { "x 0 3 1 1", TL_OK, "x 0 3 1 1;mask 0;" },
    { "x 4 3 32 48;mask 5", TL_BAD_ARGUMENT,
      "axis 'batch' is 4 in input 'x' (axis 0), but 5 in input 'mask' (axis 0)" },
    { "x 4 2 32 48", TL_BAD_ARGUMENT, "axis 1 of input 'x' is 3 in the model, but 2 was given" },
    { "x 4 3", TL_BAD_ARGUMENT, "input 'x' has 4 axes, but 2 were given" },
    { "fixed 2 3;x 1 3 2 2", TL_OK, "x 1 3 2 2;mask 1;" },
    { "fixed 3 2;x 1 3 2 2", TL_BAD_ARGUMENT, "axis 0 of input 'fixed' is 2 in the model" },
    { "k 2", TL_BAD_ARGUMENT, "the model has no input called 'k'" },
};

static int parse_given(tl_arena *arena, const char *text, tl_shape_override *out)
{
    int count = 0;
    char *copy = tl_arena_strdup(arena, text), *next, *word_state;
    for (char *one = strtok_r(copy, ";", &next); one != NULL; one = strtok_r(NULL, ";", &next)) {
        int64_t extents[TL_MAX_RANK];
        int rank = 0;
        out[count].name = strtok_r(one, " ", &word_state);
        for (char *n; (n = strtok_r(NULL, " ", &word_state)) != NULL;)
            extents[rank++] = atoll(n);
        out[count++].shape = tl_shape_of(rank, extents);
    }
    return count;
}

static void a_call_binds_all_axes(void **state)
{
    (void)state;
    fixture f = open_signature(MODEL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tl_shape_override given[8];
        const tl_shape_override *shapes;
        int count;
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        tl_status status = tl_onnx_bind_shapes(f.arena, &f.signature, given,
                                               parse_given(f.arena, calls[i].given, given), &shapes,
                                               &count, &diag);
        for (int s = 0; status == TL_OK && s < count; s++) {
            tl_text_add(&text, shapes[s].name);
            for (int a = 0; a < shapes[s].shape.rank; a++)
                tl_text_format(&text, " %lld", (long long)shapes[s].shape.dims[a].extent);
            tl_text_add(&text, ";");
        }
        const char *said = status == TL_OK ? tl_text_get(&text) : diag.text;
        if (status != calls[i].status || strstr(said, calls[i].expected) == NULL)
            fail_msg("'%s': %s", calls[i].given, said);
        tl_text_free(&text);
    }
    tl_arena_destroy(f.arena);
}

static void any_number_of_axes_is_said(void **state)
{
    (void)state;
    fixture f = open_signature("opset 13; input x f32 n; node Relu x -> y; output y");
    tl_onnx_input input = f.signature.inputs[0];
    input.shape.rank = -1;
    const tl_onnx_signature any = { 1, &input };
    const tl_shape_override *shapes;
    const tl_shape_override given = { .name = "x", .shape = tl_shape_of(2, (int64_t[]){ 2, 5 }) };
    int count;
    tl_diag diag = { 0 };
    assert_int_equal(tl_onnx_bind_shapes(f.arena, &any, NULL, 0, &shapes, &count, &diag),
                     TL_UNBOUND);
    assert_non_null(strstr(diag.text, "--shape x=N,..."));
    assert_int_equal(tl_onnx_bind_shapes(f.arena, &any, &given, 1, &shapes, &count, NULL), TL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(shapes[0].shape.dims[1].extent, 5);
    tl_arena_destroy(f.arena);
}

/* ---- inputs whose values decide a shape ---- */

static tl_status read_with(tl_arena *arena, const char *text, const tl_shape_override *offers,
                           int count, tl_onnx **model, tl_graph **g, tl_diag *diag)
{
    tl_text bytes = text_model(text);
    *diag = (tl_diag){ 0 };
    tl_status status =
        tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, offers, count, model, g, diag);
    tl_text_free(&bytes);
    return status;
}

/* `rows` decides by way of arithmetic, `ids` of the same dtype only feeds the result. */
#define DECIDED                                                                           \
    "opset 13; input x f32 2,6; input rows i64 1; input ids i64 2; init less i64 1 = -1;" \
    "init one i64 1 = 1; node Add rows,one -> more; node Concat more,less -> s axis=0;"   \
    "node Reshape x,s -> y; node Mul ids,rows -> z; output y; output z"

static void values_that_decide_are_asked_for(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag;
    assert_int_equal(read_with(arena, DECIDED, NULL, 0, &model, &g, &diag), TL_UNBOUND);
    assert_non_null(strstr(diag.text, "depends on the value of input 'rows' (first at node"));
    assert_non_null(strstr(diag.text, "--input rows=FILE"));
    assert_null(strstr(diag.text, "ids"));
    tl_arena_destroy(arena);
}

static void offered_values_decide(void **state)
{
    (void)state;
    const int64_t rows = 3, ids[] = { 5, 6 };
    const tl_shape_override offers[] = {
        { "ids", tl_shape_of(1, (int64_t[]){ 2 }), ids, TL_I64 },
        { "rows", tl_shape_of(1, (int64_t[]){ 1 }), &rows, TL_I64 },
    };
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag;
    const void *data;
    if (read_with(arena, DECIDED, offers, 2, &model, &g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_onnx_bound_count(model), 1);
    assert_string_equal(tl_onnx_bound(model, 0, &data), "rows");
    assert_int_equal(*(const int64_t *)data, 3);
    assert_int_equal(g->input_count, 3);
    assert_int_equal(tl_infer_shapes(g, &diag), TL_OK);
    const tl_value *y = g->outputs[0], *z = g->outputs[1];
    assert_int_equal(y->shape.dims[0].extent, 4);
    assert_int_equal(y->shape.dims[1].extent, 3);
    assert_ptr_equal(z->producer->inputs[0],
                     g->inputs[2]); /* ids stays an input, rows is 3 in both places */
    assert_int_equal(*(const int64_t *)z->producer->inputs[1]->data, 3);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
}

/* What is offered in another shape or dtype than the model's is no offer. */
static void misfits_are_no_offers(void **state)
{
    (void)state;
    const int32_t rows = 3;
    const tl_shape_override offer = { "rows", tl_shape_of(1, (int64_t[]){ 1 }), &rows, TL_I32 };
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag;
    assert_int_equal(read_with(arena, DECIDED, &offer, 1, &model, &g, &diag), TL_UNBOUND);
    tl_arena_destroy(arena);
}

/* What is computed from data that no shape rule can know is not supported, whatever is offered. */
static void shapes_of_float_data_are_refused(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag;
    tl_status status = read_with(
        arena,
        "opset 13; input x f32 100,100; node Cast x -> i to=7; node Reshape x,i -> y; output y",
        NULL, 0, &model, &g, &diag);
    if (status == TL_OK)
        status = tl_infer_shapes(g, &diag);
    assert_int_equal(status, TL_UNSUPPORTED);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
}

static void punctuation_is_no_name(void **state)
{
    (void)state;
    fixture f = open_signature("opset 13; input x f32 ?,3,?; node Relu x -> y; output y");
    const tl_shape_override given = { .name = "x",
                                      .shape = tl_shape_of(3, (int64_t[]){ 1, 3, 7 }) };
    const tl_shape_override *shapes;
    int count;
    assert_null(f.signature.inputs[0].shape.dims[0].name);
    assert_int_equal(tl_onnx_bind_shapes(f.arena, &f.signature, &given, 1, &shapes, &count, NULL),
                     TL_OK);
    tl_arena_destroy(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signature_has_names),
        cmocka_unit_test(a_call_binds_all_axes),
        cmocka_unit_test(any_number_of_axes_is_said),
        cmocka_unit_test(values_that_decide_are_asked_for),
        cmocka_unit_test(offered_values_decide),
        cmocka_unit_test(misfits_are_no_offers),
        cmocka_unit_test(shapes_of_float_data_are_refused),
        cmocka_unit_test(punctuation_is_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
