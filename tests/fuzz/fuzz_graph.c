/* tests/fuzz/fuzz_graph.c: the text of a graph, then what the passes make of the graph. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_graph *g;
    if (TL_ARENA_GUARD(arena) == 0) {
        const char *text = fuzz_text(arena, bytes, size);
        tl_status status = tl_graph_parse(arena, text, "fuzz", &g, &diag);
        fuzz_check_refusal(status, &diag);
        if (status == TL_OK)
            fuzz_graph(arena, g);
    }
    tl_arena_destroy(arena);
    return 0;
}
