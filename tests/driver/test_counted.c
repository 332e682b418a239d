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

/* Rows of x whose condition is true, [n, 2], and n as numbers of one element. */
#define ROWS                                                                                     \
    "opset 13; input x f32 4,2; input c bool 4; node Not c -> d; node Compress x,d -> y axis=0;" \
    "node Shape y -> s; init none i64 = 0; init zero i64 1 = 0; init one i64 1 = 1;"             \
    "init two i64 1 = 2; init by i64 = 1; node Gather s,zero -> n1; node Squeeze n1,zero -> n;"
#define TWO_ROWS   ((const double *const[]){ LIST(1, 2, 3, 4, 5, 6, 7, 8), LIST(1, 0, 1, 0) })
#define THREE_ROWS ((const double *const[]){ LIST(1, 2, 3, 4, 5, 6, 7, 8), LIST(0, 0, 0, 1) })
#define NO_ROWS    ((const double *const[]){ LIST(1, 2, 3, 4, 5, 6, 7, 8), LIST(1, 1, 1, 1) })

static void shapes_are_made_of_counts(void **state)
{
    (void)state;
    running r =
        load(ROWS "node Concat n1,two -> t axis=0; node ConstantOfShape t -> z;"
                  "node Range none,n,by -> k; init seven f32 1,1 = 7; node Expand seven,t -> e;"
                  "node Add z,e -> f; node Add f,y -> w; node Cast k -> kf to=1;"
                  "node Unsqueeze kf,one -> ku; node Mul ku,w -> v; output v; output k; output e");
    expect(&r, TWO_ROWS, 0, 4, LIST(0, 0, 14, 15));
    expect(&r, TWO_ROWS, 1, 2, LIST(0, 1));
    expect(&r, THREE_ROWS, 0, 6, LIST(0, 0, 10, 11, 24, 26));
    expect(&r, THREE_ROWS, 2, 6, LIST(7, 7, 7, 7, 7, 7));
    expect(&r, NO_ROWS, 0, 0, NULL);
    unload(&r);
}

/* Rows become longer, shorter, and others. */
static void counted_rows_are_reshaped(void **state)
{
    (void)state;
    running r =
        load(ROWS "init minus i64 1 = -1; init wide i64 2 = 2,-1; node Reshape y,minus -> f;"
                  "node Reshape y,wide -> w; node Concat n1,minus -> t axis=0;"
                  "node Reshape f,t -> b; node Mul n1,two -> m; node Concat m,one -> u axis=0;"
                  "node Reshape w,u -> g; output f; output w; output b; output g");
    expect(&r, THREE_ROWS, 0, 6, LIST(1, 2, 3, 4, 5, 6));
    expect(&r, THREE_ROWS, 1, 6, LIST(1, 2, 3, 4, 5, 6));
    expect(&r, THREE_ROWS, 2, 6, LIST(1, 2, 3, 4, 5, 6));
    expect(&r, THREE_ROWS, 3, 6, LIST(1, 2, 3, 4, 5, 6));
    expect(&r, TWO_ROWS, 1, 4, LIST(3, 4, 7, 8));
    expect(&r, NO_ROWS, 0, 0, NULL);
    unload(&r);
    r = load(ROWS "init wide i64 2 = 2,-1; node Reshape y,wide -> w; node ReduceSum w,one -> v;"
                  "node Transpose w -> t; output v; output t");
    expect(&r, THREE_ROWS, 0, 2, LIST(6, 15));
    expect(&r, THREE_ROWS, 1, 6, LIST(1, 4, 2, 5, 3, 6));
    unload(&r);
}

static void counted_rows_are_cut_and_extended(void **state)
{
    (void)state;
    running r = load(
        ROWS "node Sub n1,one -> l; node Slice y,l,n1,zero -> p; node Slice y,zero,l,zero -> q;"
             "init three i64 2 = 1,1; node Mul three,n1 -> reps0; node Tile x,reps0 -> big;"
             "init zz i64 2 = 0,0; init four i64 1 = 4; node Sub four,n1 -> rest;"
             "node Concat zz,rest,zero -> pads axis=0; node Pad y,pads -> full;"
             "node Min n1,one -> k; node Size y -> size; output p; output q; output full;"
             "output size");
    expect(&r, THREE_ROWS, 0, 2, LIST(5, 6));
    expect(&r, THREE_ROWS, 1, 4, LIST(1, 2, 3, 4));
    expect(&r, THREE_ROWS, 2, 8, LIST(1, 2, 3, 4, 5, 6, 0, 0));
    expect(&r, TWO_ROWS, 2, 8, LIST(3, 4, 7, 8, 0, 0, 0, 0));
    expect(&r, THREE_ROWS, 3, 1, LIST(6));
    expect(&r, NO_ROWS, 0, 0, NULL);
    unload(&r);
    r = load(
        ROWS
        "node Concat n1,one -> reps axis=0; init row f32 2,1 = 5,6; node Tile row,reps -> t;"
        "node Min n1,two -> k; node TopK y,k -> v,i axis=0 largest=1; node Split y -> a,b axis=0;"
        "output t; output v; output a; output b");
    expect(&r, TWO_ROWS, 0, 4, LIST(5, 6, 5, 6));
    expect(&r, THREE_ROWS, 1, 4, LIST(5, 6, 3, 4));
    expect(&r, THREE_ROWS, 2, 4, LIST(1, 2, 3, 4));
    expect(&r, THREE_ROWS, 3, 2, LIST(5, 6));
    expect(&r, NO_ROWS, 1, 0, NULL);
    unload(&r);
}

/* x[x > 0] = 7, as PyTorch's exporter writes it. */
static void counted_updates_are_scattered(void **state)
{
    (void)state;
    running r =
        load(X "init seven f32 = 7; node NonZero r -> p; node Transpose p -> t perm=[1,0];"
               "node Shape t -> s; init none i64 1 = 0; node Gather s,none -> n;"
               "node Expand seven,n -> u; node ScatterND x,t,u -> y; node Size u -> k; output y;"
               "output k");
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 0, 6, LIST(7, -1, 7, -1, -1, 7));
    expect(&r, GIVEN(LIST(-1, -1, -1, -1, -1, -2)), 0, 6, LIST(-1, -1, -1, -1, -1, -2));
    expect(&r, GIVEN(LIST(1, -1, 2, -1, -1, 3)), 1, 1, LIST(3));
    unload(&r);
    r = load("opset 18; input x f32 4; input c bool 4; node Not c -> d; init at i64 4 = -1,0,1,0;"
             "node Compress at,d -> i; node Compress x,d -> u;"
             "node ScatterElements x,i,u -> y reduction='add'; output y");
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0, 1, 0, 1)), 0, 4, LIST(1, 5, 3, 5));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0, 0, 1, 0)), 0, 4, LIST(1 + 2 + 4, 2, 3, 5));
    unload(&r);
}

static void counted_rows_are_multiplied(void **state)
{
    (void)state;
    running r =
        load(ROWS "init w f32 2 = 10,1; init m f32 2,1 = 10,1; node MatMul y,w -> v;"
                  "node MatMul v,y -> q; node MatMul y,m -> p; output v; output q; output p");
    expect(&r, TWO_ROWS, 0, 2, LIST(34, 78));
    expect(&r, TWO_ROWS, 1, 2, LIST(34 * 3 + 78 * 7, 34 * 4 + 78 * 8));
    expect(&r, THREE_ROWS, 2, 3, LIST(12, 34, 56));
    expect(&r, NO_ROWS, 1, 2, LIST(0, 0));
    unload(&r);
}

/* Boxes of which data left some, as a detector's: how many are kept depends on how many there are. */
static void boxes_that_were_left_are_suppressed(void **state)
{
    (void)state;
    running r = load("opset 13; input boxes f32 4,4; input scores f32 4; init least f32 = 0.1;"
                     "init zero i64 1 = 0; init zero2 i64 2 = 0,1; init most i64 1 = 3; init "
                     "overlap f32 1 = 0.5;"
                     "init one i64 1 = 1; node Greater scores,least -> keep; node Compress "
                     "boxes,keep -> b axis=0;"
                     "node Compress scores,keep -> s; node Unsqueeze b,zero -> b3;"
                     "node Unsqueeze s,zero2 -> s3; node NonMaxSuppression b3,s3,most,overlap -> y;"
                     "init two i64 = 2; node Gather y,two -> at axis=1; node Gather s,at -> best;"
                     "node Shape best -> n; node Min n,one -> k; node Slice best,zero,k -> first;"
                     "output at; output best; output first");
    const double *const given[] = { LIST(0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 0, 5, 1, 6),
                                    LIST(0.05, 0.9, 0.3, 0.7) };
    expect(&r, given, 0, 3, LIST(0, 2, 1));
    expect(&r, given, 1, 3, LIST(0.9, 0.7, 0.3));
    expect(&r, given, 2, 1, LIST(0.9));
    const double *const none[] = { given[0], LIST(0.01, 0.02, 0, 0) };
    expect(&r, none, 2, 0, NULL);
    unload(&r);
}

/* A vector that data cut, in the middle of a computation. */
static void any_data_cut(void **state)
{
    (void)state;
    running r = load(
        "opset 13; input x f32 6000; init zero i64 1 = 0; node ArgMax x -> b axis=0 keepdims=1;"
        "init five i64 1 = 5; node Add b,five -> e; node Slice x,b,e -> y; node Slice x,zero,b -> "
        "z;"
        "node ReduceSum z -> s keepdims=0; output y; output s");
    static double x[6000];
    x[70] = 3;
    x[72] = 2;
    x[10] = 1;
    expect(&r, GIVEN(x), 0, 5, LIST(3, 0, 2, 0, 0));
    expect(&r, GIVEN(x), 1, 1, LIST(1));
    x[5998] = 4;
    expect(&r, GIVEN(x), 0, 2, LIST(4, 0));
    unload(&r);
}

/* They are as many, or one that broadcasts. */
static void counted_rows_meet_known_ones(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32 5,2; input c bool 5; node Compress x,c -> y axis=0;"
                     "init w f32 3,1 = 1,2,3; node Add y,w -> z; init p f32 3,1 = 1,10,100;"
                     "node Transpose z -> t perm=[1,0]; node MatMul t,p -> q;"
                     "node Transpose y -> u perm=[1,0]; node MatMul u,p -> s;"
                     "output z; output q; output s");
    const double *x = LIST(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    expect(&r, GIVEN(x, LIST(1, 0, 1, 0, 1)), 0, 6, LIST(2, 3, 7, 8, 12, 13));
    expect(&r, GIVEN(x, LIST(1, 0, 1, 0, 1)), 1, 2, LIST(1272, 1383));
    expect(&r, GIVEN(x, LIST(1, 0, 1, 0, 1)), 2, 2, LIST(951, 1062));
    expect(&r, GIVEN(x, LIST(0, 1, 0, 0, 0)), 0, 6, LIST(4, 5, 5, 6, 6, 7));
    expect(&r, GIVEN(x, LIST(0, 1, 0, 0, 0)), 1, 2, LIST(654, 765));
    unload(&r);
}

/* Two counts are the same number when they run, or one of them is 1. */
static void counted_rows_meet_others(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 4; input c bool 4; input d bool 3; node Compress x,c -> y;"
             "init w f32 3 = 10,20,30; node Compress w,d -> u; node Add y,u -> z;"
             "node MatMul y,u -> p; node Mul u,z -> q; output z; output p; output q");
    const double *x = LIST(1, 2, 3, 4);
    expect(&r, GIVEN(x, LIST(1, 0, 0, 1), LIST(0, 1, 1)), 0, 2, LIST(21, 34));
    expect(&r, GIVEN(x, LIST(1, 0, 0, 1), LIST(0, 1, 1)), 1, 1, LIST(140));
    expect(&r, GIVEN(x, LIST(1, 0, 0, 1), LIST(0, 1, 1)), 2, 2, LIST(420, 1020));
    expect(&r, GIVEN(x, LIST(1, 1, 0, 1), LIST(0, 1, 0)), 0, 3, LIST(21, 22, 24));
    expect(&r, GIVEN(x, LIST(0, 0, 1, 0), LIST(1, 1, 1)), 0, 3, LIST(13, 23, 33));
    expect(&r, GIVEN(x, LIST(0, 0, 0, 0), LIST(0, 0, 0)), 0, 0, NULL);
    unload(&r);
}

/* Of [n, 2, 3] elements, each row of which is [2, 3]: what an operator makes of the n that data count is what it makes of them
 * where the file says which they are. */
static const struct {
    const char *nodes;
} as_known[] = {
    { "init w f32 3 = 1,2,3; node RMSNormalization k,w -> y axis=-1; output y" },
    { "init w f32 2,3 = 1,2,3,4,5,6; node RMSNormalization k,w -> y axis=1; output y" },
    { "init w f32 = 2; node RMSNormalization k,w -> y axis=0; output y" },
    { "init w f32 3 = 1,2,3; node Transpose k -> p perm=[1,0,2]; init b f32 3 = 1,0,2;"
      "node LayerNormalization p,w,b -> y axis=1; output y" },
    { "init w f32 3,3 = 1,2,3,4,5,6,7,8,9; node Transpose k -> p perm=[1,0,2];"
      "node LayerNormalization p,w -> y,m,d axis=1; output y; output m; output d" },
    { "init w f32 3 = 1,2,3; node SimplifiedLayerNormalization k,w -> y axis=-1; output y" },
    { "node MeanVarianceNormalization k -> y axes=[0,1]; output y" },
    { "node LpNormalization k -> y axis=0; output y" },
    { "node LpNormalization k -> y p=1; output y" },
    { "init w f32 2 = 1,2; init b f32 2 = 3,4; node InstanceNormalization k,w,b -> y; output y" },
    { "init w f32 2 = 1,2; init b f32 2 = 3,4; node GroupNormalization k,w,b -> y num_groups=2; "
      "output y" },
    { "node GlobalMaxPool k -> y; output y" },
    { "node GlobalLpPool k -> y p=2; output y" },
    { "node LRN k -> y size=3; output y" },
    { "init s f32 = 0.5; init z u8 = 8; node QuantizeLinear k,s,z -> q; node DequantizeLinear "
      "q,s,z -> y; output y" },
    { "init s f32 2 = 0.5,0.25; init z u8 2 = 8,9; node QuantizeLinear k,s,z -> q axis=1;"
      "node DequantizeLinear q,s,z -> y axis=1; output y" },
    { "init s f32 3 = 0.5,0.25,1; init z u8 3 = 8,9,10; node QuantizeLinear k,s,z -> q axis=0;"
      "node DequantizeLinear q,s,z -> y axis=0; output y" },
    { "node DynamicQuantizeLinear k -> q,s,z; output q; output s; output z" },
    { "init s f32 = 0.5; init z u8 = 8; node QuantizeLinear k,s,z -> q; init w i8 3,2 = "
      "1,2,3,4,5,6;"
      "node MatMulInteger q,w,z -> y; output y" },
    { "init two i64 4 = 0,2,3,1; node Reshape k,two -> p; node SpaceToDepth p -> y blocksize=1; "
      "output y" },
    { "init two i64 4 = 0,2,3,1; node Reshape k,two -> p; node Concat p,p -> q axis=1; node "
      "DepthToSpace q -> y blocksize=2;"
      "output y" },
    { "init w f32 2,3,2 = 1,2,3,4,5,6,7,8,9,10,11,12; node Transpose k -> p perm=[1,0,2];"
      "node Conv p,w -> y; output y" },
    { "init w f32 2,5,1 = 1,2,3,4,5,6,7,8,9,10; node Concat k,k -> l axis=0; node Transpose l -> p "
      "perm=[1,0,2];"
      "init s i64 1 = 0; init e i64 1 = 5; init a i64 1 = 1; node Slice p,s,e,a -> q; node Conv "
      "q,w -> y; output y" },
    { "init z f32 2,3 = 1,2,3,4,5,6; node Scan z,k -> v,y num_scan_inputs=1 "
      "scan_input_directions=[1] "
      "body={input s f32 2,3; input e f32 2,3; node Sub e,s -> t; node Identity t -> u;"
      "output t f32 2,3; output u f32 2,3}; output v; output y" },
    { "init b f32 3 = 1,2,3; node com.microsoft.BiasGelu k,b -> y; output y" },
    { "init b f32 3 = 1,2,3; node com.microsoft.FastGelu k,b -> y; output y" },
    { "node com.microsoft.Gelu k -> y; output y" },
    { "node com.microsoft.QuickGelu k -> y; output y" },
    { "init w f32 3 = 1,2,3; node Neg k -> m; node com.microsoft.SkipLayerNormalization k,m,w -> "
      "y; output y" },
    { "init w f32 3 = 1,2,3; node Abs k -> m; node com.microsoft.SkipSimplifiedLayerNormalization "
      "k,m,w -> y; output y" },
    { "init w f32 2,3 = 1,2,3,4,5,6; node com.microsoft.FusedMatMul k,w -> y transB=1 alpha=0.5; "
      "output y" },
    { "init s i64 2 = 0,6; node Reshape k,s -> m; init w f32 6,2 = 1,2,3,4,5,6,7,8,9,10,11,12; "
      "init d f32 2 = 1,-400;"
      "node com.microsoft.FusedGemm m,w,d -> y activation='Relu'; output y" },
    { "init s i64 2 = 0,6; node Reshape k,s -> m; init w f32 6,2 = 1,2,3,4,5,6,7,8,9,10,11,12; "
      "init d f32 3,1 = 1,2,3;"
      "node Gemm m,w,d -> y alpha=0.5 beta=2.0; output y" },
    { "init s i64 2 = 0,6; node Reshape k,s -> m; node Gemm m,m -> y transA=1 alpha=0.5; output "
      "y" },
    { "init s i64 2 = 0,6; node Reshape k,s -> m; node Gemm m,m -> p transB=1; node Gemm p,m,m -> "
      "y beta=0.5; output y" },
    { "init s i64 2 = 0,6; node Reshape k,s -> m; init w f32 2,3 = 1,2,3,4,5,6; node Gemm w,m -> "
      "y; output y" },
};

static void what_data_count_is_as_if_it_were_known(void **state)
{
    (void)state;
    static const char *const conditions[] = { "input c bool 5;", "init c bool 5 = 0,1,1,0,1;" };
    for (size_t i = 0; i < sizeof as_known / sizeof *as_known; i++) {
        running both[2];
        double numbers[30], wanted[36];
        tl_tensor outputs[4];
        tl_diag diag;
        for (int k = 0; k < 30; k++)
            numbers[k] = 1 + k * 7 % 30 * (k % 3 == 1 ? -0.25 : 0.25);
        for (int k = 0; k < 2; k++) {
            char text[1024];
            snprintf(text, sizeof text,
                     "opset 23; opset com.microsoft.1; input x f32 5,2,3; %s node Compress x,c -> "
                     "k axis=0; %s",
                     conditions[k], as_known[i].nodes);
            both[k] = load(text);
        }
        if (run(&both[1], GIVEN(numbers), outputs, &diag) != TL_OK)
            fail_msg("%s: %s", as_known[i].nodes, diag.text);
        for (int o = 0; o < both[1].spec->output_count; o++) {
            int64_t count = tl_tensor_elements(&outputs[o]);
            for (int64_t k = 0; k < count; k++)
                wanted[k] = tl_tensor_get(&outputs[o], k);
            expect(&both[0], GIVEN(numbers, LIST(0, 1, 1, 0, 1)), o, count, wanted);
            tl_tensor_free(&outputs[o]);
        }
        unload(&both[0]);
        unload(&both[1]);
    }
}

static void what_would_look_behind_is_refused(void **state)
{
    (void)state;
    refused(X "node NonZero r -> p; init six i64 1 = 6; node Cast p -> q to=1; node Resize q,-,-,p "
              "-> y; output y",
            TL_UNSUPPORTED, "Resize");
    refused("opset 13; input x f32 70000,1000; node NonZero x -> y; output y", TL_UNSUPPORTED,
            "positions among 70000000 elements");
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
        cmocka_unit_test(shapes_are_made_of_counts),
        cmocka_unit_test(counted_rows_are_reshaped),
        cmocka_unit_test(counted_rows_are_cut_and_extended),
        cmocka_unit_test(counted_updates_are_scattered),
        cmocka_unit_test(counted_rows_are_multiplied),
        cmocka_unit_test(boxes_that_were_left_are_suppressed),
        cmocka_unit_test(any_data_cut),
        cmocka_unit_test(counted_rows_meet_known_ones),
        cmocka_unit_test(counted_rows_meet_others),
        cmocka_unit_test(what_data_count_is_as_if_it_were_known),
        cmocka_unit_test(what_would_look_behind_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
