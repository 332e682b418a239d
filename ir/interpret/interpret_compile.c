/* ir/interpret/interpret_compile.c: the loop tree to instructions. Dims are constants of the call, so every shape and
 * stride is a number; loop variables and iters get slots in the manner of a stack. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

#define MAX_DEPTH 256 /* loops around a statement */

/* What a variable or buffer stands for, found by its address. */
typedef struct {
    const void *key;
    int64_t value; /* slot, dim's value or memory */
    bool is_open;  /* in scope */
    bool is_dim;
} entry;

/* A barrier and the thread loops around it. */
typedef struct {
    int insn;
    int64_t threads[TL_THREAD_AXES]; /* 0: not in a loop over this axis */
} barrier_record;

struct tl_compiler {
    tl_machine *m;
    int entry_count, entry_capacity; /* a power of two */
    entry *entries;
    int insn_capacity, memory_capacity, site_capacity;
    int slot_top;
    bool in_prepare;
    int loop_count;
    tl_open_loop loops[MAX_DEPTH];
    int site;                        /* of the statement being compiled */
    int64_t threads[TL_THREAD_AXES]; /* largest extent of a thread loop in this phase */
    int barrier_count, barrier_capacity;
    barrier_record *barriers;
};

tl_machine *tl_compiler_machine(tl_compiler *c)
{
    return c->m;
}

void tl_compiler_fail(tl_compiler *c, tl_status status, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    c->m->status = tl_fail(c->m->diag, status, "%s", sentence);
    if (c->site >= 0)
        tl_context(c->m->diag, "%s", c->m->sites[c->site].name);
    longjmp(c->m->escape, 1);
}

/* ---- names ---- */

static entry *place(const entry *entries, int capacity, const void *key)
{
    assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    int at = (int)(hash >> 32 & (uint64_t)(capacity - 1));
    while (entries[at].key != NULL && entries[at].key != key)
        at = (at + 1) & (capacity - 1);
    return (entry *)&entries[at];
}

static entry *enter(tl_compiler *c, const void *key)
{
    if (2 * (c->entry_count + 1) > c->entry_capacity) {
        int wider = c->entry_capacity == 0 ? 64 : 2 * c->entry_capacity;
        entry *grown = TL_NEW_ARRAY(c->m->arena, entry, wider);
        for (int i = 0; i < c->entry_capacity; i++)
            if (c->entries[i].key != NULL)
                *place(grown, wider, c->entries[i].key) = c->entries[i];
        c->entries = grown;
        c->entry_capacity = wider;
    }
    entry *e = place(c->entries, c->entry_capacity, key);
    if (e->key == NULL) {
        e->key = key;
        c->entry_count++;
    }
    return e;
}

static const entry *find(const tl_compiler *c, const void *key)
{
    if (c->entry_capacity == 0)
        return NULL;
    const entry *e = place(c->entries, c->entry_capacity, key);
    return e->key != NULL && e->is_open ? e : NULL;
}

int tl_compiler_slot(tl_compiler *c, const tl_var *var)
{
    const entry *e = find(c, var);
    if (e == NULL || e->is_dim)
        tl_compiler_fail(c, TL_BAD_IR, "variable %s is not known here", var->name);
    return (int)e->value;
}

bool tl_compiler_dim(const tl_compiler *c, const tl_var *var, int64_t *value)
{
    const entry *e = find(c, var);
    if (e == NULL || !e->is_dim)
        return false;
    *value = e->value;
    return true;
}

void tl_compiler_alias(tl_compiler *c, const tl_var *var, int slot)
{
    if (find(c, var) != NULL)
        tl_compiler_fail(c, TL_BAD_IR, "variable %s is bound twice", var->name);
    entry *e = enter(c, var);
    e->value = slot;
    e->is_open = true;
}

static int new_slot(tl_compiler *c)
{
    int slot = c->slot_top++;
    if (c->slot_top > c->m->slot_count)
        c->m->slot_count = c->slot_top;
    return slot;
}

int tl_compiler_open(tl_compiler *c, const tl_var *var)
{
    int slot = new_slot(c);
    tl_compiler_alias(c, var, slot);
    return slot;
}

void tl_compiler_close(tl_compiler *c, const tl_var *var)
{
    enter(c, var)->is_open = false;
}

int tl_compiler_mark(const tl_compiler *c)
{
    return c->slot_top;
}

void tl_compiler_rewind(tl_compiler *c, int mark)
{
    c->slot_top = mark;
}

int tl_compiler_loops(const tl_compiler *c, const tl_open_loop **loops)
{
    *loops = c->loops;
    return c->loop_count;
}

bool tl_compiler_may_write(const tl_compiler *c, const tl_buffer *buffer)
{
    switch (buffer->role) {
    case TL_ROLE_LOCAL:
        return true;
    case TL_ROLE_OUTPUT:
    case TL_ROLE_INOUT:
        return !c->in_prepare;
    case TL_ROLE_PREPARED:
        return c->in_prepare;
    case TL_ROLE_INPUT:
    case TL_ROLE_CONST:
        break;
    }
    return false;
}

/* ---- constants and shapes ---- */

typedef struct {
    const tl_compiler *c;
    bool is_constant;
} constant_search;

static bool visit_constant(const tl_expr *e, void *context)
{
    constant_search *search = context;
    int64_t value;
    if (e->kind == TL_EXPR_LOAD ||
        (e->kind == TL_EXPR_VAR && !tl_compiler_dim(search->c, e->u.var, &value)))
        search->is_constant = false;
    return search->is_constant;
}

/* The value of an i64 expression over constants and dims; false when it is none. */
static bool evaluate_constant(tl_compiler *c, const tl_expr *e, int64_t *value)
{
    constant_search search = { c, e->dtype == TL_I64 };
    tl_expr_visit(e, visit_constant, &search);
    if (!search.is_constant)
        return false;
    tl_frame nowhere = { .machine = c->m, .site = -1 };
    *value = tl_code_integer(tl_code_compile(c, e), &nowhere);
    return true;
}

static int add_memory(tl_compiler *c, const tl_buffer *buffer)
{
    tl_machine *m = c->m;
    int64_t *shape = TL_NEW_ARRAY(m->arena, int64_t, buffer->rank);
    int64_t *strides = TL_NEW_ARRAY(m->arena, int64_t, buffer->rank);
    int64_t count = 1, bytes;
    for (int i = buffer->rank - 1; i >= 0; i--) {
        if (!evaluate_constant(c, buffer->shape[i], &shape[i]) || shape[i] < 0)
            tl_compiler_fail(c, TL_BAD_IR, "axis %d of %s has no constant extent", i, buffer->name);
        strides[i] = count;
        if (tl_mul_overflows(count, shape[i], &count))
            tl_compiler_fail(c, TL_BAD_IR, "the extents of %s overflow", buffer->name);
    }
    if (tl_mul_overflows(count, 32, &bytes))
        tl_compiler_fail(c, TL_BAD_IR, "the extents of %s overflow", buffer->name);

    TL_ROOM(m->arena, m->memories, m->memory_count, c->memory_capacity);
    m->memories[m->memory_count] = (tl_memory){ buffer, shape, strides, count, NULL };
    entry *e = enter(c, buffer);
    e->value = m->memory_count;
    e->is_open = true;
    return m->memory_count++;
}

int tl_compiler_memory(tl_compiler *c, const tl_buffer *buffer)
{
    const entry *e = find(c, buffer);
    if (e == NULL)
        tl_compiler_fail(c, TL_BAD_IR, "buffer %s is not known here", buffer->name);
    return (int)e->value;
}

int tl_machine_memory(const tl_machine *m, const tl_buffer *buffer)
{
    for (int i = 0; i < m->memory_count; i++)
        if (m->memories[i].buffer == buffer)
            return i;
    return -1;
}

/* ---- instructions ---- */

static int emit(tl_compiler *c, tl_insn_op op)
{
    tl_machine *m = c->m;
    TL_ROOM(m->arena, m->insns, m->insn_count, c->insn_capacity);
    m->insns[m->insn_count].op = op;
    m->insns[m->insn_count].site = c->site;
    return m->insn_count++;
}

static void emit_memory(tl_compiler *c, tl_insn_op op, int memory)
{
    assert(memory >= 0 && memory < c->m->memory_count);
    int at = emit(c, op);
    c->m->insns[at].memory = memory;
}

static int add_site(tl_compiler *c, const char *kind, const char *name)
{
    tl_machine *m = c->m;
    if (m->site_count > (int)TL_SITE_MASK)
        return (int)TL_SITE_MASK; /* the rest share one name */
    TL_ROOM(m->arena, m->sites, m->site_count, c->site_capacity);
    int *loops = TL_NEW_ARRAY(m->arena, int, c->loop_count);
    for (int i = 0; i < c->loop_count; i++)
        loops[i] = c->loops[i].insn;
    m->sites[m->site_count] = (tl_site){ .name = tl_arena_format(m->arena, "%s%s", kind, name),
                                         .loop_count = c->loop_count,
                                         .loops = loops };
    return m->site_count++;
}

static void compile_stmt(tl_compiler *c, const tl_stmt *stmt);

static void set_loop(tl_compiler *c, int at, const tl_stmt *stmt, const tl_interp_code *extent)
{
    tl_insn *insn = &c->m->insns[at];
    insn->var = stmt->u.loop.var;
    insn->kind = stmt->u.loop.kind;
    insn->code = extent;
}

static void enter_loop(tl_compiler *c, const tl_stmt *stmt, int at, int slot, int64_t threads)
{
    if (c->loop_count == MAX_DEPTH)
        tl_compiler_fail(c, TL_BAD_IR, "more than %d loops in each other", MAX_DEPTH);
    c->loops[c->loop_count++] =
        (tl_open_loop){ stmt->u.loop.var, stmt->u.loop.kind, slot, at, threads };
}

static bool is_block_axis(tl_loop_kind kind)
{
    return kind == TL_LOOP_BLOCK_X || kind == TL_LOOP_BLOCK_Y || kind == TL_LOOP_BLOCK_Z;
}

static int thread_axis(tl_loop_kind kind)
{
    return kind == TL_LOOP_THREAD_X   ? 0
           : kind == TL_LOOP_THREAD_Y ? 1
           : kind == TL_LOOP_THREAD_Z ? 2
                                      : -1;
}

static bool is_concurrent(tl_loop_kind kind)
{
    return kind == TL_LOOP_PARALLEL || kind == TL_LOOP_VECTORIZED || is_block_axis(kind);
}

/* The innermost open loop over the same axis, or -1. */
static int find_axis(const tl_compiler *c, int axis)
{
    for (int i = c->loop_count - 1; i >= 0; i--)
        if (thread_axis(c->loops[i].kind) == axis)
            return i;
    return -1;
}

static void compile_loop(tl_compiler *c, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_LOOP);
    tl_machine *m = c->m;
    tl_loop_kind kind = stmt->u.loop.kind;
    bool concurrent = m->check && is_concurrent(kind);
    for (int i = 0; i < c->loop_count && is_block_axis(kind); i++)
        if (thread_axis(c->loops[i].kind) >= 0)
            tl_compiler_fail(c, TL_BAD_IR, "loop %s over %s is inside the thread loop %s",
                             stmt->u.loop.var->name, tl_loop_kind_infos[kind].text,
                             c->loops[i].var->name);

    const tl_interp_code *extent = tl_code_compile(c, stmt->u.loop.extent);
    int mark = tl_compiler_mark(c);
    int slot = tl_compiler_open(c, stmt->u.loop.var), limit = new_slot(c);
    int at = emit(c, concurrent ? TL_INSN_CONCURRENT : TL_INSN_LOOP);
    set_loop(c, at, stmt, extent);
    m->insns[at].slot = slot;
    m->insns[at].limit = limit;
    m->insns[at].new_segment = is_block_axis(kind);

    enter_loop(c, stmt, at, slot, 0);
    if (c->loop_count > m->level_count)
        m->level_count = c->loop_count;
    compile_stmt(c, stmt->u.loop.body);
    c->loop_count--;

    int next = emit(c, concurrent ? TL_INSN_CONCURRENT_NEXT : TL_INSN_NEXT);
    m->insns[next].slot = slot;
    m->insns[next].limit = limit;
    m->insns[next].target = at + 1;
    m->insns[at].target = next + 1;
    tl_compiler_close(c, stmt->u.loop.var);
    tl_compiler_rewind(c, mark);
}

/* A loop over threadIdx forks; one inside another of the same axis is the same thread and takes its position. */
static void compile_thread_loop(tl_compiler *c, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_LOOP);
    tl_machine *m = c->m;
    const char *name = stmt->u.loop.var->name;
    int axis = thread_axis(stmt->u.loop.kind), outer = find_axis(c, axis);
    int64_t threads;
    if (!evaluate_constant(c, stmt->u.loop.extent, &threads))
        tl_compiler_fail(c, TL_BAD_IR, "thread loop %s has no constant extent", name);
    for (int i = 0; i < c->loop_count; i++)
        if (c->loops[i].kind == TL_LOOP_VECTORIZED)
            tl_compiler_fail(c, TL_BAD_IR, "thread loop %s is inside the vectorized loop %s", name,
                             c->loops[i].var->name);
    if (outer >= 0 && threads > c->loops[outer].threads)
        tl_compiler_fail(c, TL_BAD_IR,
                         "thread loop %s of extent %" PRId64 " is inside loop %s over the same "
                         "axis, of extent %" PRId64,
                         name, threads, c->loops[outer].var->name, c->loops[outer].threads);

    const tl_interp_code *extent = tl_code_compile(c, stmt->u.loop.extent);
    int mark = tl_compiler_mark(c);
    int slot = tl_compiler_open(c, stmt->u.loop.var);
    int at = emit(c, outer >= 0 ? TL_INSN_SAME : TL_INSN_FORK);
    set_loop(c, at, stmt, extent);
    m->insns[at].slot = slot;
    m->insns[at].axis = axis;
    m->insns[at].limit = outer >= 0 ? c->loops[outer].slot : 0;
    c->threads[axis] = tl_max64(c->threads[axis], threads);

    enter_loop(c, stmt, at, slot, threads);
    compile_stmt(c, stmt->u.loop.body);
    c->loop_count--;
    if (outer < 0)
        emit(c, TL_INSN_JOIN);
    m->insns[at].target = m->insn_count;
    tl_compiler_close(c, stmt->u.loop.var);
    tl_compiler_rewind(c, mark);
}

static void compile_alloc(tl_compiler *c, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_ALLOC);
    const tl_buffer *buffer = stmt->u.alloc.buffer;
    for (int i = 0; i < c->loop_count; i++) {
        tl_loop_kind kind = c->loops[i].kind;
        bool wrong = (buffer->scope == TL_SCOPE_SHARED && thread_axis(kind) >= 0) ||
                     (tl_scope_threads[buffer->scope] > 0 && kind == TL_LOOP_THREAD_X);
        if (wrong)
            tl_compiler_fail(c, TL_BAD_IR,
                             "%s buffer %s is allocated inside the thread loop %s, which would "
                             "make one for each thread",
                             tl_scope_texts[buffer->scope], buffer->name, c->loops[i].var->name);
    }
    if (find(c, buffer) != NULL)
        tl_compiler_fail(c, TL_BAD_IR, "buffer %s is allocated inside its own scope", buffer->name);
    int memory = add_memory(c, buffer);
    emit_memory(c, TL_INSN_ALLOC, memory);
    compile_stmt(c, stmt->u.alloc.body);
    emit_memory(c, TL_INSN_FREE, memory);
    enter(c, buffer)->is_open = false;
}

static void compile_barrier(tl_compiler *c)
{
    c->site = add_site(c, "barrier", "");
    int at = emit(c, TL_INSN_BARRIER);
    barrier_record record = { .insn = at };
    for (int i = 0; i < c->loop_count; i++) {
        const tl_open_loop *loop = &c->loops[i];
        if (loop->kind == TL_LOOP_PARALLEL || loop->kind == TL_LOOP_VECTORIZED)
            tl_compiler_fail(c, TL_BAD_IR,
                             "a barrier is inside the %s loop %s, whose iterations do not wait for "
                             "each other",
                             tl_loop_kind_infos[loop->kind].text, loop->var->name);
        if (thread_axis(loop->kind) >= 0)
            record.threads[thread_axis(loop->kind)] = loop->threads; /* the innermost */
    }
    TL_ROOM(c->m->arena, c->barriers, c->barrier_count, c->barrier_capacity);
    c->barriers[c->barrier_count++] = record;
}

/* A barrier under a thread loop that is shorter than the GPU block is wide is not reached by all. */
static void end_phase(tl_compiler *c)
{
    for (int i = 0; i < c->barrier_count; i++) {
        for (int axis = 0; axis < TL_THREAD_AXES; axis++) {
            int64_t threads = c->barriers[i].threads[axis];
            if (threads != 0 && threads < c->threads[axis]) {
                c->site = c->m->insns[c->barriers[i].insn].site;
                tl_compiler_fail(c, TL_BAD_IR,
                                 "divergent barrier: it is inside a loop of %" PRId64
                                 " threads on threadIdx.%c, the GPU block has %" PRId64,
                                 threads, "xyz"[axis], c -> threads[axis]);
            }
        }
    }
    c->barrier_count = 0;
    memset(c->threads, 0, sizeof c->threads);
}

static void compile_if(tl_compiler *c, const tl_stmt *stmt)
{
    c->site = add_site(c, "an if", "");
    const tl_interp_code *condition = tl_code_compile(c, stmt->u.branch.condition);
    int branch = emit(c, TL_INSN_BRANCH);
    c->m->insns[branch].code = condition;
    compile_stmt(c, stmt->u.branch.then);
    int jump = emit(c, TL_INSN_JUMP);
    c->m->insns[branch].target = c->m->insn_count;
    if (stmt->u.branch.otherwise != NULL)
        compile_stmt(c, stmt->u.branch.otherwise);
    c->m->insns[jump].target = c->m->insn_count;
}

static void compile_leaf(tl_compiler *c, const tl_stmt *stmt)
{
    const tl_block_code *code;
    if (stmt->kind == TL_STMT_BLOCK) {
        c->site = add_site(c, "block ", stmt->u.block->name);
        code = tl_block_compile(c, stmt->u.block);
    } else if (stmt->kind == TL_STMT_STORE) {
        c->site = add_site(c, "the store to ", stmt->u.store.buffer->name);
        code = tl_bare_compile(c, &stmt->u.store, NULL);
    } else {
        c->site = add_site(c, "the call of ", stmt->u.call->name);
        code = tl_bare_compile(c, NULL, stmt->u.call);
    }
    c->m->sites[c->site].block = code;
    int at = emit(c, TL_INSN_BLOCK);
    c->m->insns[at].block = code;
}

static void compile_stmt(tl_compiler *c, const tl_stmt *stmt)
{
    int site = c->site;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        c->site = add_site(c, "loop ", stmt->u.loop.var->name);
        if (thread_axis(stmt->u.loop.kind) >= 0)
            compile_thread_loop(c, stmt);
        else
            compile_loop(c, stmt);
        break;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            compile_stmt(c, stmt->u.seq.items[i]);
        break;
    case TL_STMT_ALLOC:
        compile_alloc(c, stmt);
        break;
    case TL_STMT_BARRIER:
        compile_barrier(c);
        break;
    case TL_STMT_IF:
        compile_if(c, stmt);
        break;
    case TL_STMT_BLOCK:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
        compile_leaf(c, stmt);
        break;
    case TL_STMT_PREFETCH:
    case TL_STMT_KIND_COUNT:
        break;
    }
    c->site = site;
}

/* Top-level statements, also those after a top-level alloc of memory, are phases. */
static void compile_phases(tl_compiler *c, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            compile_phases(c, stmt->u.seq.items[i]);
    } else if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer->scope == TL_SCOPE_GLOBAL) {
        const tl_buffer *buffer = stmt->u.alloc.buffer;
        int memory = add_memory(c, buffer);
        emit_memory(c, TL_INSN_ALLOC, memory);
        compile_phases(c, stmt->u.alloc.body);
        emit_memory(c, TL_INSN_FREE, memory);
        enter(c, buffer)->is_open = false;
    } else {
        compile_stmt(c, stmt);
        end_phase(c);
        c->site = -1;
        emit(c, TL_INSN_PHASE);
    }
}

void tl_machine_compile(tl_machine *m, const tl_program *program, const int64_t *dims,
                        bool with_prepare)
{
    tl_compiler *c = TL_NEW(m->arena, tl_compiler);
    c->m = m;
    c->site = -1;
    for (int i = 0; i < program->dim_count; i++) {
        entry *e = enter(c, program->dims[i]);
        *e = (entry){ program->dims[i], dims[i], true, true };
    }
    for (int i = 0; i < program->param_count; i++)
        add_memory(c, program->params[i]);
    for (int i = 0; i < program->prepared_count; i++)
        add_memory(c, program->prepared[i]);

    c->in_prepare = true;
    if (with_prepare && program->prepare != NULL)
        compile_phases(c, program->prepare);
    c->in_prepare = false;
    compile_phases(c, program->body);
    emit(c, TL_INSN_END);
}
