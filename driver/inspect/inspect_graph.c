/* driver/inspect/inspect_graph.c: a model's graph as text. Whoever is given it may read it back, so that is tried first. */
#include <string.h>
#include "driver/inspect/inspect.h"

tl_status tl_inspect_graph(const tl_session *session, tl_text *out, tl_diag *diag)
{
    const tl_graph *graph = tl_model_get_facts(session->model)->graph;
    tl_graph *again;
    tl_text text = { 0 };
    tl_graph_print(graph, out);
    if (out->failed)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for the text");
    if (tl_graph_parse_beside(session->arena, tl_text_get(out), "the graph", graph, &again, diag) !=
        TL_OK) {
        tl_context(diag, "the text of a graph does not read back");
        return TL_INTERNAL;
    }
    tl_graph_print(again, &text);
    bool same = !text.failed && strcmp(tl_text_get(out), tl_text_get(&text)) == 0;
    tl_text_free(&text);
    if (!same)
        return tl_fail(diag, TL_INTERNAL, "the text of the graph reads back as another one");
    return TL_OK;
}
