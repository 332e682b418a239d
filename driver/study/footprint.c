/* driver/study/footprint.c: boxes of buffers under each loop, from the blocks' accesses. */
#include "driver/study/footprint.h"
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/checked.h"
#include "schedule/region_at.h"

enum { MAX_BUFFERS = 64, MAX_LEVELS = 256 };

typedef struct {
    tl_arena *arena;
    int buffer_count;
    const tl_buffer *buffers[MAX_BUFFERS];
    int level_count;
    tl_footprint_level *levels;
} walker;

static bool add_alloc(const tl_stmt *stmt, void *context)
{
    walker *w = context;
    if (stmt->kind == TL_STMT_ALLOC && w->buffer_count < MAX_BUFFERS)
        w->buffers[w->buffer_count++] = stmt->u.alloc.buffer;
    return true;
}

/* Bytes of the union of what is read and written; 0: nothing is. */
static int64_t touched(walker *w, const tl_stmt *stmt, const tl_buffer *b)
{
    tl_box boxes[2];
    bool has[2] = { tl_box_at(w->arena, stmt, b, TL_BOX_READS, NULL, &boxes[0]),
                    tl_box_at(w->arena, stmt, b, TL_BOX_WRITES, NULL, &boxes[1]) };
    if (!has[0] && !has[1])
        return 0;
    int64_t elements = 1;
    for (int a = 0; a < b->rank; a++) {
        int64_t whole = tl_expr_range(b->shape[a]).max, extent = 0;
        tl_span span = boxes[has[0] ? 0 : 1].axes[a];
        if (has[0] && has[1])
            span = tl_span_union(w->arena, boxes[0].axes[a], boxes[1].axes[a]);
        extent = span.width >= 0 && span.width < whole ? span.width + 1 : whole;
        if (tl_mul_overflows(elements, extent, &elements))
            return INT64_MAX;
    }
    int64_t bytes = tl_storage_bytes(b->dtype, elements);
    return bytes < 0 ? INT64_MAX : bytes;
}

static void add_level(walker *w, const tl_stmt *stmt, const tl_stmt *loop, int depth)
{
    if (w->level_count == MAX_LEVELS)
        return;
    tl_touch *touches = TL_NEW_ARRAY(w->arena, tl_touch, w->buffer_count);
    tl_footprint_level *level = &w->levels[w->level_count++];
    *level =
        (tl_footprint_level){ .loop = loop, .name = "all", .depth = depth, .touches = touches };
    for (int i = 0; i < w->buffer_count; i++) {
        int64_t bytes = touched(w, stmt, w->buffers[i]);
        if (bytes == 0)
            continue;
        touches[level->count++] = (tl_touch){ w->buffers[i], bytes };
        if (tl_add_overflows(level->total, bytes, &level->total))
            level->total = INT64_MAX;
    }
}

static void walk(walker *w, const tl_stmt *stmt, int depth)
{
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        add_level(w, stmt, stmt, depth);
        walk(w, stmt->u.loop.body, depth + 1);
        break;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            walk(w, stmt->u.seq.items[i], depth);
        break;
    case TL_STMT_ALLOC:
        walk(w, stmt->u.alloc.body, depth);
        break;
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
}

static bool count_loop(const tl_stmt *stmt, void *context)
{
    *(int *)context += stmt->kind == TL_STMT_LOOP;
    return true;
}

/* The printer makes names unique; loops stand in its text in the order of the walk, those of the prepare part first. */
static void name_levels(walker *w, const tl_program *program)
{
    int before = 0, at = 1;
    if (program->prepare != NULL)
        tl_stmt_visit(program->prepare, count_loop, &before);
    for (const char *p = tl_program_text(w->arena, program); *p != '\0' && at < w->level_count;) {
        const char *word = p + strspn(p, " ");
        if (strncmp(word, "for ", 4) == 0 && before-- <= 0)
            w->levels[at++].name = tl_arena_strndup(w->arena, word + 4, strcspn(word + 4, " "));
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
}

int tl_footprint(tl_arena *arena, const tl_program *program, const tl_footprint_level **out)
{
    walker w = { .arena = arena, .levels = TL_NEW_ARRAY(arena, tl_footprint_level, MAX_LEVELS) };
    for (int i = 0; i < program->param_count && w.buffer_count < MAX_BUFFERS; i++)
        w.buffers[w.buffer_count++] = program->params[i];
    for (int i = 0; i < program->prepared_count && w.buffer_count < MAX_BUFFERS; i++)
        w.buffers[w.buffer_count++] = program->prepared[i];
    tl_stmt_visit(program->body, add_alloc, &w);
    add_level(&w, program->body, NULL, 0);
    walk(&w, program->body, 0);
    name_levels(&w, program);
    *out = w.levels;
    return w.level_count;
}
