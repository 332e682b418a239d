/* tests/bench/program.c: what programs that measure candidates have in common. */
#include "tests/bench/program.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void bench_must(tl_status status, const tl_diag *diag)
{
    if (status == TL_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, diag->text);
    exit(1);
}

const char *bench_tilth(void)
{
    static char self[4096], path[sizeof self + 16];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    snprintf(path, sizeof path, "%s/../tilth", dirname(self));
    return path;
}
