/* tuner/measure/process.c: starting and ending worker processes. */
#include "tuner/measure/process.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKER_FD = 3, MAX_ARGS = 16, BUFFER_BYTES = 1 << 20 };

extern char **environ;

static int spawn(const char *path, char *const *argv, int fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    sigfillset(&signals);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    int error = posix_spawn(pid, path, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

tl_status tl_process_start(const char *path, const char *const *args, const char *role,
                           tl_process *out, tl_diag *diag)
{
    char *argv[MAX_ARGS] = { (char *)path };
    int argc = 1, ends[2], size = BUFFER_BYTES;
    *out = (tl_process){ 0, -1 };
    for (; *args != NULL && argc < MAX_ARGS - 3; args++)
        argv[argc++] = (char *)*args;
    argv[argc++] = (char *)role;
    argv[argc] = "3";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return tl_fail(diag, TL_DEVICE, "no socket for a worker: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    struct timeval patience = { .tv_sec = 10 };
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int error = spawn(path, argv, ends[1], &out->pid);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        out->pid = 0;
        return tl_fail(diag, TL_DEVICE, "worker %s does not start: %s", path, strerror(error));
    }
    out->fd = ends[0];
    return TL_OK;
}

void tl_process_end(tl_process *process)
{
    int status;
    if (process->fd >= 0)
        close(process->fd);
    if (process->pid > 0) {
        kill(-process->pid, SIGKILL);
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    *process = (tl_process){ 0, -1 };
}
