/* tests/driver/test_control.c: If, Loop and Scan through the whole pipeline, as regions of steps that a run decides on: one
 * executable for all numbers of turns and all conditions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/run_text.h"

/* ---- If ---- */

static void a_branch_is_taken(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32 3; input c bool; init two f32 = 2;"
                     "node If c -> y then_branch={node Mul x,two -> p; output p}"
                     " else_branch={node Neg x -> n; node Add n,two -> q; output q};"
                     "node Abs y -> z; output z; output y");
    assert_int_equal(count_steps(&r, TL_STEP_CHOICE), 1);
    expect(&r, GIVEN(LIST(1, 2, 3), LIST(1)), 1, 3, LIST(2, 4, 6));
    expect(&r, GIVEN(LIST(1, 2, 5), LIST(0)), 1, 3, LIST(1, 0, -3));
    expect(&r, GIVEN(LIST(1, 2, 5), LIST(0)), 0, 3, LIST(1, 0, 3));
    unload(&r);
}

/* Branches that give what they were given, a constant, or one value twice. */
static void branches_may_compute_nothing(void **state)
{
    (void)state;
    running r = load(
        "opset 13; input x f32 2; input c bool; init k f32 2 = 7,8;"
        "node If c -> y,z then_branch={node Identity x -> p; node Neg p -> n; output n; output n}"
        " else_branch={node Identity x -> q; node Identity k -> r; output q; output r};"
        "output y; output z");
    expect(&r, GIVEN(LIST(1, 2), LIST(1)), 0, 2, LIST(-1, -2));
    expect(&r, GIVEN(LIST(1, 2), LIST(1)), 1, 2, LIST(-1, -2));
    expect(&r, GIVEN(LIST(1, 2), LIST(0)), 0, 2, LIST(1, 2));
    expect(&r, GIVEN(LIST(1, 2), LIST(0)), 1, 2, LIST(7, 8));
    unload(&r);
}

static void branches_of_other_extents(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32 4; input b bool; input c bool 4; node Not c -> d;"
                     "init zero i64 1 = 0; init two i64 1 = 2;"
                     "node If b -> y then_branch={node Compress x,d -> p; output p}"
                     " else_branch={node Slice x,zero,two -> q; output q}; node Neg y -> z;"
                     "node ReduceSum z -> s keepdims=0; output y; output s");
    assert_int_equal(count_steps(&r, TL_STEP_CHOICE), 1);
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(1), LIST(0, 1, 0, 0)), 0, 3, LIST(1, 3, 4));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(1), LIST(0, 1, 0, 0)), 1, 1, LIST(-8));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0), LIST(0, 1, 0, 0)), 0, 2, LIST(1, 2));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0), LIST(0, 1, 0, 0)), 1, 1, LIST(-3));
    unload(&r);
}

/* What comes out is of another rank in each branch, until it is of one again. */
static void branches_of_other_ranks(void **state)
{
    (void)state;
    const char *text =
        "opset 13; input x f32 5000,1; init zero f32 = 0; node ReduceSum x -> t keepdims=0;"
        "node Less t,zero -> b; init zero1 i64 1 = 0; init three i64 1 = 3; init one i64 1 = 1;"
        "node Slice x,zero1,three -> v;"
        "node If b -> y then_branch={node Squeeze v,one -> p; output p}"
        " else_branch={node Identity v -> q; output q};"
        "node Neg y -> z; init minus i64 1 = -1; node Reshape z,minus -> f; node Shape y -> s;"
        "node ReduceSum s -> r keepdims=0; output f; output r";
    static double x[5000] = { 1, 2, 3, 4 };
    running r = load(text);
    expect(&r, GIVEN(x), 0, 3, LIST(-1, -2, -3));
    expect(&r, GIVEN(x), 1, 1, LIST(4));
    x[4] = -100;
    expect(&r, GIVEN(x), 0, 3, LIST(-1, -2, -3));
    expect(&r, GIVEN(x), 1, 1, LIST(3));
    unload(&r);
    refused("opset 13; input x f32 5000,1; init zero f32 = 0; node ReduceSum x -> t keepdims=0;"
            "node Less t,zero -> b; init one i64 1 = 1;"
            "node If b -> y then_branch={node Squeeze x,one -> p; output p}"
            " else_branch={node Identity x -> q; output q}; output y",
            TL_UNSUPPORTED, "data decide how many axes it has");
}

/* ---- Loop ---- */

static const char counting[] =
    "opset 13; input n i64; input x f32 2; init one f32 = 1;"
    "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 2;"
    " node Add s,one -> t; node Identity c -> d; output d; output t}; output y";

static void data_say_how_often(void **state)
{
    (void)state;
    running r = load(counting);
    assert_int_equal(count_steps(&r, TL_STEP_LOOP), 1);
    for (int n = 0; n < 5; n++)
        expect(&r, GIVEN(LIST(n), LIST(1, 5)), 0, 2, LIST(1 + n, 5 + n));
    expect(&r, GIVEN(LIST(-3), LIST(1, 5)), 0, 2, LIST(1, 5));
    expect(&r, GIVEN(LIST(-9e18), LIST(1, 5)), 0, 2, LIST(1, 5));
    expect(&r, GIVEN(LIST(10000), LIST(1, 5)), 0, 2, LIST(10001, 10005));
    unload(&r);
}

static void an_endless_one_is_stopped(void **state)
{
    (void)state;
    tl_tensor outputs[1];
    tl_diag diag;
    running r = load(counting);
    assert_int_equal(run(&r, GIVEN(LIST(9e18), LIST(1, 5)), outputs, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "goes on after 1048576 turns"));
    tl_tensor_free(&outputs[0]);
    unload(&r);
}

/* While the sum is small: the condition comes from the state, before the first turn from an input. */
static void data_end_it(void **state)
{
    (void)state;
    running r = load("opset 13; input x f32; input c bool; input w f32; init limit f32 = 100;"
                     "node Loop -,c,x -> y body={input i i64; input d bool; input s f32;"
                     " node Mul s,w -> t; node Less t,limit -> e; output e; output t}; output y");
    expect(&r, GIVEN(LIST(1), LIST(1), LIST(3)), 0, 1, LIST(243));
    expect(&r, GIVEN(LIST(60), LIST(1), LIST(2)), 0, 1, LIST(120));
    expect(&r, GIVEN(LIST(1), LIST(0), LIST(3)), 0, 1, LIST(1));
    unload(&r);
}

/* States that change places, and one that is handed on as it is; the turn's number counts. */
static void states_change_places(void **state)
{
    (void)state;
    running r = load("opset 13; input n i64; input a f32; input b f32;"
                     "node Loop n,-,a,b,a -> x,y,z body={input i i64; input c bool; input p f32;"
                     " input q f32; input r f32; node Identity c -> d; node Identity p -> p2;"
                     " node Cast i -> j to=1; node Add r,j -> r2; node Identity q -> q2;"
                     " output d; output q2; output p2; output r2}; output x; output y; output z");
    expect(&r, GIVEN(LIST(0), LIST(1), LIST(2)), 0, 1, LIST(1));
    expect(&r, GIVEN(LIST(1), LIST(1), LIST(2)), 0, 1, LIST(2));
    expect(&r, GIVEN(LIST(3), LIST(1), LIST(2)), 0, 1, LIST(2));
    expect(&r, GIVEN(LIST(4), LIST(1), LIST(2)), 1, 1, LIST(2));
    expect(&r, GIVEN(LIST(4), LIST(1), LIST(2)), 2, 1, LIST(1 + 0 + 1 + 2 + 3));
    unload(&r);
}

static void loops_nest(void **state)
{
    (void)state;
    running r = load(
        "opset 13; input n i64; input m i64; input x f32; init one f32 = 1; init yes bool = 1;"
        "node Loop n,-,x -> y body={input i i64; input c bool; input s f32;"
        " node Loop m,yes,s -> t body={input j i64; input e bool; input u f32;"
        "  node Less u,big -> small; init big f32 = 20;"
        "  node If small -> v then_branch={node Add u,one -> v1; output v1}"
        "   else_branch={node Add u,u -> v2; output v2}; node Identity e -> f; output f; output v};"
        " node Identity c -> d; output d; output t}; output y");
    expect(&r, GIVEN(LIST(3), LIST(4), LIST(0)), 0, 1, LIST(12));
    expect(&r, GIVEN(LIST(0), LIST(4), LIST(0)), 0, 1, LIST(0));
    expect(&r, GIVEN(LIST(2), LIST(6), LIST(10)), 0, 1, LIST(80));
    unload(&r);
}

/* Numbers are appended until their sum is large enough: as an exported decoder does. */
static void states_grow(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 1; input yes bool; init one f32 = 1; init limit f32 = 20;"
             "init last i64 1 = -1;"
             "node Loop -,yes,x -> y body={input i i64; input c bool; input s f32 1;"
             " node Gather s,last -> l axis=0; node Add l,one -> m; node Concat s,m -> t axis=0;"
             " node ReduceSum t -> sum keepdims=0; node Less sum,limit -> d; output d; output t};"
             "node Neg y -> z; output y; output z");
    assert_int_equal(count_steps(&r, TL_STEP_LOOP), 1);
    expect(&r, GIVEN(LIST(1), LIST(1)), 0, 6, LIST(1, 2, 3, 4, 5, 6));
    expect(&r, GIVEN(LIST(15), LIST(1)), 1, 2, LIST(-15, -16));
    expect(&r, GIVEN(LIST(1), LIST(0)), 0, 1, LIST(1));
    expect(&r, GIVEN(LIST(-3), LIST(1)), 0, 11, LIST(-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
    unload(&r);
}

/* By as much as a turn finds in it, which is a row at most. */
static void states_grow_by_their_own(void **state)
{
    (void)state;
    running r =
        load("opset 13; input n i64; input x f32 2; init zero i64 1 = 0; init one i64 1 = 1;"
             "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 2;"
             " node Slice s,zero,one -> f; node Concat s,f -> t axis=0;"
             " node Identity c -> d; output d; output t}; output y");
    expect(&r, GIVEN(LIST(3), LIST(5, 6)), 0, 5, LIST(5, 6, 5, 5, 5));
    expect(&r, GIVEN(LIST(0), LIST(5, 6)), 0, 2, LIST(5, 6));
    unload(&r);
}

/* A cache of keys grows along its second axis, and what is made of it has its length. */
static void a_cache_grows(void **state)
{
    (void)state;
    running r =
        load("opset 13; input n i64; input x f32 2,1; init one f32 = 1; init ones f32 2,1 = 1,10;"
             "init second i64 1 = 1; init zero f32 = 0;"
             "node Loop n,-,x,x -> y,z,k body={input i i64; input c bool; input s f32 2,1;"
             " input a f32 2,1; node Cast i -> j to=1; node Mul ones,j -> new;"
             " node Concat s,new -> t axis=1; node Softmax t -> w axis=1;"
             " node ReduceSum t,second -> b; node Shape t -> h; node Identity c -> d;"
             " output d; output t; output b; output h}; output y; output z; output k");
    expect(&r, GIVEN(LIST(3), LIST(5, 6)), 0, 8, LIST(5, 0, 1, 2, 6, 0, 10, 20));
    expect(&r, GIVEN(LIST(3), LIST(5, 6)), 1, 2, LIST(8, 36));
    expect(&r, GIVEN(LIST(3), LIST(5, 6)), 2, 6, LIST(2, 2, 2, 3, 2, 4));
    expect(&r, GIVEN(LIST(0), LIST(5, 6)), 0, 2, LIST(5, 6));
    tl_tensor outputs[3];
    tl_diag diag;
    assert_int_equal(run(&r, GIVEN(LIST(2000), LIST(5, 6)), outputs, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "goes on after 1024 turns"));
    for (int i = 0; i < 3; i++)
        tl_tensor_free(&outputs[i]);
    unload(&r);
}

/* At most so many of the latest are kept; others become fewer. */
static void states_are_bounded(void **state)
{
    (void)state;
    running r =
        load("opset 13; input n i64; input x f32 1; init four i64 1 = -4; init big i64 1 = 1000000;"
             "init one i64 1 = 1;"
             "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 1;"
             " node Cast i -> j to=1; node Unsqueeze j,zero -> m; init zero i64 1 = 0;"
             " node Concat s,m -> t axis=0; node Slice t,four,big -> u; node Identity c -> d;"
             " output d; output u}; output y");
    expect(&r, GIVEN(LIST(2), LIST(7)), 0, 3, LIST(7, 0, 1));
    expect(&r, GIVEN(LIST(100000), LIST(7)), 0, 4, LIST(99996, 99997, 99998, 99999));
    unload(&r);
    r = load("opset 13; input n i64; input x f32 5; init one i64 1 = 1; init big i64 1 = 1000000;"
             "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 5;"
             " node Slice s,one,big -> u; node Identity c -> d; output d; output u}; output y");
    expect(&r, GIVEN(LIST(2), LIST(1, 2, 3, 4, 5)), 0, 3, LIST(3, 4, 5));
    expect(&r, GIVEN(LIST(7), LIST(1, 2, 3, 4, 5)), 0, 0, NULL);
    unload(&r);
}

/* What a turn reads depends on its number. */
static void turns_read_parts(void **state)
{
    (void)state;
    running r = load("opset 13; input n i64; input x f32 4; init one i64 1 = 1; init zero i64 1 = "
                     "0; init k f32 = 0;"
                     "node Loop n,-,k -> y body={input i i64; input c bool; input s f32;"
                     " node Unsqueeze i,zero -> a; node Add a,one -> b; node Slice x,zero,b -> p;"
                     " node ReduceSum p -> t keepdims=0; node Add s,t -> u; node Identity c -> d;"
                     " output d; output u}; output y");
    expect(&r, GIVEN(LIST(1), LIST(1, 2, 3, 4)), 0, 1, LIST(1));
    expect(&r, GIVEN(LIST(4), LIST(1, 2, 3, 4)), 0, 1, LIST(1 + 3 + 6 + 10));
    expect(&r, GIVEN(LIST(6), LIST(1, 2, 3, 4)), 0, 1, LIST(1 + 3 + 6 + 30));
    unload(&r);
}

/* ---- Scan ---- */

static void a_long_scan_is_a_loop(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 2,600; input s f32 2;"
             "node Scan s,x -> y,z num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[1]"
             " body={input a f32 2; input b f32 2; node Add a,b -> t; node Identity t -> u;"
             " output t; output u}; output y; output z");
    double x[1200], y[1200], last[2];
    for (int i = 0; i < 1200; i++)
        x[i] = i % 7;
    for (int row = 0; row < 2; row++)
        for (int i = 0; i < 600; i++)
            y[row * 600 + i] = x[row * 600 + i] + (i > 0 ? y[row * 600 + i - 1] : 1);
    last[0] = y[599];
    last[1] = y[1199];
    assert_int_equal(count_steps(&r, TL_STEP_LOOP), 1);
    expect(&r, GIVEN(x, LIST(1, 1)), 0, 2, last);
    expect(&r, GIVEN(x, LIST(1, 1)), 1, 1200, y);
    unload(&r);
}

static void a_scan_of_what_is_counted(void **state)
{
    (void)state;
    running r =
        load("opset 13; input x f32 4; input c bool 4; node Not c -> d; node Compress x,d -> v;"
             "init k f32 = 0;"
             "node Scan k,v -> y,z num_scan_inputs=1 body={input a f32; input b f32;"
             " node Add a,b -> t; node Identity t -> u; output t; output u}; output y; output z;"
             "node Scan k,v -> y2,z2 num_scan_inputs=1 scan_input_directions=[1] body={input a "
             "f32; input b f32;"
             " node Add a,b -> t; node Identity t -> u; output t; output u}; output z2");
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0, 1, 0, 0)), 0, 1, LIST(8));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0, 1, 0, 0)), 1, 3, LIST(1, 4, 8));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(0, 1, 0, 0)), 2, 3, LIST(4, 7, 8));
    expect(&r, GIVEN(LIST(1, 2, 3, 4), LIST(1, 1, 1, 1)), 1, 0, NULL);
    unload(&r);
}

/* ---- forms ---- */

static void cached_ones_are_the_same(void **state)
{
    (void)state;
    running r = load(counting), again = load(counting);
    assert_true(tl_model_get_facts(again.model)->from_cache);
    expect(&again, GIVEN(LIST(7), LIST(1, 5)), 0, 2, LIST(8, 12));
    unload(&r);
    unload(&again);
}

static void graphs_with_bodies_read_back(void **state)
{
    (void)state;
    tl_text text = { 0 }, again = { 0 };
    tl_arena *arena = tl_arena_create(0);
    tl_graph *read;
    tl_diag diag = { 0 };
    running r = load("opset 13; input n i64; input c bool; input x f32 2; init one f32 = 1;"
                     "node Loop n,-,x -> y,z body={input i i64; input d bool; input s f32 2;"
                     " node If c -> t then_branch={node Add s,one -> p; output p}"
                     "  else_branch={node Sub s,one -> q; output q}; node Identity d -> e;"
                     " node Neg t -> u; output e; output t; output u}; output z");
    expect(&r, GIVEN(LIST(2), LIST(1), LIST(1, 5)), 0, 4, LIST(-2, -6, -3, -7));
    expect(&r, GIVEN(LIST(2), LIST(0), LIST(1, 5)), 0, 4, LIST(0, -4, 1, -3));
    const tl_graph *g = tl_model_get_facts(r.model)->graph;
    tl_graph_print(g, &text);
    if (tl_graph_parse_beside(arena, tl_text_get(&text), "text", g, &read, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_graph_print(read, &again);
    assert_string_equal(tl_text_get(&text), tl_text_get(&again));
    tl_text_free(&text);
    tl_text_free(&again);
    tl_arena_destroy(arena);
    unload(&r);
}

/* ---- what is refused ---- */

/* Loops inside one another, each of one turn or of as many as n says. */
static char *nested(int depth, bool known)
{
    tl_text text = { 0 };
    tl_text_format(&text,
                   "opset 13; input n i64; input x f32 2; init one i64 = 1; init k f32 = 1;");
    for (int i = 0; i < depth; i++)
        tl_text_format(
            &text,
            "node Loop %s,-,%s%d -> y%d body={input i%d i64; input c%d bool; input x%d f32 2;",
            known ? "one" : "n", "x", i, i, i, i, i + 1);
    tl_text_format(&text, "node Add x%d,k -> y%d", depth, depth);
    for (int i = depth - 1; i >= 0; i--)
        tl_text_format(&text, "; node Identity c%d -> d%d; output d%d; output y%d}", i, i, i,
                       i + 1);
    tl_text_format(&text, "; node Identity x -> x0; output y0");
    return text.data;
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    tl_model *model;
    tl_diag diag;
    char *text = nested(20, false);
    running r = load(text);
    free(text);
    expect(&r, GIVEN(LIST(1), LIST(1, 5)), 0, 2, LIST(2, 6));
    expect(&r, GIVEN(LIST(0), LIST(1, 5)), 0, 2, LIST(1, 5));
    unload(&r);
    text = nested(20, true);
    r = load(text);
    free(text);
    expect(&r, GIVEN(LIST(9), LIST(1, 5)), 0, 2, LIST(2, 6));
    unload(&r);
    text = nested(100, false);
    assert_int_equal(try_load(text, &model, &diag), TL_BAD_MODEL);
    free(text);
}

static void states_keep_their_type(void **state)
{
    (void)state;
    refused("opset 13; input x f32 2; init n i64 = 100000;"
            "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 2;"
            " node Concat s,s -> t axis=0; node Identity c -> d; output d; output t}; output y",
            TL_UNSUPPORTED, "grows by more than a constant");
    refused("opset 13; input x f32 2; input c bool;"
            "node Loop -,c,x -> y body={input i i64; input c1 bool; input s f32 2;"
            " node Concat s,s -> t axis=0; node Identity c1 -> d; output d; output t}; output y",
            TL_UNSUPPORTED, "grows by more than a constant");
}

static void bad_bodies_are_refused(void **state)
{
    (void)state;
    refused("opset 13; input n i64; input x f32 2;"
            "node Loop n,-,x -> y body={input i i64; input c bool; input s f32 2;"
            " node Concat s,s -> t axis=0; node Identity c -> d; output d; output t}; output y",
            TL_UNBOUND, "'n'");
    refused("opset 13; input n i64; input x f32 2;"
            "node Loop n,-,x -> y body={input i i64; input c bool;"
            " node Identity c -> d; output d; output c}; output y",
            TL_UNBOUND, "'n'");
    refused("opset 13; input c bool; input x f32 2;"
            "node If c -> y then_branch={node Missing x -> p; output p}"
            " else_branch={node Neg x -> q; output q}; output y",
            TL_UNBOUND, "'c'"); /* the other branch would do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_is_taken),
        cmocka_unit_test(branches_may_compute_nothing),
        cmocka_unit_test(branches_of_other_extents),
        cmocka_unit_test(branches_of_other_ranks),
        cmocka_unit_test(data_say_how_often),
        cmocka_unit_test(an_endless_one_is_stopped),
        cmocka_unit_test(data_end_it),
        cmocka_unit_test(states_change_places),
        cmocka_unit_test(loops_nest),
        cmocka_unit_test(states_grow),
        cmocka_unit_test(states_grow_by_their_own),
        cmocka_unit_test(a_cache_grows),
        cmocka_unit_test(states_are_bounded),
        cmocka_unit_test(turns_read_parts),
        cmocka_unit_test(a_long_scan_is_a_loop),
        cmocka_unit_test(a_scan_of_what_is_counted),
        cmocka_unit_test(cached_ones_are_the_same),
        cmocka_unit_test(graphs_with_bodies_read_back),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(states_keep_their_type),
        cmocka_unit_test(bad_bodies_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
