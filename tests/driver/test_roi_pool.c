/* tests/driver/test_roi_pool.c: MaxRoiPool, on numbers that were worked out by hand, and regions that data count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/run_text.h"

static void regions_are_pooled(void **state)
{
    (void)state;
    double x[32];
    for (int i = 0; i < 32; i++)
        x[i] = i < 16 ? i : -i;
    running r = load("opset 13; input x f32 2,1,4,4; input r f32 4,5;"
                     "node MaxRoiPool x,r -> y pooled_shape=[2,2]; output y");
    /* all of it; one pixel; beside the image; the second image, from the right column on */
    const double regions[] = { 0, 0, 0, 3, 3, 0, 2, 2, 2, 2, 0, 10, 10, 12, 12, 1, 3, 0, 5, 3 };
    expect(&r, GIVEN(x, regions), 0, 16,
           LIST(5, 7, 13, 15, 10, 10, 10, 10, 0, 0, 0, 0, -19, 0, -27, 0));
    unload(&r);
    r = load("opset 22; input x f32 2,1,4,4; input r f32 1,5;"
             "node MaxRoiPool x,r -> y pooled_shape=[2,2] spatial_scale=0.5; output y");
    /* 0.5, 0.5, 2.5, 3.5: halves are rounded away from zero, and bins share pixels that they touch */
    expect(&r, GIVEN(x, LIST(0, 1, 1, 5, 7)), 0, 4, LIST(10, 11, 14, 15));
    unload(&r);
    refused("opset 13; input x f32 2,1,4,4; input r f32 4,4;"
            "node MaxRoiPool x,r -> y pooled_shape=[2,2]; output y",
            TL_BAD_MODEL, "five numbers");
    refused("opset 13; input x f32 2,1,4,4; input r f32 4,5;"
            "node MaxRoiPool x,r -> y pooled_shape=[2]; output y",
            TL_BAD_MODEL, "pooled_shape");
}

/* Regions of which data say how many there are. */
static void counted_regions_are_pooled(void **state)
{
    (void)state;
    double x[16];
    for (int i = 0; i < 16; i++)
        x[i] = i;
    running r =
        load("opset 16; input x f32 1,1,4,4; input r f32 3,5; input c bool 3; node Not c -> d;"
             "node Compress r,d -> k axis=0; node MaxRoiPool x,k -> y pooled_shape=[1,1];"
             "init one i64 1 = 1; init five i64 1 = 5; node Slice k,one,five,one -> b;"
             "init zero i64 1 = 0; node Shape k -> s; node Slice s,zero,one -> n;"
             "node ConstantOfShape n -> i0; node Cast i0 -> i to=7;"
             "node RoiAlign x,b,i -> z mode='avg' output_height=1 output_width=1 sampling_ratio=1"
             " coordinate_transformation_mode='output_half_pixel'; output y; output z");
    const double regions[] = { 0, 0, 0, 3, 3, 0, 2, 2, 2, 2, 0, 0, 0, 2, 2 };
    expect(&r, GIVEN(x, regions, LIST(1, 0, 0)), 0, 2, LIST(10, 10));
    expect(&r, GIVEN(x, regions, LIST(1, 1, 0)), 1, 1, LIST(5));
    expect(&r, GIVEN(x, regions, LIST(1, 1, 1)), 0, 0, NULL);
    unload(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_pooled),
        cmocka_unit_test(counted_regions_are_pooled),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
