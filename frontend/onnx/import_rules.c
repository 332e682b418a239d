/* frontend/onnx/import_rules.c: which importer makes canonical nodes of an operator of some opset. */
#include <string.h>
#include "frontend/onnx/import_rules.h"

static const tl_import_rule import_rules[] = {
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) \
    { type, since, until, min, max, outputs, tl_import_##importer, TL_OP_##op, attributes },
#include "frontend/onnx/import_ops.def"
#undef IMPORT
};

static const struct {
    const char *op_type, *reason;
} refusals[] = {
#define REFUSE(type, reason) { type, reason },
#include "frontend/onnx/import_refused.def"
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
