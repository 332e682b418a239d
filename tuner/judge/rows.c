/* tuner/judge/rows.c: which rows samples may be made of, and what their columns mean. */
#include <stdio.h>
#include <string.h>
#include "tuner/cost/tenset.h"
#include "tuner/judge/corpus.h"
#include "tuner/search/tokens.h"

const tl_rows_info tl_rows_infos[TL_ROWS_COUNT] = {
#define ROWS(name, text, words) [TL_ROWS_##name] = { text, words },
#include "tuner/judge/rows.def"
#undef ROWS
};

static tl_sample_shape shape_of_tenset(void)
{
    tl_sample_shape shape = { .row.width = TL_TENSET_WIDTH + TL_TENSET_TAGS };
    tl_digest digest;
    char name[48];
    tl_digest_start(&digest);
    for (int i = 0; i < TL_TENSET_WIDTH; i++) {
        tl_tenset_name(i, name);
        tl_digest_add(&digest, name, strlen(name) + 1);
    }
    tl_digest_text(&digest, shape.row.digest);
    return shape;
}

tl_sample_shape tl_rows_shape(tl_rows rows)
{
    switch (rows) {
    case TL_ROWS_OURS:
        return tl_sample_shape_of_points();
    case TL_ROWS_TENSET:
        return shape_of_tenset();
    case TL_ROWS_COUNT:
        break;
    }
    return (tl_sample_shape){ 0 };
}
