/* codegen/object/object_key.c: the key of an object. Everything that decides its bytes goes in, and nothing else. */
#include "codegen/codegen.h"
#include "runtime/base/map.h"
#include <string.h>

static void add(tl_digest *digest, const char *text)
{
    tl_digest_add(digest, text, strlen(text) + 1); /* the NUL keeps neighbours apart */
}

void tl_codegen_key(const tl_program *program, bool prepare, const tl_target *target, char out[33])
{
    /* Lowering and emission are functions of the scheduled program, the target and the sources of both. */
    tl_text text = { 0 };
    tl_program_print(program, &text);
    tl_target_print(target, &text);
    tl_digest digest;
    tl_digest_start(&digest);
    add(&digest, tl_text_get(&text));
    add(&digest, tl_codegen_fingerprint());
    add(&digest, prepare ? "part=prepare" : "part=body");
    add(&digest, program->strict ? "numerics=strict"
                 : program->tf32 ? "numerics=tf32"
                                 : "numerics=contract");
    add(&digest, tl_codegen_llvm_version());
    add(&digest, tl_codegen_owns_process() ? "options=own" : "options=shared");
    if (tl_target_is_gpu(target) && tl_ptx_has_module())
        add(&digest, "with module");
    if (text.failed) /* out of memory: a key that nothing else has */
        tl_digest_add(&digest, &text, sizeof text);
    tl_digest_text(&digest, out);
    tl_text_free(&text);
}
