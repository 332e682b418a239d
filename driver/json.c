/* driver/json.c: what every --json output has in common. */
#include <stdio.h>
#include "codegen/codegen.h"
#include "driver/session.h"
#include "runtime/cpu.h"
#include "runtime/topology.h"

/* Bytes of the UTF-8 sequence that begins here; 0: none does. */
static int sequence(const unsigned char *p)
{
    int more = p[0] >= 0xf0 && p[0] < 0xf5 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2 ? 1 : 0;
    if (p[0] < 0x80)
        return 1;
    if (more == 0 || p[0] >= 0xf5)
        return 0;
    for (int i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90);
    return overlong || beyond ? 0 : more + 1;
}

void tl_json_add_text(tl_text *out, const char *text)
{
    tl_text_add(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int size = sequence(p);
        if (*p == '"' || *p == '\\')
            tl_text_format(out, "\\%c", *p);
        else if (*p < 0x20 || size == 0)
            tl_text_format(out, "\\u%04x", *p);
        else
            tl_text_add_bytes(out, p, (size_t)size);
        p += size > 0 ? size : 1;
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
