/* driver/reduce/check_model.c: whether a model is bad: what a verb of this program, or a command, says of it. */
#include "driver/reduce/check_model.h"
#include "runtime/base/program_path.h"
#include <stdio.h>
#include <string.h>

enum { WRONG_RESULT = 1, INTERNAL_ERROR = 4, MOST_ARGUMENTS = 32 };

typedef bool ending(const tl_child_result *result);

static bool is_wrong(const tl_child_result *r)
{
    return r->end == TL_CHILD_EXITED && r->code == WRONG_RESULT;
}

static bool is_crash(const tl_child_result *r)
{
    return r->end == TL_CHILD_SIGNALLED || (r->end == TL_CHILD_EXITED && r->code == INTERNAL_ERROR);
}

static bool is_good(const tl_child_result *r)
{
    return r->end == TL_CHILD_EXITED && r->code == 0;
}

static const struct {
    const char *name, *verb;
    ending *is_bad;
} kinds[] = {
    { "wrong", "verify", is_wrong },
    { "crash", "run", is_crash },
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

struct tl_check {
    ending *is_bad;
    const char *arguments[MOST_ARGUMENTS];
    int count;
    tl_child child;
    bool has_first;
    tl_child_result first, latest;
};

static void add(tl_check *check, const char *argument)
{
    check->arguments[check->count++] = argument;
}

static void add_option(tl_check *check, const char *name, const char *value)
{
    if (value != NULL) {
        add(check, name);
        add(check, value);
    }
}

/* What was asked for of the candidates, as it was said. Without a cache, unless one is named: candidates are many. */
static void add_session(tl_arena *arena, tl_check *check, const tl_reduce_options *o)
{
    const tl_session_options *s = o->session;
    if (s->threads > 0)
        add_option(check, "--threads", tl_arena_format(arena, "%lld", (long long)s->threads));
    add_option(check, "--target", s->target);
    add_option(check, "--numerics", s->numerics);
    if (s->cache != NULL && !s->no_cache)
        add_option(check, "--cache", s->cache);
    else
        add(check, "--no-cache");
    add_option(check, "--db", s->database);
    if (s->no_database)
        add(check, "--no-db");
    add_option(check, "--seed", tl_arena_format(arena, "%lld", (long long)o->seed));
    add(check, "--quiet");
}

tl_check *tl_check_create(tl_arena *arena, const tl_reduce_options *options, const char *path,
                          bool (*is_over)(void))
{
    tl_check *check = TL_NEW(arena, tl_check);
    int kind = 0;
    while (kind < KIND_COUNT && strcmp(kinds[kind].name, options->check) != 0)
        kind++;
    if (kind < KIND_COUNT) {
        check->is_bad = kinds[kind].is_bad;
        add(check, tl_program_path());
        add(check, kinds[kind].verb);
        add(check, path);
        add_session(arena, check, options);
    } else {
        check->is_bad = is_good;
        add(check, "/bin/sh");
        add(check, "-c");
        add(check, tl_arena_format(arena, "%s \"$@\"", options->check));
        add(check, "sh");
        add(check, path);
    }
    check->child = (tl_child){ .arguments = check->arguments,
                               .limit_s = options->limit_s,
                               .memory_gb = options->memory_gb,
                               .is_over = is_over };
    return check;
}

tl_status tl_check_model(tl_check *check, bool *is_bad, tl_diag *diag)
{
    TL_TRY(tl_child_run(&check->child, &check->latest, diag));
    *is_bad = check->is_bad(&check->latest);
    if (*is_bad && check->has_first)
        *is_bad = check->latest.end == check->first.end && check->latest.code == check->first.code;
    if (*is_bad && !check->has_first) {
        check->has_first = true;
        check->first = check->latest;
    }
    return TL_OK;
}

void tl_check_text(const tl_check *check, char *out, size_t size)
{
    static const char *const texts[] = {
        [TL_CHILD_EXITED] = "exit status",
        [TL_CHILD_SIGNALLED] = "signal",
        [TL_CHILD_LATE] = "longer than its time, signal",
        [TL_CHILD_STOPPED] = "stopped by signal",
    };
    snprintf(out, size, "%s %d", texts[check->latest.end], check->latest.code);
}
