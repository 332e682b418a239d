/* frontend/import/import_rules.c: which importer makes canonical nodes of an operator of some opset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/import/import_counted.h"
#include "frontend/import/import_rules.h"

static const tl_import_rule import_rules[] = {
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) \
    { type, since, until, min, max, outputs, tl_import_##importer, TL_OP_##op, attributes },
#include "frontend/import/import_ops.def"
#undef IMPORT
};

static const struct {
    const char *op_type, *reason;
} refusals[] = {
#define REFUSE(type, reason) { type, reason },
#include "frontend/import/import_refused.def"
#undef REFUSE
};

const tl_import_rule *tl_import_rule_find(const char *op_type, int version, const char **reason)
{
    bool known = false;
    for (size_t i = 0; i < sizeof import_rules / sizeof import_rules[0]; i++) {
        const tl_import_rule *rule = &import_rules[i];
        if (strcmp(rule->op_type, op_type) != 0)
            continue;
        if (version >= rule->since && (rule->until == 0 || version <= rule->until))
            return rule;
        known = true;
    }
    *reason = known ? "its form in this opset is not supported" : "the operator is not implemented";
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (strcmp(refusals[i].op_type, op_type) == 0)
            *reason = refusals[i].reason;
    return NULL;
}

enum {
    RULE_COUNT = sizeof import_rules / sizeof import_rules[0],
    REFUSAL_COUNT = sizeof refusals / sizeof refusals[0],
};

/* The forms of an operator stand together, the oldest first. */
static int operator_end(int first)
{
    int end = first + 1;
    while (end < RULE_COUNT && strcmp(import_rules[end].op_type, import_rules[first].op_type) == 0)
        end++;
    return end;
}

bool tl_onnx_find_operator(int index, tl_onnx_operator *out)
{
    int first = 0;
    for (; index > 0 && first < RULE_COUNT; index--)
        first = operator_end(first);
    if (first == RULE_COUNT) {
        if (index < REFUSAL_COUNT)
            *out = (tl_onnx_operator){ .name = refusals[index].op_type,
                                       .reason = refusals[index].reason };
        return index < REFUSAL_COUNT;
    }
    int end = operator_end(first);
    const tl_import_rule *newest = &import_rules[end - 1];
    bool is_onnx = strchr(newest->op_type, '.') == NULL;
    *out = (tl_onnx_operator){
        .name = newest->op_type,
        .since = import_rules[first].since,
        .until = newest->until == 0 && is_onnx ? TL_ONNX_NEWEST_OPSET : newest->until,
        .forms = end - first,
        .min_inputs = newest->min_inputs,
        .max_inputs = newest->max_inputs,
        .max_outputs = newest->max_outputs,
        .takes_counted = tl_takes_counted(newest->op_type),
    };
    return true;
}

static const struct {
    const char *name, *since;
} versions[] = {
#define VERSIONS(name, since) { name, since },
#include "frontend/import/onnx_versions.def"
#undef VERSIONS
};

bool tl_onnx_find_version(int index, tl_onnx_version *out)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        for (const char *at = versions[i].since; *at != '\0'; at += strspn(at, " ")) {
            char *end;
            int since = (int)strtol(at, &end, 10);
            at = end;
            if (index-- > 0)
                continue;
            *out = (tl_onnx_version){ .since = since };
            snprintf(out->name, sizeof out->name, "%s", versions[i].name);
            if (tl_import_rule_find(out->name, since, &out->reason) != NULL)
                out->reason = NULL;
            return true;
        }
    return false;
}
