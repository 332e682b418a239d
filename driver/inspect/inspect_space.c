/* driver/inspect/inspect_space.c: tilth inspect MODEL --space: for each distinct kernel its lowerings, what their
 * sketches leave open and how many points that makes. */
#include <stdio.h>
#include <string.h>
#include "driver/inspect/inspect.h"
#include "schedule/sketch/sketch.h"
#include "tuner/search/space.h"

enum { MOST_LOWERINGS = 16, SEED = 1 };

typedef struct {
    const tl_model_kernel *kernel;
    int occurrences;
    const tl_kernel_lowering *lowering;
    tl_space_size size;
    const tl_decision *decisions; /* along the default schedule */
    int decision_count;
} entry;

static bool is_sketch(const tl_decision *d)
{
    const char *dot = strrchr(d->name, '.');
    return dot != NULL && strcmp(dot, ".sketch") == 0 && tl_sketch_name(d->options[0]) != NULL;
}

static void add_option(const tl_decision *d, int option, bool quoted, tl_text *out)
{
    const char *quote = quoted ? "\"" : "";
    if (is_sketch(d))
        tl_text_format(out, "%s%s%s", quote, tl_sketch_name(d->options[option]), quote);
    else
        tl_text_format(out, "%lld", (long long)d->options[option]);
}

static void add_json(const entry *e, tl_text *out)
{
    tl_text_format(out, "{\"record\":\"space\",\"kernel\":");
    tl_json_add_text(out, e->kernel->kernel->name);
    tl_text_format(out,
                   ",\"occurrences\":%d,\"lowering\":\"%s\",\"rtol\":%.3g,\"ttol\":%.3g,"
                   "\"points\":%.*g,\"exact\":%s,\"decisions\":[",
                   e->occurrences, e->lowering->name, e->lowering->rtol, e->lowering->ttol,
                   e->size.exact ? 9 : 3, e->size.points, e->size.exact ? "true" : "false");
    for (int i = 0; i < e->decision_count; i++) {
        const tl_decision *d = &e->decisions[i];
        tl_text_format(out, "%s{\"name\":", i > 0 ? "," : "");
        tl_json_add_text(out, d->name);
        tl_text_add(out, ",\"options\":[");
        for (int k = 0; k < d->count; k++) {
            tl_text_add(out, k > 0 ? "," : "");
            add_option(d, k, true, out);
        }
        tl_text_add(out, "],\"initial\":");
        add_option(d, d->initial, true, out);
        tl_text_add(out, "}");
    }
    tl_text_add(out, "]}\n");
}

static void add_lines(const entry *e, bool first, tl_text *out)
{
    if (first)
        tl_text_format(out, "%s%s%s", e->kernel->kernel->name, e->occurrences > 1 ? ", " : "",
                       e->occurrences > 1 ? "" : "\n");
    if (first && e->occurrences > 1)
        tl_text_format(out, "%d times\n", e->occurrences);
    tl_text_format(out, "  %-24s %s%.*g point%s, error within %.1e\n", e->lowering->name,
                   e->size.exact ? "" : "about ", e->size.exact ? 9 : 2, e->size.points,
                   e->size.exact && e->size.points == 1 ? "" : "s", e->lowering->rtol);
    for (int i = 0; i < e->decision_count; i++) {
        const tl_decision *d = &e->decisions[i];
        tl_text_format(out, "    %-22s", d->name);
        for (int k = 0; k < d->count; k++) {
            tl_text_add(out, k == d->initial ? " [" : " ");
            add_option(d, k, false, out);
            tl_text_add(out, k == d->initial ? "]" : "");
        }
        tl_text_add(out, "\n");
    }
}

static tl_status describe(const tl_session *session, const tl_target *target, tl_numerics numerics,
                          entry *e, bool json, tl_text *out, tl_diag *diag)
{
    const tl_kernel_lowering *found;
    tl_measure_lowering lowerings[MOST_LOWERINGS];
    tl_space *space;
    int count;
    TL_TRY(tl_kernel_lowerings(session->arena, e->kernel->kernel, numerics, &found, &count, diag));
    count = count < MOST_LOWERINGS ? count : MOST_LOWERINGS;
    for (int i = 0; i < count; i++)
        lowerings[i] =
            (tl_measure_lowering){ found[i].name, found[i].text, found[i].rtol, found[i].ttol };
    tl_measure_task task = { .name = e->kernel->kernel->name,
                             .lowering_count = count,
                             .lowerings = lowerings };
    TL_TRY(tl_space_create(session->arena, &task, target, session->threads, TL_SPACE_FULL, &space,
                           diag));
    for (int i = 0; i < count; i++) {
        tl_variant v;
        e->lowering = &found[i];
        TL_TRY(tl_space_build(space, session->arena, i, NULL, 0, &v, diag));
        TL_TRY(tl_space_count(space, i, SEED, &e->size, diag));
        e->decisions = v.point.decisions;
        e->decision_count = v.point.count;
        if (json)
            add_json(e, out);
        else
            add_lines(e, i == 0, out);
    }
    return TL_OK;
}

tl_status tl_inspect_space(const tl_session *session, tl_numerics numerics, bool json, tl_text *out,
                           tl_diag *diag)
{
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    if (!json)
        tl_text_add(out,
                    "What the schedule of each kernel leaves open, by lowering; in brackets what "
                    "the default takes.\n"
                    "Other answers may open or close further decisions.\n\n");
    for (int i = 0; i < facts->kernel_count; i++) {
        entry e = { .kernel = &facts->kernels[i] };
        if (e.kernel->same_as != i)
            continue;
        for (int k = i; k < facts->kernel_count; k++)
            e.occurrences += facts->kernels[k].same_as == i;
        TL_TRY(describe(session, facts->target, numerics, &e, json, out, diag));
    }
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "no memory for the text") : TL_OK;
}
