/* frontend/call/onnx_scope.c: names, and what is not supported. */
#include "frontend/call/onnx_scope.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *text, *first; /* operator and reason; the first node */
    const char *reason;
    int count;
} refusal;

const char *tl_text_or(const char *s, const char *otherwise)
{
    return s != NULL && s[0] != '\0' ? s : otherwise;
}

const char *tl_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* ---- what is not supported ---- */

void tl_onnx_refuse(tl_import *im, const char *what, const char *where, const char *reason)
{
    const char *key = tl_arena_format(im->arena, "%s\n%s", what, reason);
    refusal *r = tl_map_find(im->refusals, key);
    if (r == NULL) {
        r = TL_NEW(im->arena, refusal);
        *r = (refusal){ .text = tl_arena_strdup(im->arena, what),
                        .first = tl_arena_strdup(im->arena, where),
                        .reason = tl_arena_strdup(im->arena, reason) };
        tl_map_put(im->refusals, key, r);
    }
    r->count++;
}

/* "not supported: NonZero, Det": what is refused, each once; of a single one the reason, too. */
static int print_heading(const tl_import *im, char *out, size_t size)
{
    size_t count = tl_map_count(im->refusals), used = 0;
    const refusal *first = tl_map_at(im->refusals, 0).value;
    if (count == 1)
        return snprintf(out, size, "not supported: %.80s (%.160s)", first->text, first->reason);
    const char *lead = "not supported: ";
    tl_map *told = tl_map_create(im->arena);
    for (size_t i = 0; i < count; i++) {
        const refusal *r = tl_map_at(im->refusals, i).value;
        if (tl_map_has(told, r->text))
            continue;
        if (used > size / 4) {
            used += (size_t)snprintf(out + used, size - used, " and others");
            break;
        }
        tl_map_put(told, r->text, told);
        used += (size_t)snprintf(out + used, size - used, "%s%.80s", lead, r->text);
        lead = ", ";
    }
    return (int)used;
}

/* What, and a line each with count, first node and reason; those that no longer fit are counted. */
tl_status tl_report_refusals(tl_import *im)
{
    size_t count = tl_map_count(im->refusals);
    if (count == 0)
        return TL_OK;
    char text[sizeof im->diag->text];
    size_t used = (size_t)print_heading(im, text, sizeof text);
    for (size_t i = 0; i < count; i++) {
        const refusal *r = tl_map_at(im->refusals, i).value;
        char line[400];
        int size = snprintf(line, sizeof line, "\n  %.80s: %d, first '%.100s': %.160s", r->text,
                            r->count, r->first, r->reason);
        if (used + (size_t)size + 32 > sizeof text) {
            snprintf(text + used, sizeof text - used, "\n  ... and %zu more", count - i);
            break;
        }
        memcpy(text + used, line, (size_t)size + 1);
        used += (size_t)size;
    }
    return tl_fail(im->diag, TL_UNSUPPORTED, "%s", text);
}

static tl_status refuse_call(tl_onnx_call *c, const char *format, va_list args)
{
    char reason[400];
    vsnprintf(reason, sizeof reason, format, args);
    tl_onnx_refuse(c->import, c->op_type, c->name, reason);
    return TL_UNSUPPORTED;
}

tl_status tl_call_unsupported(tl_onnx_call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tl_status status = refuse_call(c, format, args);
    va_end(args);
    return status;
}

tl_status tl_call_unknown(tl_onnx_call *c, const char *format, ...)
{
    bool may_come = c->import->is_open || tl_map_count(c->import->needed) > 0;
    c->import->is_unknown |= may_come;
    va_list args;
    va_start(args, format);
    tl_status status = may_come ? TL_UNSUPPORTED : refuse_call(c, format, args);
    va_end(args);
    return status;
}

/* ---- names ---- */

const char *tl_value_key(const tl_import *im, const tl_value *v)
{
    return tl_arena_format(im->arena, "%p", (const void *)v);
}

tl_onnx_binding *tl_scope_find(const tl_onnx_scope *s, const char *name)
{
    for (; s != NULL; s = s->parent) {
        tl_onnx_binding *b = tl_map_find(s->bindings, name);
        if (b != NULL)
            return b;
    }
    return NULL;
}

tl_status tl_scope_bind(tl_import *im, tl_onnx_scope *s, const char *name, tl_value *value,
                        bool unsupported)
{
    if (tl_scope_find(s, name) != NULL)
        return tl_fail(im->diag, TL_BAD_MODEL, "the name '%.200s' is defined twice", name);
    tl_onnx_binding *b = TL_NEW(im->arena, tl_onnx_binding);
    *b = (tl_onnx_binding){ value, unsupported, im->region };
    tl_map_put(s->bindings, name, b);
    return TL_OK;
}

tl_status tl_default_opset(const tl_import *im, size_t count, Onnx__OperatorSetIdProto **imports,
                           int *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(tl_domain(imports[i]->domain), tl_domain(imports[k]->domain)) == 0)
                return tl_fail(im->diag, TL_BAD_MODEL,
                               "the opset of domain '%.100s' is imported twice",
                               tl_domain(imports[i]->domain));
        if (tl_domain(imports[i]->domain)[0] != '\0')
            continue;
        int64_t version = imports[i]->version;
        if (version < 1)
            return tl_fail(im->diag, TL_BAD_MODEL, "opset version %lld does not exist",
                           (long long)version);
        if (version > TL_ONNX_NEWEST_OPSET)
            return tl_fail(im->diag, TL_UNSUPPORTED,
                           "opset version %lld is newer than %d, the newest that is supported",
                           (long long)version, TL_ONNX_NEWEST_OPSET);
        *out = (int)version;
    }
    return TL_OK;
}
