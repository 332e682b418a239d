/* driver/verb/verb_conformance.c: tilth conformance DIR: a tree of ONNX test cases. */
#include <stdio.h>
#include <stdlib.h>
#include "driver/conformance/conformance.h"
#include "driver/verb/verbs.h"
#include "runtime/device/topology.h"

typedef struct {
    tl_session_options session;
    int64_t jobs;
    double limit_s, memory_gb;
    const char *filter, *expected, *write_expected;
} conformance_options;

static void show(int done, int total, int failed)
{
    if (tl_progress_is_live())
        tl_progress("%d of %d cases, %d failed", done, total, failed);
}

static tl_status check(const conformance_options *o, tl_diag *diag)
{
    if (o->jobs < 0 || o->jobs > 256)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--jobs: %lld is not in 0..256 (0: one a usable core)", (long long)o->jobs);
    if (o->session.threads < 1 || o->session.threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--threads: %lld is not in 1..%d",
                       (long long)o->session.threads, TL_MAX_THREADS);
    if (o->filter != NULL && o->write_expected != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--filter and --write-expected: one of them; the list is of the whole tree");
    return TL_OK;
}

/* What every child would find out again: this machine, and whether the options can be used. */
static tl_status find_out(const conformance_options *o, tl_arena *arena, tl_diag *diag)
{
    tl_target target;
    tl_cache *cache = NULL;
    tl_session none = { .arena = arena };
    tl_model_options options = { 0 };
    tl_topology_get();
    TL_TRY(tl_target_resolve(o->session.target, &target, diag));
    TL_TRY(tl_session_model_options(&none, &o->session, &options, diag));
    if (!o->session.no_cache)
        TL_TRY(tl_cache_open(o->session.cache, 0, &cache, diag));
    tl_cache_close(cache);
    return TL_OK;
}

static tl_status run(const char *folder, const conformance_options *o, tl_arena *arena,
                     int *exit_code, tl_diag *diag)
{
    tl_case_list list;
    tl_map *expected = NULL;
    TL_TRY(check(o, diag));
    TL_TRY(find_out(o, arena, diag));
    if (o->expected != NULL)
        TL_TRY(tl_expected_read(arena, o->expected, &expected, diag));
    TL_TRY(tl_find_cases(arena, folder, o->filter, &list, diag));

    tl_case_result *results = TL_NEW_ARRAY(arena, tl_case_result, list.count);
    const tl_case_runner runner = {
        .jobs = o->jobs > 0 ? (int)o->jobs : tl_topology_get()->threads,
        .limit_s = o->limit_s,
        .memory_bytes = (int64_t)(o->memory_gb * 1e9),
        .run = tl_run_case,
        .session = &o->session,
        .progress = show,
    };
    if (o->session.json)
        tl_print_env_json();
    tl_status status = tl_run_cases(&list, &runner, results, diag);
    tl_progress_done();
    if (status == TL_OK && o->write_expected != NULL)
        status = tl_expected_write(o->write_expected, &list, results, diag);
    if (status != TL_OK)
        return status;
    const tl_case_report report = { o->filter, expected, o->session.json };
    if (!tl_report_cases(arena, &list, results, &report))
        *exit_code = tl_status_exit_code(TL_WRONG_RESULT);
    return TL_OK;
}

int tl_verb_conformance(int argc, char **argv)
{
    conformance_options o = { .session = { .threads = 1, .no_database = true },
                              .limit_s = 60,
                              .memory_gb = 8 };
    const tl_option options[] = {
        { "--jobs", "-j", TL_OPTION_INT, "N", "cases at once (default: one a usable core)",
          &o.jobs },
        { "--filter", NULL, TL_OPTION_TEXT, "PATTERN",
          "only cases whose name has it in it, or matches it (* ? [)", &o.filter },
        { "--expected", NULL, TL_OPTION_TEXT, "FILE", "cases that have to pass, a name a line",
          &o.expected },
        { "--write-expected", NULL, TL_OPTION_TEXT, "FILE", "write the list of those that pass",
          &o.write_expected },
        { "--time-limit", NULL, TL_OPTION_REAL, "S", "for one case, in seconds (60; 0: none)",
          &o.limit_s },
        { "--memory-limit", NULL, TL_OPTION_REAL, "GB", "address space for one case (8; 0: any)",
          &o.memory_gb },
        { "--threads", NULL, TL_OPTION_INT, "N", "threads that a case runs on (1)",
          &o.session.threads },
        { "--target", NULL, TL_OPTION_TEXT, tl_target_words,
          "what to compile for (cpu: this machine)", &o.session.target },
        { "--numerics", NULL, TL_OPTION_TEXT, "relaxed|strict|tf32",
          "strict: sums in their order (relaxed)", &o.session.numerics },
        { "--cache", NULL, TL_OPTION_TEXT, "DIR", "compiled objects (default: none are kept)",
          &o.session.cache },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &o.session.json },
        { 0 },
    };
    const tl_verb_help help = {
        "conformance",
        "DIR",
        "Runs a tree of ONNX test cases: folders with model.onnx and test_data_set_N/input_K.pb, "
        "output_K.pb.",
        "Each case is compiled and run in a process of its own: what crashes, hangs or takes too "
        "much memory has failed,\n"
        "what tilth refuses as not supported is skipped. An element is right when |actual - "
        "expected| <= 1e-7 + 1e-3\n"
        "|expected|, unless DIR/MANIFEST.csv (columns rtol, atol) or the case's data.json says "
        "otherwise; integers are\n"
        "right when they are equal. The table counts a case for each operator in its graph; -v "
        "tells why cases are\n"
        "skipped. Exit 1 when a case failed; with --expected, when one that is listed did not "
        "pass.",
        "  tilth conformance onnx/backend/test/data --filter 'test_conv*'\n"
        "  tilth conformance cases --write-expected passing.txt\n"
        "  tilth conformance cases --expected passing.txt --jobs 2",
        options,
        1,
        1,
        NULL,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    o.session.no_cache = o.session.cache == NULL;
    tl_arena *arena = tl_arena_create(0);
    tl_status status = arena == NULL || TL_ARENA_GUARD(arena)
                           ? tl_fail(&diag, TL_NO_MEMORY, "out of memory")
                           : run(positional[0], &o, arena, &code, &diag);
    if (status != TL_OK)
        code = tl_report_failure("conformance", status, &diag);
    tl_arena_destroy(arena);
    return code;
}
