/* tests/support/meaning_reduce.c: smaller texts that fail in the same way.
 *
 * Again and again, until nothing more goes: the last step of the trace is dropped, then each other step with those
 * that do not apply without it, then each top-level statement of the kernel (what it wrote becomes an input, what only
 * it read vanishes), then numbers of both texts shrink, each everywhere at once. A change stays if the rest still fails
 * with the same kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "runtime/base/file.h"
#include "schedule/schedule_private.h"
#include "schedule/trace.h"
#include "tests/support/meaning.h"
#include "tests/support/text_numbers.h"

enum { MAX_TRIES = 600, MAX_STAGES = 64 };

typedef struct {
    meaning *m;
    tl_arena *arena;
    const char *kind;
    const char *kernel, *trace;
    int tries;
} reduction;

/* Takes the texts if they fail in the same way. */
static bool take(reduction *r, const char *kernel, const char *trace)
{
    meaning_failure failure;
    if (r->tries++ >= MAX_TRIES || (strcmp(kernel, r->kernel) == 0 && strcmp(trace, r->trace) == 0))
        return false;
    if (meaning_holds(r->m, kernel, trace, 0, &failure) || strcmp(failure.kind, r->kind) != 0)
        return false;
    r->kernel = tl_arena_strdup(r->arena, kernel);
    r->trace = tl_arena_strdup(r->arena, trace);
    return true;
}

/* Steps. */

/* The steps but `without`, and but those that are refused then. */
static const char *trace_without(tl_arena *arena, const reduction *r, int without, int *count)
{
    tl_program *program;
    tl_trace *trace;
    *count = 0;
    if (tl_program_parse(arena, r->kernel, "kernel", &program, NULL) != TL_OK ||
        tl_trace_parse(arena, r->trace, "trace", NULL, &trace, NULL) != TL_OK)
        return NULL;
    tl_schedule *s = tl_schedule_create(arena, program, NULL, true);
    tl_replay *replay = tl_replay_start(trace, s);
    tl_trace kept = *trace;
    kept.steps = TL_NEW_ARRAY(arena, tl_step, trace->count);
    kept.count = 0;
    *count = trace->count;
    for (int i = 0; i < trace->count; i++) {
        if (i == without)
            continue;
        tl_status status = tl_replay_step(replay, s, &trace->steps[i], NULL);
        if (status != TL_ILLEGAL_SCHEDULE)
            kept.steps[kept.count++] = trace->steps[i];
        if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE)
            break;
    }
    return tl_trace_text(arena, &kept);
}

static bool drop_steps(reduction *r)
{
    bool changed = false;
    int count = 1;
    for (int i = 0; i < count; i++) { /* from the end: the rest rarely needs what comes last */
        tl_arena *arena = tl_arena_create(0);
        const char *trace = trace_without(arena, r, -1, &count);
        trace = count - 1 - i >= 0 ? trace_without(arena, r, count - 1 - i, &count) : NULL;
        if (trace != NULL && take(r, r->kernel, trace)) {
            changed = true;
            i--;
        }
        tl_arena_destroy(arena);
    }
    return changed;
}

/* Stages. */

typedef struct {
    int stmt_count, alloc_count;
    const tl_stmt *stmts[MAX_STAGES];
    const tl_buffer *allocs[MAX_STAGES];
} stages;

static void flatten(const tl_stmt *stmt, stages *out)
{
    if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            flatten(stmt->u.seq.items[i], out);
    } else if (stmt->kind == TL_STMT_ALLOC && out->alloc_count < MAX_STAGES) {
        out->allocs[out->alloc_count++] = stmt->u.alloc.buffer;
        flatten(stmt->u.alloc.body, out);
    } else if (out->stmt_count < MAX_STAGES) {
        out->stmts[out->stmt_count++] = stmt;
    }
}

static bool is_written(tl_arena *arena, const tl_stmt *body, const tl_buffer *buffer)
{
    const tl_block **blocks;
    return tl_writers_of(arena, body, buffer, &blocks) > 0;
}

static bool is_read(tl_arena *arena, const tl_stmt *body, const tl_buffer *buffer)
{
    const tl_block **blocks;
    return tl_readers_of(arena, body, buffer, &blocks) > 0;
}

/* The kernel without its top-level statement `without`; NULL: it has not so many, or only one. */
static const char *kernel_without(tl_arena *arena, const char *kernel, int without, int *count)
{
    tl_program *program;
    stages all = { 0 };
    *count = 0;
    if (tl_program_parse(arena, kernel, "kernel", &program, NULL) != TL_OK)
        return NULL;
    flatten(program->body, &all);
    *count = all.stmt_count;
    if (without >= all.stmt_count || all.stmt_count < 2)
        return NULL;
    for (int i = without; i + 1 < all.stmt_count; i++)
        all.stmts[i] = all.stmts[i + 1];
    const tl_stmt *body = tl_stmt_seq(arena, all.stmts, all.stmt_count - 1);
    tl_program *copy = tl_program_copy(arena, program);
    const tl_buffer **params =
        TL_NEW_ARRAY(arena, const tl_buffer *, program->param_count + all.alloc_count);
    copy->param_count = 0;
    copy->params = params;
    for (int i = 0; i < program->param_count; i++)
        if (tl_stmt_uses_buffer(body, program->params[i]))
            params[copy->param_count++] = program->params[i];
    for (int i = 0; i < all.alloc_count; i++) { /* locals that lost their writer or their reader */
        const tl_buffer *b = all.allocs[i];
        bool read = is_read(arena, body, b), written = is_written(arena, body, b);
        if (read == written)
            continue;
        tl_buffer *param =
            tl_buffer_make(arena, b->name, b->dtype, read ? TL_ROLE_INPUT : TL_ROLE_OUTPUT,
                           TL_SCOPE_GLOBAL, b->rank, b->shape);
        body = tl_stmt_replace_buffer(arena, body, b, param);
        params[copy->param_count++] = param;
    }
    for (int i = all.alloc_count - 1; i >= 0; i--)
        if (tl_stmt_uses_buffer(body, all.allocs[i]))
            body = tl_stmt_alloc(arena, all.allocs[i], body);
    copy->body = body;
    return tl_program_text(arena, copy);
}

static bool drop_stages(reduction *r)
{
    bool changed = false;
    int count = 1;
    for (int i = 0; i < count; i++) {
        tl_arena *arena = tl_arena_create(0);
        const char *kernel = kernel_without(arena, r->kernel, i, &count);
        if (kernel != NULL) {
            const char *before = r->kernel;
            r->kernel = kernel; /* some steps may have to go with the stage */
            int steps;
            const char *trace = trace_without(arena, r, -1, &steps);
            r->kernel = before;
            if (trace != NULL && take(r, kernel, trace)) {
                changed = true;
                i--;
            }
        }
        tl_arena_destroy(arena);
    }
    return changed;
}

/* Numbers. */

static bool shrink_numbers(reduction *r, bool is_kernel)
{
    bool changed = false;
    long long at = 1LL << 40;
    while ((at = text_largest_number(is_kernel ? r->kernel : r->trace, at)) > 1) {
        const long long smaller[] = { 1, 2, 3, at / 2, at - 1 };
        for (int i = 0; i < 5; i++) {
            if (smaller[i] >= at || smaller[i] < 1)
                continue;
            tl_arena *arena = tl_arena_create(0);
            const char *kernel =
                is_kernel ? text_with_number(arena, r->kernel, at, smaller[i]) : r->kernel;
            const char *trace =
                is_kernel ? r->trace : text_with_number(arena, r->trace, at, smaller[i]);
            bool taken = take(r, kernel, trace);
            tl_arena_destroy(arena);
            changed = changed || taken;
            if (taken)
                break;
        }
    }
    return changed;
}

void meaning_reduce(meaning *m, tl_arena *arena, const char **kernel, const char **trace,
                    const meaning_failure *failure)
{
    meaning_failure now;
    reduction r = { m, arena, failure->kind, *kernel, *trace, 0 };
    if (meaning_holds(m, *kernel, *trace, 0, &now))
        return; /* it does not fail from its texts */
    if (strcmp(now.kind, MEANING_BAD_KERNEL) == 0)
        return; /* of which there are many kinds */
    r.kind = now.kind;
    for (bool changed = true; changed && r.tries < MAX_TRIES;) {
        changed = drop_steps(&r);
        changed = drop_stages(&r) || changed;
        changed = shrink_numbers(&r, true) || changed;
        changed = shrink_numbers(&r, false) || changed;
    }
    *kernel = r.kernel;
    *trace = r.trace;
}

static void write_text(tl_arena *arena, const char *path, const char *text,
                       const meaning_failure *failure)
{
    tl_diag diag = { 0 };
    char sentence[sizeof failure->text];
    snprintf(sentence, sizeof sentence, "%s", failure->text);
    sentence[strcspn(sentence, "\n")] = 0; /* it is a comment */
    const char *all = tl_arena_format(arena, "# %s: %s\n%s", failure->kind, sentence, text);
    if (tl_file_write(path, all, strlen(all), &diag) != TL_OK)
        fprintf(stderr, "%s\n", diag.text);
}

const char *meaning_write(tl_arena *arena, const char *folder, const char *name, const char *kernel,
                          const char *trace, const meaning_failure *failure)
{
    const char *path = tl_arena_format(arena, "%s/%s", folder, name);
    (void)mkdir("build", 0777); /* where they are there already, writing says what is wrong */
    (void)mkdir(folder, 0777);
    write_text(arena, tl_arena_format(arena, "%s.tk", path), kernel, failure);
    write_text(arena, tl_arena_format(arena, "%s.tr", path), trace, failure);
    return path;
}
