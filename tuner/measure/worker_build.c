/* tuner/measure/worker_build.c: the builder's job: a trace replayed on a naive program, the result compiled. */
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "schedule/trace.h"
#include "tuner/measure/worker_private.h"

/* Prepare parts that were compiled, the latest ones: candidates that differ in other decisions pack their constants in
 * the same way. They live as long as the process. */
enum { KEPT_PARTS = 64 };
typedef struct {
    char key[33];
    tl_text object, descriptor;
} part;
static part parts[KEPT_PARTS];
static int next_part;

typedef struct {
    tl_record_status status;
    char hash[17];
    tl_text object, prepare_object, descriptor, prepare_descriptor;
    tl_built built;
} outcome;

/* Which kind of failure a status of schedule or code generation is. */
static tl_record_status kind_of(tl_status status, tl_record_status usual)
{
    return status == TL_NO_MEMORY ? TL_RECORD_MEMORY : usual;
}

/* The form of code that runs where candidates of the target do: a device may want what its usual code is made from. */
static tl_code_form form_of(const tl_worker_config *config, const tl_target *target)
{
    const tl_device_type *type = tl_device_type_named(config->device);
    return type != NULL && tl_target_is_gpu(target) ? type->form : TL_FORM_OBJECT;
}

static tl_status compile(tl_arena *arena, const tl_program *program, bool prepare,
                         const tl_target *target, tl_code_form form, tl_text *object, tl_text *json,
                         tl_diag *diag)
{
    tl_descriptor descriptor;
    TL_TRY(tl_codegen_compile(arena, program, prepare, target, tl_emit_of_form(form), object,
                              &descriptor, diag));
    tl_descriptor_print(&descriptor, json);
    if (object->failed || json->failed)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return TL_OK;
}

static bool find_part(const char *key, tl_text *object, tl_text *descriptor)
{
    for (int i = 0; i < KEPT_PARTS; i++)
        if (strcmp(parts[i].key, key) == 0) {
            tl_text_add_bytes(object, parts[i].object.data, parts[i].object.size);
            tl_text_add(descriptor, tl_text_get(&parts[i].descriptor));
            return true;
        }
    return false;
}

static void keep_part(const char *key, const tl_text *object, const tl_text *descriptor)
{
    part *p = &parts[next_part++ % KEPT_PARTS];
    p->key[0] = '\0';
    p->object.size = p->descriptor.size = 0;
    tl_text_add_bytes(&p->object, object->data, object->size);
    tl_text_add(&p->descriptor, tl_text_get(descriptor));
    if (!p->object.failed && !p->descriptor.failed)
        memcpy(p->key, key, sizeof p->key);
}

/* Its code depends on parameters, prepared buffers and its own statements only. */
static tl_status compile_prepare(tl_arena *arena, const tl_program *program,
                                 const tl_target *target, outcome *o, tl_diag *diag)
{
    char key[33];
    tl_program alone = *program;
    alone.body = program->prepare;
    tl_codegen_key(&alone, true, target, key);
    if (find_part(key, &o->prepare_object, &o->prepare_descriptor))
        return TL_OK;
    TL_TRY(compile(arena, program, true, target, TL_FORM_OBJECT, &o->prepare_object,
                   &o->prepare_descriptor, diag));
    keep_part(key, &o->prepare_object, &o->prepare_descriptor);
    return TL_OK;
}

static tl_status build(tl_arena *arena, const tl_worker_config *config, bool is_reference,
                       const char *text, const char *trace_text, outcome *o, tl_diag *diag)
{
    const tl_target *target = is_reference ? &config->host : &config->target;
    tl_program *naive;
    o->status = TL_RECORD_WORKER;
    TL_TRY(tl_program_parse(arena, text, "program", &naive, diag));
    const tl_program *program = naive;
    if (*trace_text) {
        tl_trace *trace;
        o->status = TL_RECORD_ILLEGAL;
        TL_TRY(tl_trace_parse(arena, trace_text, "trace", target, &trace, diag));
        tl_schedule *s = tl_schedule_create(arena, naive, target, config->verify);
        TL_TRY(tl_trace_apply(trace, s, diag));
        program = tl_schedule_program(s);
        TL_TRY(tl_program_verify(program, diag));
    }
    snprintf(o->hash, sizeof o->hash, "%016llx", (unsigned long long)tl_program_hash(program));
    o->status = TL_RECORD_BUILD;
    if (program->param_count > TL_MAX_PARAMS || program->prepared_count > TL_MAX_PARAMS)
        return tl_fail(diag, TL_UNSUPPORTED, "more than %d parameters", TL_MAX_PARAMS);
    TL_TRY(compile(arena, program, false, target, form_of(config, target), &o->object,
                   &o->descriptor, diag));
    if (program->prepare != NULL)
        TL_TRY(compile_prepare(arena, program, &config->host, o, diag));
    o->built.prepared_count = program->prepared_count;
    for (int i = 0; i < program->prepared_count; i++) {
        int64_t elements = tl_buffer_max_elements(program->prepared[i]);
        if (elements < 0)
            return tl_fail(diag, TL_UNSUPPORTED, "a prepared buffer's size overflows");
        o->built.prepared_bytes[i] = tl_storage_bytes(program->prepared[i]->dtype, elements);
    }
    o->status = TL_RECORD_OK;
    return TL_OK;
}

void tl_worker_build(const tl_worker_config *config, const tl_worker_options *options,
                     const tl_text *body, tl_text *reply)
{
    int64_t start = tl_clock_ns();
    tl_unpacker u = tl_unpack(body);
    outcome o = { .status = TL_RECORD_WORKER };
    tl_diag diag = { 0 };
    bool is_reference = tl_unpack_int(&u) != 0;
    const char *program = tl_unpack_text(&u), *trace = tl_unpack_text(&u);
    if (options->hook != NULL)
        options->hook("build", trace);
    tl_arena *arena = tl_arena_create((size_t)config->memory_bytes);
    if (u.failed) {
        tl_fail(&diag, TL_INTERNAL, "a message was damaged");
    } else if (arena == NULL || TL_ARENA_GUARD(arena)) {
        o.status = TL_RECORD_MEMORY;
        tl_fail(&diag, TL_NO_MEMORY, "building it takes more memory than the limit");
    } else {
        tl_status status = build(arena, config, is_reference, program, trace, &o, &diag);
        if (status != TL_OK)
            o.status = kind_of(status, o.status);
    }
    o.built.object = o.object.data;
    o.built.object_size = o.object.size;
    o.built.descriptor = tl_text_get(&o.descriptor);
    o.built.prepare_object = o.prepare_object.data;
    o.built.prepare_size = o.prepare_object.size;
    o.built.prepare_descriptor = tl_text_get(&o.prepare_descriptor);
    tl_pack_int(reply, o.status);
    tl_pack_text(reply, diag.text);
    tl_pack_text(reply, o.hash);
    tl_pack_real(reply, (double)(tl_clock_ns() - start));
    tl_built_pack(&o.built, reply);
    tl_text_free(&o.object);
    tl_text_free(&o.prepare_object);
    tl_text_free(&o.descriptor);
    tl_text_free(&o.prepare_descriptor);
    tl_arena_destroy(arena);
}
