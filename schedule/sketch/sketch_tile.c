/* schedule/sketch/sketch_tile.c: the analytic model that chooses a register tile.
 *
 * One step of the reduction loads `columns` panel vectors, broadcasts `rows` stream elements and issues
 * rows*columns fused multiply-adds. The numbers are those of the built-in profile (ir/program/machine.def), of Skylake to
 * Ice Lake and Zen 3 to 5: two multiply-adds and two loads a cycle, and a latency of four cycles. With them a step takes
 *
 *     max((a^4 + l^4 + w^4)^(1/4), columns * p)   cycles,     a = rows*columns / 2,  l = 0.75 * rows + columns,  w = 4,
 *
 * where a is the arithmetic, l the loads, and w what a sum waits for its own last multiply-add: three quarters of a cycle a
 * broadcast (a loop of multiply-adds that each broadcast from memory reaches 66 % of peak), half a cycle a panel vector and
 * as much for its prefetch. Close to each other they disturb each other: on an Ice Lake tiles of 8 x 2 to 14 x 2 lose 13 to
 * 20 % to loads, 8 x 3 and 6 x 4 three, 4 x 4 twelve; on an Emerald Rapids with sixteen registers of 256 bits, which begins
 * three broadcasts a cycle, tiles of 3 x 2 take 4.3 cycles, 4 x 2 4.7, 5 x 2 5.3, 6 x 2 6.1, 7 x 1 4.7, 14 x 1 7.3. p is
 * what a panel vector costs that does not come from L1: one and a half times the 2 cycles of a line from L2, and twice that
 * when the panel takes so much of L2 that the stream drives parts of it out (measured on an Ice Lake: 512 channels at 7x7
 * with tiles of 7 x 2 run at half of peak, waiting for weights). A panel that is read once comes from memory, some 14 cycles
 * a line, and each doubling of the places that are read by turns takes 6 % off: the hardware fetches ahead inside of a page,
 * for each place (Ice Lake: 12.5 GB/s from one, 13.3 from two, 14.6 from four, 16 from eight and from sixteen). A panel that
 * is an input lies as it came: a step's vectors are a piece of a row, the next step's lie a page further on, and that costs
 * as much as two lines more (Zen 3, 2048 rows of 1000: pieces of 4, 5, 6 and 7 vectors are 1.6, 2.1, 2.7 and 2.6 times as
 * fast as pieces of two). Rows that do not divide the extent leave a smaller tile at the end. With T taps written out
 * (sketch_taps.c) T steps take that together, with a broadcast for each element that rows and taps share, and w is 4*T. The
 * tile must fit the register file: rows*columns accumulators + T*columns panel vectors + T broadcasts (T = 1 without taps),
 * one register kept free unless the tile is one vector wide. Measured on a Zen 5 and a Cascade Lake: tiles that break this
 * rule spill and fall to 30 % of peak. */
#include <math.h>
#include "ir/program/machine.h"
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

static const double ROW_LINES = 2; /* what it costs to go on in another row, in lines */

static int64_t tap_count(const tl_taps *taps)
{
    return taps->count > 0 ? taps->count : 1;
}

int64_t tl_tile_room(const tl_target *target, const tl_tile_problem *p, int64_t columns)
{
    const bool fills = p->is_near && columns == 1 && p->taps.count == 0;
    const int64_t registers = tl_isa_infos[target->isa].vector_registers - (fills ? 0 : 1);
    const int64_t count = tap_count(&p->taps);
    return registers < count ? 0 : (registers - count) / columns - count;
}

int64_t tl_tile_elements(int64_t rows, const tl_taps *taps)
{
    int64_t elements = rows; /* of the first tap */
    for (int64_t t = 1; t < taps->count; t++)
        for (int64_t r = 0; r < rows; r++) {
            bool shared = false; /* with row q of an earlier tap */
            for (int64_t u = 0; u < t && !shared; u++) {
                int64_t moved = taps->row_step * r + taps->tap_step * (t - u);
                shared = moved % taps->row_step == 0 && moved / taps->row_step >= 0 &&
                         moved / taps->row_step < rows;
            }
            elements += !shared;
        }
    return elements;
}

/* Cycles of one step of a tile of so many rows in each of so many lines. */
static double step_cycles(const tl_machine_unit *unit, int64_t rows, int64_t lines, int64_t columns,
                          double panel_cycles, const tl_taps *taps)
{
    double count = (double)tap_count(taps);
    double arithmetic = count * (double)(rows * lines * columns) / unit->fma_per_cycle;
    double vectors = count * (double)columns;
    /* a vector of the panel is loaded and prefetched */
    double loads = unit->broadcast_cycles * (double)(lines * tl_tile_elements(rows, taps)) +
                   vectors * 2 / unit->loads_per_cycle;
    double panel = vectors * panel_cycles;
    double chain = unit->fma_latency * count;
    double cycles = sqrt(sqrt(pow(arithmetic, 4) + pow(loads, 4) + pow(chain, 4)));
    return (cycles > panel ? cycles : panel) / count;
}

static int64_t vector_bytes(const tl_target *target)
{
    return tl_isa_infos[target->isa].vector_bits / 8;
}

/* Cycles until the next vector of a panel is there, prefetched. */
static double panel_cycles(const tl_target *target, const tl_tile_problem *p, int64_t columns)
{
    const tl_machine *machine = tl_machine_of(target);
    int64_t bytes = p->steps * columns * vector_bytes(target);
    double lines = (double)vector_bytes(target) / TL_LINE_BYTES;
    if (p->streams)
        return machine->memory_stream_cycles / 14 * (14 - 0.9 * log2((double)columns)) * lines;
    if (p->scattered)
        return machine->memory_stream_cycles * (lines + ROW_LINES / (double)columns);
    if (2 * bytes <= target->l1_bytes)
        return 0;
    return (4 * bytes <= target->l2_bytes ? 1.5 : 3) * machine->l2_line_cycles;
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

/* By how much longer it takes because cores are idle: tiles of columns are shared out, and those of lines and rows
 * where none of them is a tail. */
static double idle_factor(const tl_target *target, const tl_tile_problem *p, tl_register_tile t)
{
    double units = (double)p->outside * (double)tl_ceildiv(p->vectors, t.columns);
    if (p->lines % t.lines == 0) {
        units *= (double)(p->lines / t.lines);
        if (p->rows % t.rows == 0)
            units *= (double)(p->rows / t.rows);
    }
    double cores = target->cores > 1 ? target->cores : 1;
    return p->outside == 0 ? 1 : ceil(units / cores) * cores / units;
}

double tl_tile_cycles(const tl_target *target, const tl_tile_problem *p, tl_register_tile t)
{
    pieces r = cut(p->rows, t.rows), l = cut(p->lines, t.lines), c = cut(p->vectors, t.columns);
    double cycles = 0, wait = panel_cycles(target, p, t.columns);
    const tl_machine_unit *unit = tl_machine_unit_of(target);
    /* the branch out of the last tile's loop was not foreseen */
    double start = tl_machine_of(target)->mispredict_cycles / (double)p->steps;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) {
                double count = r.count[i] * l.count[j] * c.count[k];
                if (count > 0)
                    cycles += count *
                              (step_cycles(unit, r.size[i], l.size[j], c.size[k], wait, &p->taps) +
                               start);
            }
    /* each tail is a second copy of the code, and its start-up */
    double tails = r.count[1] + l.count[1] + c.count[1];
    /* what streams through the tile: each panel vector is read once a row tile, each element once a column tile */
    double panel =
        (double)p->vectors * (double)(tl_ceildiv(p->rows, t.rows) * tl_ceildiv(p->lines, t.lines));
    double stream = (double)(p->rows * p->lines) * (double)tl_ceildiv(p->vectors, t.columns) / 4;
    return (cycles * (1 + 0.03 * tails) + 0.05 * (panel + stream)) * idle_factor(target, p, t);
}

tl_register_tile tl_choose_tile(const tl_target *target, const tl_tile_problem *p)
{
    /* one column leaves a broadcast for each multiply-add, which is too many where each is of another line */
    const int64_t fewest = p->vectors > 1 && p->taps.count == 0 && !p->is_near ? 2 : 1;
    tl_register_tile best = { 1, 1, fewest };
    double least = tl_tile_cycles(target, p, best);
    for (int64_t columns = fewest; columns <= 8 && columns <= p->vectors; columns++) {
        int64_t room = tl_tile_room(target, p, columns);
        for (int64_t r = 1; r <= 30 && r <= p->rows; r++)
            for (int64_t l = 1; l <= p->lines && r * l <= room && (l == 1 || r == p->rows); l++) {
                tl_register_tile t = { r, l, columns };
                double cycles = tl_tile_cycles(target, p, t);
                if (cycles < least) {
                    least = cycles;
                    best = t;
                }
            }
    }
    return best;
}
