/* driver/verb/verb_cache.c: tilth cache: what is kept between runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "driver/verb/verbs.h"
#include "driver/cli/session.h"

static const char *action(int index)
{
    static const char *const actions[] = { "show", "list", "trim", "clear", NULL };
    return actions[index];
}

static void print_size(const char *title, int64_t bytes)
{
    printf("%-9s %.1f MB\n", title, (double)bytes / 1048576);
}

static void show(tl_cache *cache, bool json)
{
    tl_cache_stats s = tl_cache_measure(cache);
    int64_t asked = s.all_hits + s.all_misses;
    if (json) {
        printf("{\"record\":\"cache\",\"folder\":");
        tl_print_json_text(tl_cache_folder(cache));
        printf(",\"entries\":%" PRId64 ",\"bytes\":%" PRId64 ",\"limit_bytes\":%" PRId64
               ",\"hits\":%" PRId64 ",\"misses\":%" PRId64 ",\"stores\":%" PRId64 "}\n",
               s.entries, s.bytes, s.limit, s.all_hits, s.all_misses, s.all_stores);
        return;
    }
    printf("%-9s %s\n", "folder", tl_cache_folder(cache));
    printf("%-9s %" PRId64 "\n", "entries", s.entries);
    print_size("size", s.bytes);
    print_size("limit", s.limit);
    printf("%-9s %" PRId64 " of %" PRId64 " lookups, since it was made or cleared\n", "hits",
           s.all_hits, asked);
}

static void print_entry(void *user, const tl_cache_entry *e)
{
    const bool *json = user;
    if (*json) {
        printf("{\"record\":\"entry\",\"key\":");
        tl_print_json_text(e->key);
        printf(",\"kind\":\"%s\",\"bytes\":%" PRId64 ",\"used_s\":%" PRId64 "}\n",
               e->executable ? "model" : "kernel", e->bytes, e->used_s);
        return;
    }
    char when[32] = "";
    time_t t = (time_t)e->used_s;
    struct tm local;
    if (localtime_r(&t, &local) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    printf("%-6s  %10.1f KB  %s  %s\n", e->executable ? "model" : "kernel", (double)e->bytes / 1024,
           when, e->key);
}

static void trim(tl_cache *cache, int64_t limit, bool json)
{
    tl_cache_stats before = tl_cache_measure(cache);
    if (limit == 0 || before.bytes > limit)
        tl_cache_trim(cache, limit);
    tl_cache_stats after = tl_cache_measure(cache);
    if (json)
        printf("{\"record\":\"trimmed\",\"entries\":%" PRId64 ",\"bytes\":%" PRId64 "}\n",
               before.entries - after.entries, before.bytes - after.bytes);
    else
        printf("removed %" PRId64 " entries, %.1f MB; %" PRId64 " entries, %.1f MB are left\n",
               before.entries - after.entries, (double)(before.bytes - after.bytes) / 1048576,
               after.entries, (double)after.bytes / 1048576);
}

static tl_status act(tl_cache *cache, const char *what, const char *limit, bool json, tl_diag *diag)
{
    if (tl_cache_folder(cache) == NULL)
        return tl_fail(diag, TL_IO, "the cache cannot be used: %s", tl_cache_problem(cache));
    int64_t bytes = tl_cache_measure(cache).limit;
    if (limit != NULL && strcmp(what, "trim") != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--limit goes with trim, not with %s", what);
    if (limit != NULL)
        TL_TRY(tl_size_parse("--limit", limit, &bytes, diag));
    if (strcmp(what, "show") == 0) {
        show(cache, json);
    } else if (strcmp(what, "list") == 0) {
        tl_cache_visit(cache, print_entry, &json);
    } else if (strcmp(what, "trim") == 0) {
        trim(cache, bytes, json);
    } else if (strcmp(what, "clear") == 0) {
        trim(cache, 0, json);
    } else {
        return tl_fail(diag, TL_BAD_ARGUMENT, "'%s' is nothing it does: show, list, trim or clear",
                       what);
    }
    return TL_OK;
}

int tl_verb_cache(int argc, char **argv)
{
    const char *folder = NULL, *limit = NULL;
    bool json = false;
    const tl_option options[] = {
        { "--cache", NULL, TL_OPTION_TEXT, "DIR", "the folder (default: $XDG_CACHE_HOME/tilth)",
          &folder },
        { "--limit", NULL, TL_OPTION_TEXT, "SIZE", "with trim: 500M, 2G (default: 1G)", &limit },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &json },
        { 0 },
    };
    const tl_verb_help help = {
        "cache",
        "[show|list|trim|clear]",
        "Shows and empties the folder in which compiled kernels and models are kept.",
        "show (the default): the folder, what lies in it, how often it helped. list: every entry, "
        "the last used first.\n"
        "trim: removes the least recently used until it fits the limit (which happens by itself, "
        "too). clear: everything.\n"
        "A cache is an empty folder, or one with the CACHEDIR.TAG that tilth writes there; any "
        "other is refused and left alone.\n"
        "In a cache, too, only what tilth has put there is counted and removed.",
        "  tilth cache\n  tilth cache trim --limit 200M",
        options,
        0,
        1,
        action,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_cache *cache = NULL;
    if (json)
        tl_print_env_json();
    tl_status status = tl_cache_open(folder, 0, &cache, &diag);
    if (status == TL_OK)
        status = act(cache, positional_count ? positional[0] : "show", limit, json, &diag);
    if (status != TL_OK)
        code = tl_report_failure("cache", status, &diag);
    tl_cache_close(cache);
    return code;
}
