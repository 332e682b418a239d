/* schedule/sketch_tile.c: the analytic model that chooses a register tile.
 *
 * One step of the reduction loads `columns` panel vectors, broadcasts `rows` stream elements and issues
 * rows*columns fused multiply-adds. With two FMA pipes and a latency of four cycles (Skylake to Ice Lake, Zen 3 to 5)
 * a step takes
 *
 *     max((a^4 + l^4)^(1/4), 4, columns * p)   cycles,     a = rows*columns / 2,  l = 0.75 * rows + columns,
 *
 * where a is the arithmetic and l the loads: three quarters of a cycle a broadcast (a loop of multiply-adds that each
 * broadcast from memory reaches 66 % of peak), half a cycle a panel vector and as much for its prefetch. Close to each
 * other the two disturb each other: on an Ice Lake tiles of 8 x 2 to 14 x 2 lose 13 to 20 % to that, 8 x 3 and 6 x 4
 * three, 4 x 4 twelve. p is what a panel vector costs that does not come from L1: about 3 cycles from L2,
 * prefetched, and 6 when the panel takes so much of L2 that the stream drives parts of it out (measured on an
 * Ice Lake: 512 channels at 7x7 with tiles of 7 x 2 run at half of peak, waiting for weights). Rows that do not divide
 * the extent leave a smaller tile at the end. The tile must fit the register file: rows*columns accumulators + columns
 * panel vectors + 1 broadcast, one register kept free. Measured on a Zen 5 and a Cascade Lake: tiles that break this
 * rule spill and fall to 30 % of peak. */
#include <math.h>
#include "runtime/base/checked.h"
#include "schedule/sketch_private.h"

#define START_CYCLES 20 /* of a tile: the branch out of the last one's loop was not foreseen */

static double step_cycles(int64_t rows, int64_t columns, double panel_cycles)
{
    double arithmetic = (double)(rows * columns) / 2;
    double loads = 0.75 * (double)rows + (double)columns;
    double panel = (double)columns * panel_cycles;
    double cycles = sqrt(hypot(arithmetic * arithmetic, loads * loads));
    cycles = cycles > panel ? cycles : panel;
    return cycles > 4 ? cycles : 4;
}

/* Cycles until the next vector of a panel of that many bytes is there, prefetched. */
static double panel_cycles(const tl_target *target, int64_t bytes)
{
    if (2 * bytes <= target->l1_bytes)
        return 0;
    return 4 * bytes <= target->l2_bytes ? 3 : 6;
}

/* An extent cut into pieces of `size`: how many whole ones, and what is left. */
typedef struct {
    double count[2];
    int64_t size[2];
} pieces;

static pieces cut(int64_t extent, int64_t size)
{
    int64_t rest = extent % size;
    return (pieces){ { (double)(extent / size), rest != 0 }, { size, rest } };
}

static int64_t vector_bytes(const tl_target *target)
{
    return tl_isa_infos[target->isa].vector_bits / 8;
}

double tl_tile_cycles(const tl_target *target, int64_t rows, int64_t lines, int64_t vectors,
                      int64_t steps, tl_register_tile t)
{
    pieces r = cut(rows, t.rows), l = cut(lines, t.lines), c = cut(vectors, t.columns);
    double cycles = 0, wait = panel_cycles(target, steps * t.columns * vector_bytes(target));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) {
                double count = r.count[i] * l.count[j] * c.count[k];
                if (count > 0)
                    cycles += count * (step_cycles(r.size[i] * l.size[j], c.size[k], wait) +
                                       START_CYCLES / (double)steps);
            }
    /* each tail is a second copy of the code, and its start-up */
    double tails = r.count[1] + l.count[1] + c.count[1];
    /* what streams through the tile: each panel vector is read once a row tile, each element once a column tile */
    double panel =
        (double)vectors * (double)(tl_ceildiv(rows, t.rows) * tl_ceildiv(lines, t.lines));
    double stream = (double)(rows * lines) * (double)tl_ceildiv(vectors, t.columns) / 4;
    return cycles * (1 + 0.03 * tails) + 0.05 * (panel + stream);
}

/* By how much longer it takes because cores are idle: tiles of columns are shared out, and those of lines and rows
 * where none of them is a tail. */
static double idle_factor(const tl_target *target, int64_t rows, int64_t lines, int64_t vectors,
                          int64_t outside, tl_register_tile t)
{
    double units = (double)outside * (double)tl_ceildiv(vectors, t.columns);
    if (lines % t.lines == 0) {
        units *= (double)(lines / t.lines);
        if (rows % t.rows == 0)
            units *= (double)(rows / t.rows);
    }
    double cores = target->cores > 1 ? target->cores : 1;
    return outside == 0 ? 1 : ceil(units / cores) * cores / units;
}

tl_register_tile tl_choose_tile(const tl_target *target, int64_t rows, int64_t lines,
                                int64_t vectors, int64_t steps, int64_t outside)
{
    int registers = tl_isa_infos[target->isa].vector_registers;
    tl_register_tile best = { 1, 1, vectors > 1 ? 2 : 1 };
    double least = tl_tile_cycles(target, rows, lines, vectors, steps, best) *
                   idle_factor(target, rows, lines, vectors, outside, best);
    /* one column would leave a broadcast for each multiply-add: load ports and shuffles then bind (cpu.md) */
    for (int64_t columns = vectors > 1 ? 2 : 1; columns <= 8 && columns <= vectors; columns++)
        for (int64_t r = 1; r <= 30 && r <= rows; r++)
            for (int64_t l = 1; l <= lines && (l == 1 || r == rows); l++) {
                tl_register_tile t = { r, l, columns };
                if (r * l * columns + columns + 1 > registers - 1)
                    break;
                double cycles = tl_tile_cycles(target, rows, lines, vectors, steps, t) *
                                idle_factor(target, rows, lines, vectors, outside, t);
                if (cycles < least) {
                    least = cycles;
                    best = t;
                }
            }
    return best;
}
