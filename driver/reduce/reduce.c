/* driver/reduce/reduce.c: rounds of edits, of which those stay that leave the model bad. */
#include "driver/reduce/reduce.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driver/cli/shape_option.h"
#include "driver/output/work_folder.h"
#include "driver/reduce/check_model.h"
#include "driver/reduce/edits.h"
#include "driver/reduce/infer_types.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"

enum { MOST_ROUNDS = 64 };

typedef struct {
    const tl_reduce_options *o;
    tl_reduce_result *result;
    tl_arena *arena; /* of what outlives the candidates */
    tl_check *check;
    const char *folder, *candidate;
    tl_text best;
    tl_reduce_step step;
    int64_t start_ns;
    tl_status status; /* of the checks: of one that could not be made */
    tl_diag *diag;
} reduction;

static bool is_over(const reduction *r)
{
    double seconds = (double)(tl_clock_ns() - r->start_ns) * 1e-9;
    return r->status != TL_OK || tl_work_interrupted() ||
           (r->o->seconds > 0 && seconds > r->o->seconds);
}

static tl_reduce_size size_of(const tl_draft *d, const tl_text *bytes)
{
    const Onnx__GraphProto *g = d->graph;
    return (tl_reduce_size){ (int)g->n_node, (int)g->n_input, (int)g->n_output,
                             (int)g->n_initializer, (int64_t)bytes->size };
}

/* Takes `bytes` as the best when it is bad, else frees it. */
static bool offer(reduction *r, const tl_draft *d, tl_text *bytes)
{
    bool is_bad = false;
    bool is_same = bytes->size == r->best.size && r->result->checks > 0 &&
                   memcmp(bytes->data, r->best.data, bytes->size) == 0;
    if (!is_same && !is_over(r)) {
        r->status = tl_file_write(r->candidate, bytes->data, bytes->size, r->diag);
        if (r->status == TL_OK)
            r->status = tl_check_model(r->check, &is_bad, r->diag);
        r->step.checks = ++r->result->checks;
    }
    is_bad &= r->status == TL_OK;
    if (is_bad) {
        tl_text_free(&r->best);
        r->best = *bytes;
        r->step.size = size_of(d, bytes);
    } else {
        tl_text_free(bytes);
    }
    if (r->o->progress != NULL)
        r->o->progress(&r->step, r->o->user);
    return is_bad;
}

/* ---- what is known of the tensors ---- */

static int infer_in_child(void *user)
{
    const reduction *r = user;
    return tl_status_exit_code(tl_infer_types(&r->best, r->folder));
}

static void offer_file(reduction *r, const char *name)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text bytes = { 0 };
    tl_draft draft;
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return;
    }
    const char *path = tl_arena_format(arena, "%s/%s", r->folder, name);
    if (tl_file_read(path, &bytes, NULL) == TL_OK && tl_draft_read(arena, &bytes, &draft))
        offer(r, &draft, &bytes);
    else
        tl_text_free(&bytes);
    unlink(path);
    tl_arena_destroy(arena);
}

/* In a child: that the model cannot be read may be what is bad about it. Then what its file declares has to do. */
static void infer_types(reduction *r)
{
    tl_child_result result;
    tl_child child = { .run = infer_in_child,
                       .user = r,
                       .limit_s = r->o->limit_s,
                       .memory_gb = r->o->memory_gb,
                       .is_over = tl_work_interrupted };
    if (is_over(r) || tl_child_run(&child, &result, NULL) != TL_OK)
        return;
    offer_file(r, "typed.onnx");
    offer_file(r, "folded.onnx");
}

/* ---- rounds of edits ---- */

static bool edit_draft(reduction *r, tl_arena *arena, const tl_edit *edit, int first, int end,
                       int way)
{
    tl_draft draft;
    tl_text bytes;
    if (TL_ARENA_GUARD(arena))
        return false;
    if (!tl_draft_read(arena, &r->best, &draft) || !edit->make(&draft, first, end, way))
        return false;
    tl_draft_tidy(&draft);
    return tl_draft_write(&draft, &bytes) && offer(r, &draft, &bytes);
}

static bool try_edit(reduction *r, const tl_edit *edit, int first, int end, int way)
{
    tl_arena *arena = tl_arena_create(0);
    bool done = arena != NULL && edit_draft(r, arena, edit, first, end, way);
    tl_arena_destroy(arena);
    if (done && edit->is_of_shapes)
        infer_types(r);
    return done;
}

static int count_parts(const reduction *r, const tl_edit *edit)
{
    tl_arena *arena = tl_arena_create(0);
    tl_draft draft;
    int count = 0;
    if (arena != NULL && TL_ARENA_GUARD(arena) == 0 && tl_draft_read(arena, &r->best, &draft))
        count = edit->count(&draft);
    tl_arena_destroy(arena);
    return count;
}

/* All at once, else the upper and the lower half; what is edited takes nothing from those before it but what it alone
 * needed, so that halves may have become shorter when their turn comes. Whether anything was done. */
static bool edit_parts(reduction *r, const tl_edit *edit, int first, int end)
{
    int count = count_parts(r, edit);
    end = end < count ? end : count;
    if (first >= end || is_over(r))
        return false;
    for (int way = 0; way < edit->ways; way++)
        if (try_edit(r, edit, first, end, way))
            return true;
    if (end - first == 1)
        return false;
    int middle = first + (end - first) / 2;
    bool upper = edit_parts(r, edit, middle, end);
    return edit_parts(r, edit, first, middle) || upper;
}

static bool make_round(reduction *r, bool is_last)
{
    bool any = false;
    r->step.round = ++r->result->rounds;
    for (int i = 0; i < tl_edit_total && !is_over(r); i++) {
        const tl_edit *edit = &tl_edits[i];
        if (edit->is_once != is_last)
            continue;
        r->step.pass = edit->name;
        if (!edit_parts(r, edit, 0, count_parts(r, edit)))
            continue;
        any = true;
        if (r->o->passed != NULL)
            r->o->passed(&r->step, r->o->user);
    }
    return any;
}

/* ---- the beginning and the end ---- */

/* The shapes that were asked for become the model's own. */
static tl_status bind_shapes(reduction *r, tl_draft *d, const tl_text *bytes)
{
    const tl_shape_override *given, *bound;
    tl_onnx_signature signature;
    int count;
    if (r->o->session->shapes.count == 0)
        return TL_OK;
    TL_TRY(tl_shape_options_parse(r->arena, &r->o->session->shapes, &given, r->diag));
    TL_TRY(tl_onnx_read_signature_memory(r->arena, bytes->data, bytes->size, &signature, r->diag));
    TL_TRY(tl_onnx_bind_shapes(r->arena, &signature, given, r->o->session->shapes.count, &bound,
                               &count, r->diag));
    tl_draft_bind(d, bound, count);
    return TL_OK;
}

static tl_status begin(reduction *r, const tl_text *bytes)
{
    tl_draft draft;
    tl_text bound;
    if (!tl_draft_read(r->arena, bytes, &draft))
        return tl_fail(r->diag, TL_BAD_MODEL, "%s: no ONNX model", r->o->model);
    TL_TRY(bind_shapes(r, &draft, bytes));
    if (!tl_draft_write(&draft, &bound))
        return tl_fail(r->diag, TL_NO_MEMORY, "out of memory");
    r->result->before = r->step.size = size_of(&draft, &bound);
    bool is_bad = offer(r, &draft, &bound);
    TL_TRY(r->status);
    tl_check_text(r->check, r->result->how, sizeof r->result->how);
    if (!is_bad && !tl_work_interrupted())
        return tl_fail(r->diag, TL_BAD_ARGUMENT,
                       "%s: there is nothing to reduce: --check %s ends with %s", r->o->model,
                       r->o->check, r->result->how);
    return is_bad ? TL_OK : tl_fail(r->diag, TL_INTERRUPTED, "interrupted; nothing was written");
}

static tl_status reduce(reduction *r, const tl_text *bytes)
{
    if (TL_ARENA_GUARD(r->arena))
        return tl_fail(r->diag, TL_NO_MEMORY, "out of memory");
    r->candidate = tl_arena_format(r->arena, "%s/candidate.onnx", r->folder);
    r->check = tl_check_create(r->arena, r->o, r->candidate, tl_work_interrupted);
    TL_TRY(begin(r, bytes));
    infer_types(r);
    while (r->result->rounds < MOST_ROUNDS && make_round(r, false))
        ;
    make_round(r, true);
    TL_TRY(r->status);
    r->result->is_interrupted = tl_work_interrupted();
    r->result->is_complete = !is_over(r);
    r->result->after = r->step.size;
    r->result->seconds = (double)(tl_clock_ns() - r->start_ns) * 1e-9;
    return tl_file_write(r->o->output, r->best.data, r->best.size, r->diag);
}

static tl_status check_output(const tl_reduce_options *o, tl_diag *diag)
{
    struct stat model, output;
    if (stat(o->model, &model) == 0 && stat(o->output, &output) == 0 &&
        model.st_dev == output.st_dev && model.st_ino == output.st_ino)
        return tl_fail(diag, TL_BAD_ARGUMENT, "-o %s: that is the model, which stays as it is",
                       o->output);
    return TL_OK;
}

tl_status tl_reduce(const tl_reduce_options *options, tl_reduce_result *out, tl_diag *diag)
{
    reduction r = { .o = options, .result = out, .start_ns = tl_clock_ns(), .diag = diag };
    tl_text bytes = { 0 };
    char *folder;
    *out = (tl_reduce_result){ 0 };
    TL_TRY(check_output(options, diag));
    TL_TRY(tl_onnx_embed(options->model, &bytes, diag));
    tl_status status = tl_work_folder_make(options->output, &folder, diag);
    if (status == TL_OK) {
        r.folder = folder;
        r.arena = tl_arena_create(0);
        status =
            r.arena != NULL ? reduce(&r, &bytes) : tl_fail(diag, TL_NO_MEMORY, "out of memory");
        tl_work_folder_remove(folder);
    }
    tl_arena_destroy(r.arena);
    tl_text_free(&r.best);
    tl_text_free(&bytes);
    return status;
}
