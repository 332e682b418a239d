/* driver/cli/json.c: what every --json output has in common. */
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/cli/session.h"
#include "runtime/base/printable.h"
#include "runtime/device/cpu.h"
#include "runtime/device/topology.h"

void tl_json_add_text(tl_text *out, const char *text)
{
    tl_text_add(out, "\"");
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code;
        int size = tl_utf8_read(text, left, &code);
        if (*text == '"' || *text == '\\')
            tl_text_format(out, "\\%c", *text);
        else if (size <= 0)
            tl_text_add_escaped(out, (unsigned char)*text);
        else if (!tl_is_printable(code))
            tl_text_add_escaped(out, code);
        else
            tl_text_add_bytes(out, text, (size_t)size);
        text += size > 0 ? size : 1;
        left -= size > 0 ? (size_t)size : 1;
    }
    tl_text_add(out, "\"");
}

void tl_print_json_text(const char *text)
{
    tl_text out = { 0 };
    tl_json_add_text(&out, text);
    fputs(tl_text_get(&out), stdout);
    tl_text_free(&out);
}

void tl_print_env_json(void)
{
    const tl_topology *t = tl_topology_get();
    printf("{\"record\":\"env\",\"tilth\":\"%s\",\"llvm\":\"%s\",\"cpu\":", TILTH_VERSION,
           tl_codegen_llvm_version());
    tl_print_json_text(t->cpu_name);
    printf(",\"isa\":\"%s\",\"cores\":%d,\"threads\":%d,\"l1_bytes\":%lld,\"l2_bytes\":%lld,\"l3_"
           "bytes\":%lld}\n",
           tl_cpu_host_level(), t->usable_cores, t->threads, (long long)t->l1_bytes,
           (long long)t->l2_bytes, (long long)t->l3_bytes);
}
