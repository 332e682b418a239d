/* tests/gpu/peers/peer_library.c: libraries that may be there, by dlopen. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/gpu/peers/peer.h"

static void *open_in(const char *folder, size_t size, const char *file)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%.*s/%s", (int)size, folder, file);
    return size > 0 && length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
}

void *peer_open(const char *const files[], tl_diag *diag)
{
    const char *folders = getenv("TILTH_PEERS");
    void *library = NULL;
    for (const char *at = folders; at != NULL && library == NULL;) {
        size_t size = strcspn(at, ":");
        for (int i = 0; files[i] != NULL && library == NULL; i++)
            library = open_in(at, size, files[i]);
        at = at[size] == ':' ? at + size + 1 : NULL;
    }
    for (int i = 0; files[i] != NULL && library == NULL; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL)
        tl_fail(diag, TL_DEVICE, "there is no %s, nor an older one: %s", files[0], dlerror());
    return library;
}

tl_status peer_find(void *library, const peer_symbol *symbols, int count, tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].symbol);
        if (address == NULL)
            return tl_fail(diag, TL_DEVICE, "the library has no %s", symbols[i].symbol);
        memcpy(symbols[i].field, &address, sizeof address);
    }
    return TL_OK;
}

tl_status peer_failed(int code, const char *call, const char *text, tl_diag *diag)
{
    if (code == 0)
        return TL_OK;
    return tl_fail(diag, TL_UNSUPPORTED, "%s failed: %s (%d)", call,
                   text != NULL ? text : "no more is said", code);
}
