/* tests/driver/other_fingerprint.c: linked with --wrap into a tilth that says that its code generator has other sources. */
#include "codegen/codegen.h"

const char *__wrap_tl_codegen_fingerprint(void);

const char *__wrap_tl_codegen_fingerprint(void)
{
    return "00000000000000000000000000000000";
}
