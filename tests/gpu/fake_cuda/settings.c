/* tests/gpu/fake_cuda/settings.c: what FAKE_CUDA says, and what tests ask. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdlib.h>
#include <string.h>

fake_state fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

static long long setting(const char *name, long long otherwise)
{
    const char *text = getenv("FAKE_CUDA");
    size_t size = strlen(name);

    for (; text != NULL && *text != '\0'; text += strcspn(text, ",") + (strchr(text, ',') != NULL))
        if (strncmp(text, name, size) == 0 &&
            (text[size] == '=' || text[size] == ',' || text[size] == '\0'))
            return text[size] == '=' ? atoll(text + size + 1) : 1;
    return otherwise;
}

void fake_read_settings(void)
{
    fake.say.no_device = (int)setting("no-device", 0);
    fake.say.devices = (int)setting("devices", 1);
    fake.say.version = (int)setting("version", 12080);
    fake.say.sm = (int)setting("sm", 90);
    fake.say.memory = setting("memory", 1LL << 30);
    fake.say.fail_init = (int)setting("fail-init", 0);
    fake.say.fail_alloc = (int)setting("fail-alloc", 0);
    fake.say.fail_load = (int)setting("fail-load", 0);
    fake.say.lose_launch = (int)setting("lose-launch", 0);
    fake.say.wrong_launch = (int)setting("wrong-launch", 0);
    fake.say.hang_launch = (int)setting("hang-launch", 0);
    fake.say.slow_launch = (int)setting("slow-launch", 0);
    fake.say.nothing = (int)setting("nothing", 0);
}

__attribute__((visibility("default"))) void fake_cuda_reset(void);
void fake_cuda_reset(void)
{
    pthread_mutex_lock(&fake.lock);
    fake_read_settings();
    fake.lost = fake.alive = 0;
    memset(&fake.count, 0, sizeof fake.count);
    pthread_mutex_unlock(&fake.lock);
}

__attribute__((visibility("default"))) int fake_cuda_alive(void);
int fake_cuda_alive(void)
{
    return fake.alive;
}

__attribute__((visibility("default"))) void fake_cuda_counts(int *launches, int *graph_launches,
                                                             int *copies_in, int *copies_out);
void fake_cuda_counts(int *launches, int *graph_launches, int *copies_in, int *copies_out)
{
    *launches = fake.count.launches;
    *graph_launches = fake.count.graph_launches;
    *copies_in = fake.count.copies_in;
    *copies_out = fake.count.copies_out;
}
