/* tests/fuzz/fuzz_executable.c: the structure of a saved model. What its checksum would refuse at once is no test, so that the
 * first line, which holds it, is written here, and constants and code are a file of zeros each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/checksum.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/executable_private.h"
#include "tests/fuzz/fuzz.h"

static char folder[] = "/tmp/tilth_fuzz_XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const char *head, const void *bytes, size_t size)
{
    FILE *f = fopen(path_of(name), "wb");
    if (f == NULL || fwrite(head, 1, strlen(head), f) != strlen(head) ||
        fwrite(bytes, 1, size, f) != size)
        abort();
    fclose(f);
}

static void remove_folder(void)
{
    for (int i = 0; tl_executable_files[i] != NULL; i++)
        unlink(path_of(tl_executable_files[i]));
    rmdir(folder);
}

static void make_folder(void)
{
    static const char zeros[4096];
    if (mkdtemp(folder) == NULL)
        abort();
    atexit(remove_folder);
    for (int i = 0; tl_executable_files[i] != NULL; i++)
        write_bytes(tl_executable_files[i], "", zeros, sizeof zeros);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static bool is_made;
    char head[256];
    tl_executable *executable = NULL;
    tl_diag diag = { 0 };
    if (!is_made)
        make_folder();
    is_made = true;
    snprintf(
        head, sizeof head,
        "{\"format\":\"tilth executable\",\"version\":%d,\"size\":%zu,\"checksum\":\"%016" PRIx64
        "\"}\n",
        TL_EXECUTABLE_VERSION, size, tl_checksum(bytes, size));
    write_bytes("executable.json", head, bytes, size);
    fuzz_check_refusal(tl_executable_load(folder, &executable, &diag), &diag);
    tl_executable_destroy(executable);
    return 0;
}
