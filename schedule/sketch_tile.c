/* schedule/sketch_tile.c: the analytic model that chooses a register tile.
 *
 * One step of the reduction loads `columns` panel vectors, broadcasts `rows` stream elements and issues
 * rows*columns fused multiply-adds. With two FMA pipes, two load ports and a latency of four cycles
 * (Skylake to Ice Lake, Zen 3 to 5) a step takes
 *
 *     max(rows*columns / 2, (rows + columns) / 2, 4)   cycles,
 *
 * and rows that do not divide the extent leave a smaller tile at the end. The tile must fit the register file:
 * rows*columns accumulators + columns panel vectors + 1 broadcast, one register kept free. Measured on a Zen 5 and a
 * Cascade Lake: tiles that break this rule spill and fall to 30 % of peak. */
#include "runtime/base/checked.h"
#include "schedule/sketch_private.h"

static double step_cycles(int64_t rows, int64_t columns)
{
    double arithmetic = (double)(rows * columns) / 2, loads = (double)(rows + columns) / 2;
    double cycles = arithmetic > loads ? arithmetic : loads;
    return cycles > 4 ? cycles : 4;
}

static double total_cycles(int64_t rows, int64_t vectors, tl_register_tile t)
{
    double full_columns = (double)(vectors / t.columns), full_rows = (double)(rows / t.rows);
    int64_t rest_columns = vectors % t.columns, rest_rows = rows % t.rows;
    double cycles = full_rows * full_columns * step_cycles(t.rows, t.columns);
    if (rest_rows)
        cycles += full_columns * step_cycles(rest_rows, t.columns);
    if (rest_columns)
        cycles += full_rows * step_cycles(t.rows, rest_columns);
    if (rest_rows && rest_columns)
        cycles += step_cycles(rest_rows, rest_columns);
    /* what streams through the tile: each panel vector is read once a row tile, each element once a column tile */
    double panel = (double)vectors * (double)tl_ceildiv(rows, t.rows);
    double stream = (double)rows * (double)tl_ceildiv(vectors, t.columns) / 4;
    double tails = (rest_rows != 0) +
                   (rest_columns != 0); /* each is a second copy of the code, and its start-up */
    return cycles * (1 + 0.03 * tails) + 0.05 * (panel + stream);
}

tl_register_tile tl_choose_tile(const tl_target *target, int64_t rows, int64_t vectors)
{
    int registers = tl_isa_infos[target->isa].vector_registers;
    tl_register_tile best = { 1, 1 };
    double least = total_cycles(rows, vectors, best);
    for (int64_t columns = 1; columns <= 8 && columns <= vectors; columns++)
        for (int64_t r = 1; r <= 30 && r <= rows; r++) {
            tl_register_tile t = { r, columns };
            if (r * columns + columns + 1 > registers - 1)
                break;
            double cycles = total_cycles(rows, vectors, t);
            if (cycles < least) {
                least = cycles;
                best = t;
            }
        }
    return best;
}
