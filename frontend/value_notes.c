/* frontend/value_notes.c: the annotation of a value. */
#include "frontend/value_notes.h"

const tl_value_notes *tl_notes_of(const tl_value *v)
{
    static const tl_value_notes none;
    return v->annotation != NULL ? v->annotation : &none;
}

tl_value_notes *tl_notes_make(tl_graph *g, tl_value *v)
{
    if (v->annotation == NULL)
        v->annotation = TL_NEW(g->arena, tl_value_notes);
    return v->annotation;
}
