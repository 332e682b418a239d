/* driver/study/study.c: the kernel and its trace, read, taken apart and replayed line by line. */
#include "driver/study/study.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/host_target.h"
#include "frontend/frontend.h"
#include "ir/expr/index.h"
#include "runtime/base/checked.h"
#include "runtime/base/file.h"

enum { MAX_TEXT = 1 << 20, MAX_LINES = 1000 };

/* Appends line `line` (from 1) of a text to the sentence, with a mark under `column` (from 1; 0: none). */
static void point_at(tl_diag *diag, const char *text, int line, int column)
{
    if (diag == NULL)
        return;
    for (int i = 1; i < line && text != NULL; i++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    if (text == NULL)
        return;
    int size = (int)strcspn(text, "\r\n");
    size_t used = strlen(diag->text), room = sizeof diag->text - used;
    int wrote =
        snprintf(diag->text + used, room, "\n%6d | %.*s", line, size < 200 ? size : 200, text);
    if (column < 1 || column > 200 || wrote < 0 || (size_t)wrote >= room)
        return;
    used += (size_t)wrote;
    room -= (size_t)wrote;
    char blanks[201];
    for (int i = 0; i < column - 1; i++)
        blanks[i] = i < size && text[i] == '\t' ? '\t' : ' ';
    blanks[column - 1] = '\0';
    snprintf(diag->text + used, room, "\n       | %s^", blanks);
}

/* Of a sentence that begins with "FILE:LINE:COLUMN: ". */
static void point_at_parse_error(tl_diag *diag, const char *file, const char *text)
{
    int line, column;
    size_t size = strlen(file);
    if (diag != NULL && strncmp(diag->text, file, size) == 0 &&
        sscanf(diag->text + size, ":%d:%d:", &line, &column) == 2)
        point_at(diag, text, line, column);
}

static tl_status read_stdin(tl_text *out, tl_diag *diag)
{
    char buffer[4096];
    size_t n;
    while (out->size <= MAX_TEXT && (n = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        tl_text_add_bytes(out, buffer, n);
    if (ferror(stdin))
        return tl_fail(diag, TL_IO, "standard input: %s", strerror(errno));
    return TL_OK;
}

tl_status tl_study_read(tl_arena *arena, const char *path, const char **out, tl_diag *diag)
{
    tl_text text = { 0 };
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    tl_status status = name == path ? tl_file_read(path, &text, diag) : read_stdin(&text, diag);
    if (status == TL_OK && text.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", name);
    if (status == TL_OK && text.size > MAX_TEXT)
        status = tl_fail(diag, TL_BAD_TEXT, "%s: %zu bytes are more than a MiB", name, text.size);
    if (status == TL_OK && memchr(tl_text_get(&text), '\0', text.size) != NULL)
        status = tl_fail(diag, TL_BAD_TEXT, "%s: this is no text", name);
    if (status == TL_OK)
        *out = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return status;
}

/* Dims. */

static tl_status set_dim(tl_study *study, const char *text, tl_diag *diag)
{
    const tl_program *p = study->naive;
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    long long n = equals != NULL ? strtoll(equals + 1, &end, 10) : 0;
    if (equals == NULL || end == equals + 1 || *end != '\0' || errno != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--set %s: not of the form NAME=N", text);
    tl_text names = { 0 };
    for (int d = 0; d < p->dim_count; d++) {
        const tl_var *dim = p->dims[d];
        tl_text_format(&names, "%s%s in %lld..%lld", d ? ", " : "", dim->name, (long long)dim->min,
                       (long long)dim->max);
        if (strlen(dim->name) != (size_t)(equals - text) ||
            strncmp(dim->name, text, (size_t)(equals - text)) != 0)
            continue;
        tl_text_free(&names);
        if (n < dim->min || n > dim->max)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--set %s: %s is in %lld..%lld", text, dim->name,
                           (long long)dim->min, (long long)dim->max);
        study->dims[d] = n;
        return TL_OK;
    }
    tl_fail(diag, TL_BAD_ARGUMENT, "--set %s: kernel %s has no such dim; its dims: %.400s", text,
            p->name, p->dim_count ? tl_text_get(&names) : "none");
    tl_text_free(&names);
    return TL_BAD_ARGUMENT;
}

static const tl_expr *with_dims(const tl_study *study, const tl_expr *e)
{
    for (int d = 0; d < study->naive->dim_count; d++)
        e = tl_substitute(study->arena, e,
                          &(tl_binding){ study->naive->dims[d],
                                         tl_int(study->arena, study->dims[d]) },
                          1);
    return e;
}

int64_t tl_study_elements(const tl_study *study, const tl_buffer *buffer)
{
    int64_t elements = 1, extent;
    for (int a = 0; a < buffer->rank; a++) {
        const tl_expr *e = with_dims(study, buffer->shape[a]);
        if (!tl_const_int(e, &extent))
            extent = tl_expr_range(e).max;
        if (extent < 0 || tl_mul_overflows(elements, extent, &elements))
            return -1;
    }
    return elements;
}

/* The kernel's operations with the dims in their places. */
static int64_t count_flops(const tl_study *study)
{
    tl_arena *arena = study->arena;
    tl_program *p = tl_program_copy(arena, study->naive);
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, p->dim_count);
    for (int d = 0; d < p->dim_count; d++)
        bindings[d] = (tl_binding){ p->dims[d], tl_int(arena, study->dims[d]) };
    p->body = tl_stmt_substitute(arena, p->body, bindings, p->dim_count);
    return tl_program_flops(p);
}

tl_status tl_study_open(tl_study *study, const tl_study_options *options, tl_diag *diag)
{
    if (options->threads < 0 || options->threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--threads: %lld is not in 1..%d",
                       (long long)options->threads, TL_MAX_THREADS);
    TL_TRY(tl_target_resolve(options->target, &study->target, diag));
    study->target.machine = options->machine;
    TL_TRY(tl_study_read(study->arena, options->kernel, &study->kernel_text, diag));

    tl_program *program;
    study->kernel_file = strcmp(options->kernel, "-") == 0 ? "<stdin>" : options->kernel;
    tl_status status =
        tl_program_parse(study->arena, study->kernel_text, study->kernel_file, &program, diag);
    if (status != TL_OK) {
        point_at_parse_error(diag, study->kernel_file, study->kernel_text);
        return status;
    }
    status = tl_program_verify(program, diag);
    if (status != TL_OK) {
        tl_context(diag, "kernel %s of %s", program->name, study->kernel_file);
        return TL_BAD_TEXT; /* of a file it is the file's fault */
    }
    study->naive = program;
    study->dims = TL_NEW_ARRAY(study->arena, int64_t, program->dim_count);
    for (int d = 0; d < program->dim_count; d++)
        study->dims[d] = program->dims[d]->max;
    for (int i = 0; i < options->sets.count; i++)
        TL_TRY(set_dim(study, options->sets.items[i], diag));
    study->flops = count_flops(study);

    TL_TRY(
        tl_pool_create(&(tl_pool_options){ .threads = (int)options->threads }, &study->pool, diag));
    study->threads = tl_pool_threads(study->pool);
    return TL_OK;
}

void tl_study_close(tl_study *study)
{
    tl_pool_destroy(study->pool);
    study->pool = NULL;
}

/* Scripts. */

/* A line as it is shown: without comments, blanks around it gone, runs of them one. */
static const char *tidy(tl_arena *arena, const char *from, const char *to)
{
    char *out = tl_arena_strndup(arena, from, (size_t)(to - from)), *w = out;
    bool comment = false, blank = false;
    for (const char *p = from; p < to; p++) {
        comment = (comment || *p == '#') && *p != '\n';
        bool skip = comment || strchr(" \t\r\n", *p) != NULL;
        blank |= skip;
        if (skip)
            continue;
        if (blank && w > out)
            *w++ = ' ';
        blank = false;
        *w++ = *p;
    }
    *w = '\0';
    return out;
}

/* Where the line that begins at p ends: at a line end outside of brackets. */
static const char *line_end(const char *p)
{
    int depth = 0;
    bool comment = false;
    for (; *p != '\0'; p++) {
        if (*p == '\n') {
            comment = false;
            if (depth <= 0)
                return p;
        } else if (*p == '#') {
            comment = true;
        } else if (!comment) {
            depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        }
    }
    return p;
}

/* What stands behind `#` in the lines from p to end, after what was found before; a blank line ends a paragraph. */
static const char *add_comments(tl_arena *arena, const char *before, const char *p, const char *end)
{
    const char *out = before;
    for (const char *line = p; line <= end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        const char *mark = memchr(line, '#', (size_t)(stop - line)), *last = stop;
        bool ends = strspn(line, " \t\r") >= (size_t)(stop - line) && *out != '\0' &&
                    out[strlen(out) - 1] != '\n';
        if (ends)
            out = tl_arena_format(arena, "%s\n", out);
        if (mark != NULL) {
            for (mark++; mark < last && *mark == ' ';)
                mark++;
            while (last > mark && strchr(" \r", last[-1]) != NULL)
                last--;
            bool joins = *out != '\0' && out[strlen(out) - 1] != '\n';
            out =
                tl_arena_format(arena, "%s%s%.*s", out, joins ? " " : "", (int)(last - mark), mark);
        }
        line = stop + 1;
    }
    return out;
}

tl_status tl_script_parse(const tl_study *study, const char *file, const char *text, tl_script *out,
                          tl_diag *diag)
{
    tl_arena *arena = study->arena;
    tl_trace *trace;
    *out = (tl_script){ .file = file, .text = text };
    tl_status status = tl_trace_parse(arena, text, file, &study->target, &trace, diag);
    if (status != TL_OK) {
        point_at_parse_error(diag, file, text);
        return status;
    }
    out->trace = trace;
    tl_script_line *lines = TL_NEW_ARRAY(arena, tl_script_line, MAX_LINES);
    const char *comment = "";
    int number = 1, steps = 0;
    for (const char *p = text, *end; *p != '\0'; p = *end != '\0' ? end + 1 : end) {
        end = line_end(p);
        const char *shown = tidy(arena, p, end);
        comment = add_comments(arena, comment, p, end);
        if (*shown != '\0') {
            if (out->count == MAX_LINES)
                return tl_fail(diag, TL_BAD_TEXT, "%s: a trace of more than %d lines", file,
                               MAX_LINES);
            size_t size = (size_t)(end - text);
            TL_TRY(tl_trace_parse(arena, tl_arena_strndup(arena, text, size), file, &study->target,
                                  &trace, diag));
            if (trace->count > steps)
                lines[out->count++] =
                    (tl_script_line){ number, shown, comment, trace->count, size };
            comment = "";
            steps = trace->count;
        }
        for (; p < end; p++)
            number += *p == '\n';
        number++;
    }
    out->lines = lines;
    return TL_OK;
}

tl_walk tl_walk_start(const tl_study *study, const tl_script *script)
{
    tl_schedule *s = tl_schedule_create(study->arena, study->naive, &study->target, true);
    return (tl_walk){ script, s, tl_replay_start(script->trace, s), 0 };
}

tl_status tl_walk_next(tl_walk *walk, tl_diag *diag)
{
    const tl_script_line *line = &walk->script->lines[walk->done];
    tl_diag inner = { 0 };
    tl_status status = tl_replay_to(walk->replay, line->step_end, &inner);
    if (status == TL_OK) {
        walk->done++;
        return TL_OK;
    }
    tl_fail(diag, status, "%s:%d: %s", walk->script->file, line->line, inner.text);
    point_at(diag, walk->script->text, line->line, 0);
    return status;
}

tl_status tl_walk_to_end(tl_walk *walk, tl_diag *diag)
{
    while (walk->done < walk->script->count)
        TL_TRY(tl_walk_next(walk, diag));
    return TL_OK;
}

const tl_program *tl_walk_program(const tl_walk *walk)
{
    return tl_schedule_program(walk->schedule);
}
