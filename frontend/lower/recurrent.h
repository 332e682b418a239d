/* frontend/lower/recurrent.h: RECURRENT, a cell that runs over time: what its importer, shape rule and lowering share.
 *
 *     y[t] = cell(x[t], y[t-1])                 directions side by side, each forward in its own time
 *
 * Inputs, with D directions, T steps, B rows, H features and the cell's G gates:
 *
 *     x         [D*T, B, G*H]   what each step brings: its input's product and all biases, direction by direction
 *     weights   [D, G*H, H]     of the product with the state
 *     state     [D, B, H]       the first one; broadcasts
 *     memory    [D, B, H]       the first one of an LSTM; broadcasts
 *     live      [D*T, B] bool   where the state takes a step; elsewhere, and behind a sequence's end, it stays
 *     peephole  [D, 3*H]        of an LSTM: i o f
 *     bias      [D, H]          of gru_linear: inside the reset
 *
 * Output [D*T, B, H], the states; with keeps_memory [2*D*T, B, H]: behind them an LSTM's memories. Attributes: cell,
 * keeps_memory, couples (an LSTM's f is 1 - i), clip (absent: none), activations (tl_activation, in the order of ONNX) with
 * alpha and beta. */
#ifndef TL_FRONTEND_LOWER_RECURRENT_H
#define TL_FRONTEND_LOWER_RECURRENT_H
#include "ir/graph/graph.h"

typedef enum {
#define CELL(name, text, gates, activations) TL_CELL_##name,
#include "frontend/lower/recurrent_cells.def"
#undef CELL
    TL_CELL_COUNT
} tl_cell;
typedef struct {
    const char *text;
    int gates, activations;
} tl_cell_info;
extern const tl_cell_info tl_cell_infos[TL_CELL_COUNT];

typedef enum {
#define ACTIVATION(name, text, has_alpha, alpha, has_beta, beta) TL_ACTIVATION_##name,
#include "frontend/lower/recurrent_activations.def"
#undef ACTIVATION
    TL_ACTIVATION_COUNT
} tl_activation;
typedef struct {
    const char *text; /* in ONNX */
    bool has_alpha;
    double alpha; /* where the model gives none */
    bool has_beta;
    double beta;
} tl_activation_info;
extern const tl_activation_info tl_activation_infos[TL_ACTIVATION_COUNT];

enum { TL_MOST_ACTIVATIONS = 3 }; /* of a cell */

enum {
    TL_RECURRENT_X,
    TL_RECURRENT_WEIGHTS,
    TL_RECURRENT_STATE,
    TL_RECURRENT_MEMORY,
    TL_RECURRENT_LIVE,
    TL_RECURRENT_PEEPHOLE,
    TL_RECURRENT_BIAS,
    TL_RECURRENT_INPUTS
};

/* The node's cell; false when it names none. */
bool tl_cell_of(const tl_node *n, tl_cell *out);

/* Of a node whose shapes are known and agree. */
typedef struct {
    int64_t directions, steps, batch, hidden;
} tl_recurrent_sizes;
tl_recurrent_sizes tl_recurrent_sizes_of(const tl_node *n);

#endif
