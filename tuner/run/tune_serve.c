/* tuner/run/tune_serve.c: a thread that hands work to builders and runner while the policy thinks. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "runtime/base/clock.h"
#include "tuner/run/tune_private.h"

#define PAUSE_NS 500000

struct tl_server {
    tl_measurer *measurer;
    pthread_mutex_t turn; /* who holds it may use the measurer */
    pthread_t thread;
    bool is_over; /* under the mutex */
};

static void *serve(void *context)
{
    tl_server *server = context;
    for (;;) {
        pthread_mutex_lock(&server->turn);
        bool is_over = server->is_over;
        if (!is_over)
            tl_measurer_pump(server->measurer);
        pthread_mutex_unlock(&server->turn);
        if (is_over)
            return NULL;
        tl_clock_sleep_ns(PAUSE_NS);
    }
}

tl_server *tl_server_create(tl_measurer *measurer)
{
    tl_server *server = calloc(1, sizeof *server);
    sigset_t all, before;
    if (server == NULL)
        return NULL;
    server->measurer = measurer;
    pthread_mutex_init(&server->turn, NULL);
    pthread_mutex_lock(&server->turn);
    sigfillset(&all); /* signals are for the threads of the caller */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&server->thread, NULL, serve, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return server;
    pthread_mutex_unlock(&server->turn);
    pthread_mutex_destroy(&server->turn);
    free(server);
    return NULL;
}

void tl_server_destroy(tl_server *server)
{
    if (server == NULL)
        return;
    server->is_over = true;
    pthread_mutex_unlock(&server->turn);
    pthread_join(server->thread, NULL);
    pthread_mutex_destroy(&server->turn);
    free(server);
}

void tl_server_begin(tl_server *server)
{
    if (server != NULL)
        pthread_mutex_unlock(&server->turn);
}

void tl_server_end(tl_server *server)
{
    if (server != NULL)
        pthread_mutex_lock(&server->turn);
}

/* Builders have the same core: what counts is the time that the search itself has it. */
static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tl_tuning_begin_thinking(tl_tuning *t)
{
    tl_server_begin(t->server);
    return cpu_ns();
}

void tl_tuning_end_thinking(tl_tuning *t, int64_t start)
{
    tl_server_end(t->server);
    t->search_ns += (double)(cpu_ns() - start);
}
