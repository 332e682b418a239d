/* driver/output/output_library.c: a model as a shared library: its object through the system's linker. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "driver/output/output.h"
#include "driver/output/work_folder.h"
#include "runtime/base/file.h"
#include "runtime/executable/linked.h"

extern char **environ;

/* Compilers pass these arguments on to a linker, linkers take them as they are. */
static const char *const linkers[] = { "cc", "gcc", "clang", "ld", "ld.lld" };
enum { LINKERS = sizeof linkers / sizeof *linkers };

/* The first of them that there is. */
static int start_linker(const char *object, const char *library, const char *log, const char **name,
                        pid_t *out)
{
    posix_spawn_file_actions_t actions;
    int error = ENOENT;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    for (int i = 0; i < LINKERS && error == ENOENT; i++) {
        const char *const arguments[] = { linkers[i], "-shared", "-nostdlib", "-o",
                                          library,    object,    NULL };
        *name = linkers[i];
        error = posix_spawnp(out, linkers[i], &actions, NULL, (char *const *)arguments, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Ends it when the user does not want to wait any longer. */
static int wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
        if (tl_work_interrupted())
            kill(child, SIGTERM);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static tl_status link_library(const char *object, const char *library, const char *log,
                              tl_diag *diag)
{
    const char *name = "";
    pid_t child;
    int error = start_linker(object, library, log, &name, &child);
    if (error == ENOENT)
        return tl_fail(diag, TL_DEVICE,
                       "there is no linker here to make a shared library with (looked for cc, gcc, "
                       "clang, ld and ld.lld); -o NAME.o and -o NAME.tilth need none");
    if (error != 0)
        return tl_fail(diag, TL_DEVICE, "cannot start %s: %s", name, strerror(error));
    if (wait_for(child) == 0)
        return TL_OK;
    tl_text said = { 0 };
    (void)tl_file_read(log, &said, NULL);
    tl_status status =
        tl_fail(diag, TL_DEVICE, "%s could not link the library: %.600s", name, tl_text_get(&said));
    tl_text_free(&said);
    return status;
}

static tl_status make_library(const tl_output *o, const char *work, tl_diag *diag)
{
    char object[PATH_MAX], library[PATH_MAX], log[PATH_MAX];
    snprintf(object, sizeof object, "%s/model.o", work);
    snprintf(log, sizeof log, "%s/linker.txt", work);
    if (snprintf(library, sizeof library, "%s/model.so", work) >= PATH_MAX)
        return tl_fail(diag, TL_IO, "%s: the path is too long", o->path);
    tl_status status = tl_output_write_object(o->model, TL_LINKED_SYMBOL, object, diag);
    status = tl_work_status(status, diag);
    if (status == TL_OK)
        status = link_library(object, library, log, diag);
    status = tl_work_status(status, diag);
    TL_TRY(status);
    tl_mapping file;
    TL_TRY(tl_file_map(library, &file, diag));
    status = tl_file_write(o->path, file.data, file.size, diag);
    tl_file_unmap(&file);
    return status == TL_OK ? status : tl_work_status(status, diag);
}

tl_status tl_output_library(tl_output *o, tl_diag *diag)
{
    char *work;
    const char *temporary = getenv("TMPDIR");
    tl_text place = { 0 };
    if (!tl_file_is_stream(o->path))
        tl_text_add(&place, o->path);
    else /* not beside a device */
        tl_text_format(&place, "%s/tilth", temporary != NULL ? temporary : "/tmp");
    tl_status status = place.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                    : tl_work_folder_make(place.data, &work, diag);
    tl_text_free(&place);
    TL_TRY(status);
    status = make_library(o, work, diag);
    tl_work_folder_remove(work);
    return status;
}
