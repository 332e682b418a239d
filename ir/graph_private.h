/* ir/graph_private.h: what the printer and the parser of graphs share. */
#ifndef TL_IR_GRAPH_PRIVATE_H
#define TL_IR_GRAPH_PRIVATE_H

/* Constants of more elements print as `...`, which parses as zeros. */
#define TL_GRAPH_PRINTED_ELEMENTS 64
/* The most elements a parsed constant may have: the text itself is no measure of it. */
#define TL_GRAPH_PARSED_ELEMENTS  (1 << 24)

#endif
