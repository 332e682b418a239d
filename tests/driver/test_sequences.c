/* tests/driver/test_sequences.c: sequences of tensors, which are gone when a model has been read, through the whole pipeline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/run_text.h"

static void parts_are_joined_again(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 5; init two i64 = 2; init last i64 = -1; init first i64 = 0;"
             "node SplitToSequence x,two -> s; node SequenceAt s,last -> y;"
             "node SequenceAt s,first -> z; node SequenceErase s,first -> e;"
             "node SequenceInsert e,z -> i; node ConcatFromSequence i -> w axis=0;"
             "node SequenceLength s -> n; output y; output z; output w; output n");
    const double *const x[] = { LIST(1, 2, 3, 4, 5) };
    expect(&r, x, 0, 1, LIST(5));
    expect(&r, x, 1, 2, LIST(1, 2));
    expect(&r, x, 2, 5, LIST(3, 4, 5, 1, 2));
    expect(&r, x, 3, 1, LIST(3));
    unload(&r);
}

static void data_choose_one(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32 2; input i i64; node Neg x -> n; node Add x,x -> d;"
                     "node SequenceConstruct x,n,d -> s; node SequenceAt s,i -> y;"
                     "node ConcatFromSequence s -> w axis=1 new_axis=1; output y; output w");
    expect(&r, GIVEN(LIST(1, 2), LIST(0)), 0, 2, LIST(1, 2));
    expect(&r, GIVEN(LIST(1, 2), LIST(2)), 0, 2, LIST(2, 4));
    expect(&r, GIVEN(LIST(1, 2), LIST(-2)), 0, 2, LIST(-1, -2));
    expect(&r, GIVEN(LIST(1, 2), LIST(0)), 1, 6, LIST(1, -1, 2, 2, -2, 4));
    unload(&r);
}

/* A loop of as many turns as data say appends to a sequence. */
static void turns_append(void **state)
{
    (void)state;
    running r =
        load("opset 13; input n i64; input x f32 1,2; init one f32 = 1; node SequenceEmpty -> e;"
             "node Loop n,-,x,e -> y,s body={input i i64; input c bool; input t f32 1,2;"
             " input q f32; node Add t,one -> u; node SequenceInsert q,u -> p;"
             " node Identity c -> d; output d; output u; output p};"
             "node ConcatFromSequence s -> w axis=0; node ConcatFromSequence s -> v axis=1;"
             "node SequenceLength s -> k; output w; output k; output y");
    expect(&r, GIVEN(LIST(3), LIST(1, 5)), 0, 6, LIST(2, 6, 3, 7, 4, 8));
    expect(&r, GIVEN(LIST(3), LIST(1, 5)), 1, 1, LIST(3));
    expect(&r, GIVEN(LIST(3), LIST(1, 5)), 2, 2, LIST(4, 8));
    expect(&r, GIVEN(LIST(0), LIST(1, 5)), 0, 0, NULL);
    unload(&r);
}

static void what_is_no_tensor_is_refused(void **state)
{
    (void)state;
    refused("opset 13; input x f32 4; node SplitToSequence x -> s; node Neg s -> y; output y",
            TL_UNSUPPORTED, "its input 0 is a sequence");
    refused("opset 13; input x f32 4; node SplitToSequence x -> s; output s", TL_UNSUPPORTED,
            "it is a sequence");
    refused("opset 13; input x f32 4; init i i64 = 4; node SplitToSequence x -> s;"
            "node SequenceAt s,i -> y; output y",
            TL_BAD_MODEL, "no position 4 in a sequence of 4");
    refused("opset 13; input x f32 4; init i i64 = 0; node SequenceAt x,i -> y; output y",
            TL_BAD_MODEL, "no sequence");
    refused("opset 13; input x f32 4; init i i64 = 0; node SplitToSequence x,i -> s; output s",
            TL_BAD_MODEL, "parts of 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_joined_again),
        cmocka_unit_test(data_choose_one),
        cmocka_unit_test(turns_append),
        cmocka_unit_test(what_is_no_tensor_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
