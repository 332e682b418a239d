/* ir/graph_private.h: what the printer and the parser of graphs share. */
#ifndef TL_IR_GRAPH_PRIVATE_H
#define TL_IR_GRAPH_PRIVATE_H

enum {
    TL_GRAPH_PRINTED_ELEMENTS = 64, /* a constant of more prints as `...`, which parses as zeros */
    TL_GRAPH_PARSED_ELEMENTS =
        1 << 24, /* the most a parsed constant may have: the text itself is no measure of it */
};

#endif
