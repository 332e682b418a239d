/* frontend/graph/graph_form.c: decisions about cuts and layouts, taken from a text. */
#include <string.h>
#include "frontend/value_notes.h"
#include "frontend/frontend.h"

/* Whether the line is the word, a blank and the name. */
static bool says(const char *line, size_t size, const char *word, const char *name)
{
    size_t head = strlen(word);
    return size == head + 1 + strlen(name) && strncmp(line, word, head) == 0 && line[head] == ' ' &&
           strncmp(line + head + 1, name, size - head - 1) == 0;
}

void tl_graph_set_form(tl_graph *g, const char *form)
{
    for (int i = 0; i < g->value_count; i++) {
        tl_value *v = g->values[i];
        bool is_cut = false, is_plain = false;
        for (const char *line = form; *line != '\0';) {
            size_t size = strcspn(line, "\n");
            is_cut |= says(line, size, "cut", v->name);
            is_plain |= says(line, size, "plain", v->name);
            line += size + (line[size] == '\n');
        }
        tl_notes_make(g, v)->is_cut = is_cut;
        tl_notes_make(g, v)->is_plain = is_plain;
    }
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < tl_op_bodies(g->nodes[i]->op); k++)
            tl_graph_set_form(g->nodes[i]->bodies[k], form);
}
