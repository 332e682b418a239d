/* codegen/object/ptxas.c: see ptxas.h. It runs in a folder of its own below TMPDIR, which is gone afterwards. */
#include "codegen/object/ptxas.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/array.h"
#include "runtime/base/file.h"

extern char **environ;

const char *tl_ptxas_find(tl_arena *arena)
{
    const char *folders = getenv("PATH");
    for (const char *at = folders != NULL ? folders : ""; *at != '\0';) {
        size_t size = strcspn(at, ":");
        const char *path = tl_arena_format(arena, "%.*s/ptxas", (int)size, at);
        if (size > 0 && access(path, X_OK) == 0)
            return path;
        at += size + (at[size] == ':');
    }
    static const char usual[] = "/usr/local/cuda/bin/ptxas";
    return access(usual, X_OK) == 0 ? usual : NULL;
}

typedef struct {
    const char *folder, *ptx, *cubin, *log;
} work;

static tl_status open_work(tl_arena *arena, work *w, tl_diag *diag)
{
    const char *base = getenv("TMPDIR");
    char *folder = (char *)tl_arena_format(arena, "%s/tilth-ptxas-XXXXXX",
                                           base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(folder) == NULL)
        return tl_fail(diag, TL_IO, "ptxas: no folder %s can be made", folder);
    *w = (work){ folder, tl_arena_format(arena, "%s/kernel.ptx", folder),
                 tl_arena_format(arena, "%s/kernel.cubin", folder),
                 tl_arena_format(arena, "%s/log", folder) };
    return TL_OK;
}

static void close_work(const work *w)
{
    unlink(w->ptx);
    unlink(w->cubin);
    unlink(w->log);
    rmdir(w->folder);
}

/* Its exit status, -1 when it did not run to its end. */
static int run(tl_arena *arena, const char *program, const char *arch, const work *w)
{
    const char *target = tl_arena_format(arena, "-arch=%s", arch);
    const char *arguments[] = { "ptxas", "-v", target, w->ptx, "-o", w->cubin, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, w->log, O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child;
    int status = -1;
    int error = posix_spawn(&child, program, &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* The number before `unit` in a line, 0 when there is none. */
static int64_t number_before(const char *line, const char *unit)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, unit);
    if (at == NULL || (end != NULL && at > end))
        return 0;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return strtoll(at, NULL, 10);
}

/* Lines of ptxas -v: "Compiling entry function 'NAME' for ...", then those that speak of it. */
static void read_log(tl_arena *arena, const char *log, const tl_ptx_use **uses, int *count)
{
    static const char entry[] = "Compiling entry function '";
    tl_ptx_use *all = NULL;
    int all_count = 0, capacity = 0;
    for (const char *line = log; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        const char *named = strstr(line, entry);
        if (named != NULL && named < line + size) {
            named += sizeof entry - 1;
            TL_ROOM(arena, all, all_count, capacity);
            all[all_count++] =
                (tl_ptx_use){ .kernel = tl_arena_format(arena, "%.*s", (int)strcspn(named, "'\n"),
                                                        named) };
        } else if (all_count > 0) {
            tl_ptx_use *use = &all[all_count - 1];
            use->stack_bytes += number_before(line, " bytes stack frame");
            use->spill_bytes += number_before(line, " bytes spill stores") +
                                number_before(line, " bytes spill loads");
            use->registers += (int)number_before(line, " registers");
            use->shared_bytes += number_before(line, " bytes smem");
        }
        line += size + (line[size] == '\n');
    }
    *uses = all;
    *count = all_count;
}

static tl_status assemble(tl_arena *arena, const char *program, const char *ptx, const char *arch,
                          const work *w, tl_text *cubin, tl_text *log, tl_diag *diag)
{
    TL_TRY(tl_file_write(w->ptx, ptx, strlen(ptx), diag));
    int status = run(arena, program, arch, w);
    (void)tl_file_read(w->log, log, NULL);
    if (status != 0)
        return tl_fail(diag, TL_INTERNAL, "%s does not take the code for %s: %.800s", program, arch,
                       tl_text_get(log));
    return cubin != NULL ? tl_file_read(w->cubin, cubin, diag) : TL_OK;
}

tl_status tl_ptxas_run(tl_arena *arena, const char *ptx, const char *arch, tl_text *cubin,
                       const tl_ptx_use **uses, int *count, tl_diag *diag)
{
    const char *program = tl_ptxas_find(arena);
    if (program == NULL)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "there is no ptxas in PATH or in /usr/local/cuda/bin: it comes with CUDA");
    work w = { 0 };
    TL_TRY(open_work(arena, &w, diag));
    tl_text log = { 0 };
    tl_status status = assemble(arena, program, ptx, arch, &w, cubin, &log, diag);
    if (status == TL_OK)
        read_log(arena, tl_text_get(&log), uses, count);
    tl_text_free(&log);
    close_work(&w);
    return status;
}
