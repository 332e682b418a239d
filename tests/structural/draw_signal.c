/* tests/structural/draw_signal.c: windows and transforms of signals. */
#include "tests/structural/draw.h"

bool draw_window(drawing *c)
{
    int64_t size[1] = { draw_between(c, 2, 20) };
    const draw_value *n = draw_numbers(c, draw_chance(c, 50) ? TL_I64 : TL_I32, 1, size, true);
    draw_node(c, draw_word(c, "HannWindow HammingWindow BlackmanWindow"), DRAW_IN(n), 1,
              "periodic=%d", draw_chance(c, 50));
    draw_result(c, TL_F32, 1, size, NULL, DRAW_REAL(-0.1, 1.1));
    return true;
}

bool draw_dft(drawing *c)
{
    int64_t n = draw_between(c, 2, 12),
            dims[3] = { draw_between(c, 1, 3), n, draw_between(c, 1, 2) };
    bool one_sided = dims[2] == 1 && draw_chance(c, 40), inverse = !one_sided && draw_chance(c, 40);
    int64_t out[3] = { dims[0], one_sided ? n / 2 + 1 : n, 2 }, axis[1] = { 1 };
    const draw_value *x = draw_new(c, TL_F32, 3, dims, draw_usual(TL_F32)),
                     *a = draw_numbers(c, TL_I64, 1, axis, true);
    draw_node(c, "DFT", DRAW_IN(x, NULL, a), 1, "inverse=%d onesided=%d", inverse, one_sided);
    draw_result(c, TL_F32, 3, out, NULL, DRAW_REAL(-50, 50));
    return true;
}
