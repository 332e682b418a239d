/* tests/driver/test_counted.c: results that have as many elements as data say, of values that are computed on the way, and
 * what is done with them: one executable for all counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "tests/driver/run_text.h"

#define X "opset 13; input x f32 2,3; init zero f32 = 0; node Relu x -> r;"

static void places_of_what_is_not_zero(void **state)
{
    (void)state;
    running r = load(X "node NonZero r -> y; output y");
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 0, 6, LIST(0, 0, 1, 0, 2, 2));
    expect(&r, GIVEN(LIST(-1, -1, -1, -1, -1, -1)), 0, 0, NULL);
    expect(&r, GIVEN(LIST(1, 1, 1, 1, 1, 1)), 0, 12, LIST(0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2));
    unload(&r);
}

static void what_is_gathered_is_counted(void **state)
{
    (void)state;
    running r = load(X "init shape i64 1 = -1; init seven f32 = 7; node NonZero r -> p;"
                       "node Transpose p -> t perm=[1,0]; node GatherND x,t -> g;"
                       "node Mul g,seven -> y; node ReduceSum y -> s keepdims=0;"
                       "node ReduceMean y -> m keepdims=0; node ReduceMax y -> b keepdims=0;"
                       "output y; output s; output m; output b");
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 0, 3, LIST(7, 14, 21));
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 1, 1, LIST(42));
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 2, 1, LIST(14));
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 3, 1, LIST(21));
    expect(&r, GIVEN(LIST(-1, -1, -1, -1, -1, -1)), 1, 1, LIST(0));
    unload(&r);
}

static void rows_are_kept(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32 4,2; input c bool 4; init two f32 = 2;"
                     "node Not c -> d; node Compress x,d -> y axis=0; node Mul y,two -> z;"
                     "node Shape z -> s; node Concat z,x -> w axis=0; node Softmax z -> q axis=0;"
                     "output z; output s; output w; output q");
    const double *const some[] = { LIST(1, 2, 3, 4, 5, 6, 7, 8), LIST(1, 0, 1, 0) };
    expect(&r, some, 0, 4, LIST(6, 8, 14, 16));
    expect(&r, some, 1, 2, LIST(2, 2));
    expect(&r, some, 2, 12, LIST(6, 8, 14, 16, 1, 2, 3, 4, 5, 6, 7, 8));
    const double e = exp(-8);
    expect(&r, some, 3, 4, LIST(e / (1 + e), e / (1 + e), 1 / (1 + e), 1 / (1 + e)));
    unload(&r);
}

static void parts_from_both_ends(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 6; input c bool 6; node Not c -> d; node Compress x,d -> y;"
             "init a i64 1 = -2; init big i64 1 = 9223372036854775807; init one i64 1 = 1;"
             "init minus i64 1 = -1; init none i64 = -1; node Slice y,a,big -> p;"
             "node Slice y,one,minus -> q; node Gather y,none -> g; output p; output q; output g");
    const double *const some[] = { LIST(1, 2, 3, 4, 5, 6), LIST(0, 1, 0, 0, 1, 0) };
    expect(&r, some, 0, 2, LIST(4, 6));
    expect(&r, some, 1, 2, LIST(3, 4));
    expect(&r, some, 2, 1, LIST(6));
    const double *const few[] = { LIST(1, 2, 3, 4, 5, 6), LIST(1, 1, 1, 0, 1, 1) };
    expect(&r, few, 0, 1, LIST(4));
    expect(&r, few, 1, 0, NULL);
    unload(&r);
}

static void every_number_once(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 7; node Abs x -> a; node Unique a -> y,i,v,n;"
             "node Unique a -> y2,i2,v2,n2 sorted=0; output y; output i; output v; output n");
    const double *const given[] = { LIST(2, 1, -1, 3, 4, -3, 3) };
    expect(&r, given, 0, 4, LIST(1, 2, 3, 4));
    expect(&r, given, 1, 4, LIST(1, 0, 3, 4));
    expect(&r, given, 2, 7, LIST(1, 0, 0, 2, 3, 2, 2));
    expect(&r, given, 3, 4, LIST(2, 1, 3, 1));
    unload(&r);
    r = load("opset 13; input x f32 7; node Abs x -> a; node Unique a -> y,i,v,n sorted=0;"
             "output y; output i; output v; output n");
    expect(&r, given, 0, 4, LIST(2, 1, 3, 4));
    expect(&r, given, 1, 4, LIST(0, 1, 3, 4));
    expect(&r, given, 2, 7, LIST(0, 1, 1, 2, 3, 2, 2));
    expect(&r, given, 3, 4, LIST(1, 2, 3, 1));
    unload(&r);
}

static void boxes_that_overlap_go(void **state)
{
    (void)state;
    running r = load("opset 13; input boxes f32 1,4,4; input scores f32 1,1,4; init most i64 1 = 3;"
                     "init overlap f32 1 = 0.5; init least f32 1 = 0.1; node Abs boxes -> b;"
                     "node NonMaxSuppression b,scores,most,overlap,least -> y; output y");
    const double *const given[] = { LIST(0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 0, 5, 1, 6),
                                    LIST(0.6, 0.9, 0.3, 0.05) };
    expect(&r, given, 0, 6, LIST(0, 0, 1, 0, 0, 2));
    const double *const none[] = { given[0], LIST(0.01, 0.02, 0, 0) };
    expect(&r, none, 0, 0, NULL);
    unload(&r);
}

static void turns_that_data_count_are_kept(void **state)
{
    (void)state;
    running r = load(
        "opset 13; input n i64; input x f32 2; init one f32 = 1;"
        "node Loop n,-,x -> y,z body={input i i64; input c bool; input s f32 2;"
        " node Add s,one -> t; node Identity c -> d; node Neg t -> u;"
        " output d; output t; output u}; node ReduceSum z -> k keepdims=0; output z; output k");
    expect(&r, GIVEN(LIST(3), LIST(1, 5)), 0, 6, LIST(-2, -6, -3, -7, -4, -8));
    expect(&r, GIVEN(LIST(3), LIST(1, 5)), 1, 1, LIST(-30));
    expect(&r, GIVEN(LIST(0), LIST(1, 5)), 0, 0, NULL);
    unload(&r);
}

static void what_would_look_behind_is_refused(void **state)
{
    (void)state;
    refused(X "node NonZero r -> p; init six i64 1 = 6; node Cast p -> q to=1; node Resize q,-,-,p "
              "-> y; output y",
            TL_UNSUPPORTED, "Resize");
    refused("opset 13; input x f32 4; input b bool; input c bool 4; node Not c -> d;"
            "node If b -> y then_branch={node Compress x,d -> p; output p}"
            " else_branch={node Compress x,c -> q; output q}; output y",
            TL_UNBOUND, "'b'");
    refused("opset 13; input x f32 70000,1000; node NonZero x -> y; output y", TL_UNSUPPORTED,
            "positions among 70000000 elements");
    refused("opset 13; input x f32 4; node Abs x -> a; node Compress x,c -> y; input c bool 4;"
            "node Add y,x -> z; output z",
            TL_UNSUPPORTED, "along an axis whose extent data decide");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_what_is_not_zero),
        cmocka_unit_test(what_is_gathered_is_counted),
        cmocka_unit_test(rows_are_kept),
        cmocka_unit_test(parts_from_both_ends),
        cmocka_unit_test(every_number_once),
        cmocka_unit_test(boxes_that_overlap_go),
        cmocka_unit_test(turns_that_data_count_are_kept),
        cmocka_unit_test(what_would_look_behind_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
