/* runtime/base/program_path.c: by which path this program is started again. */
#include "runtime/base/program_path.h"
#include <stdlib.h>

const char *tl_program_path(void)
{
    const char *said = getenv("TILTH_PROGRAM");
    return said != NULL && said[0] != '\0' ? said : "/proc/self/exe";
}
