/* tuner/transfer/kin.c: kernels that are not of one class, and whose sums are.
 *
 *     conv_clip   conv(n,co,oh,ow,ci|rc,kh,kw,rl), then min(max(.., 0), 6), then four halos
 *     conv_add    conv(n,co,oh,ow,ci|rc,kh,kw,rl), then a residual
 *
 * What is decided about a kernel is above all the tiles of its sums. Decisions have the names of blocks and iters, so those of
 * one kernel are read into the other's space as they are. */
#include "runtime/base/text.h"
#include "schedule/analysis.h"
#include "tuner/transfer/transfer.h"

static bool add_sum(const tl_stmt *stmt, void *context)
{
    tl_text *text = context;
    if (stmt->kind != TL_STMT_BLOCK || !tl_block_is_reduction(stmt->u.block))
        return true;
    const tl_block *block = stmt->u.block;
    tl_text_format(text, "%s(", block->name);
    for (int i = 0; i < block->iter_count; i++)
        tl_text_format(text, "%s%s", block->iters[i].kind == TL_ITER_REDUCE ? "|" : ",",
                       block->iters[i].var->name);
    tl_text_add(text, ") ");
    return !text->failed;
}

bool tl_kin_of(tl_arena *arena, const tl_program *program, const char **out)
{
    tl_text text = { 0 };
    tl_stmt_visit(program->body, add_sum, &text);
    bool has_sums = text.size > 0 && !text.failed;
    *out = has_sums ? tl_arena_strdup(arena, tl_text_get(&text)) : "";
    tl_text_free(&text);
    return has_sums;
}

bool tl_kin_of_text(tl_arena *arena, const char *text, const char **out)
{
    tl_program *program;
    *out = "";
    return tl_program_parse(arena, text, "kin", &program, NULL) == TL_OK &&
           tl_kin_of(arena, program, out);
}
