/* tests/runtime/kernels.h: a temporary folder, and objects compiled in it by the system's C
 * compiler. */
#ifndef TL_TESTS_RUNTIME_KERNELS_H
#define TL_TESTS_RUNTIME_KERNELS_H
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/text.h"

/* What every generated kernel begins with: the ABI, without needing our headers in the temporary
 * folder. */
#define KERNEL_START                                                                        \
    "#include <stdint.h>\n#include <string.h>\n"                                            \
    "typedef struct { void *const *buffers; const int64_t *dims; unsigned char *scratch;\n" \
    "  unsigned char *thread_scratch; int64_t thread_scratch_stride; } args;\n"

static inline char *temp_folder_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path;

    if (asprintf(&path, "%s/tilth-test-XXXXXX", base != NULL ? base : "/tmp") < 0)
        abort();
    if (mkdtemp(path) == NULL)
        abort();
    return path;
}

static inline int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void temp_folder_remove(char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

/* "FOLDER/NAME", freed by the caller. */
static inline char *path_in(const char *folder, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    return path;
}

/* Compiles C into an object's bytes; false when there is no compiler. */
static inline bool compile_kernel(const char *folder, const char *source, const char *options,
                                  tl_text *object)
{
    char *c = path_in(folder, "kernel.c"), *o = path_in(folder, "kernel.o"), *command;
    const char *compiler = getenv("CC");

    if (asprintf(&command, "%s -std=gnu11 -O2 -fPIC %s -c '%s' -o '%s'",
                 compiler != NULL ? compiler : "gcc", options, c, o) < 0)
        abort();
    bool ok = tl_file_write(c, source, strlen(source), NULL) == TL_OK && system(command) == 0 &&
              tl_file_read(o, object, NULL) == TL_OK;
    free(command);
    free(c);
    free(o);
    return ok;
}

#endif
