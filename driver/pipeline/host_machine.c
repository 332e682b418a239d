/* driver/pipeline/host_machine.c: machine profiles as files. */
#include "driver/pipeline/host_machine.h"
#include <stdio.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/device/topology.h"

static const char *processor(const tl_target *host)
{
    const char *name = tl_topology_get()->cpu_name;
    return name[0] ? name : host->cpu;
}

bool tl_machine_default_path(const tl_target *host, tl_text *out)
{
    char caches[64], name[33];
    tl_digest digest;
    if (!tl_data_folder(out))
        return false;
    tl_machine_caches(host, caches);
    tl_digest_start(&digest);
    tl_digest_add(&digest, processor(host), strlen(processor(host)));
    tl_digest_add(&digest, caches, strlen(caches));
    tl_digest_add(&digest, &host->cores, sizeof host->cores);
    tl_digest_text(&digest, name);
    tl_text_format(out, "/machine-%.8s.txt", name);
    return !out->failed;
}

bool tl_machine_is_of(const tl_machine *m, const tl_target *host)
{
    char caches[64];
    tl_machine_caches(host, caches);
    return strcmp(m->cpu, processor(host)) == 0 && strcmp(m->caches, caches) == 0 &&
           m->cores == host->cores;
}

tl_status tl_machine_load(const char *path, tl_machine *out, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_status status = tl_file_read(path, &text, diag);
    if (status == TL_OK) {
        tl_diag why = { 0 };
        status = tl_machine_parse(tl_text_get(&text), text.size, out, &why);
        if (status != TL_OK)
            tl_fail(diag, status, "machine profile %s: %s", path, why.text);
    }
    tl_text_free(&text);
    return status;
}

tl_status tl_machine_store(const char *path, const tl_machine *machine, tl_diag *diag)
{
    tl_text text = { 0 };
    const char *slash = strrchr(path, '/');
    tl_status status = TL_OK;
    if (slash != NULL && slash != path && !tl_file_is_stream(path)) {
        tl_text folder = { 0 };
        tl_text_add_bytes(&folder, path, (size_t)(slash - path));
        status = tl_folder_make(tl_text_get(&folder), diag);
        tl_text_free(&folder);
    }
    tl_machine_print(machine, &text);
    if (status == TL_OK && text.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (status == TL_OK)
        status = tl_file_write(path, text.data, text.size, diag);
    tl_text_free(&text);
    return status;
}

static tl_status load_probed(const tl_target *host, tl_machine *out, tl_diag *diag)
{
    tl_text path = { 0 };
    tl_status status = TL_OK;
    if (!tl_machine_default_path(host, &path))
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "no place for machine profiles: neither XDG_DATA_HOME nor HOME is set");
    else if (tl_machine_load(tl_text_get(&path), out, diag) != TL_OK)
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "no sound profile of this machine at %s (tilth info --probe makes one)",
                         tl_text_get(&path));
    else if (!tl_machine_is_of(out, host))
        status = tl_fail(diag, TL_BAD_ARGUMENT, "%s is of another machine: %s, caches %s, %d cores",
                         tl_text_get(&path), out->cpu, out->caches, out->cores);
    tl_text_free(&path);
    return status;
}

const tl_machine *tl_machine_probed(tl_arena *arena, const tl_target *host)
{
    tl_machine *m = TL_NEW(arena, tl_machine);
    return load_probed(host, m, NULL) == TL_OK ? m : NULL;
}

tl_status tl_machine_choose(tl_arena *arena, const char *word, const tl_target *host,
                            const tl_machine **out, tl_diag *diag)
{
    *out = NULL;
    if (word == NULL || strcmp(word, "built-in") == 0)
        return TL_OK;
    tl_machine *m = TL_NEW(arena, tl_machine);
    TL_TRY(strcmp(word, "probed") == 0 ? load_probed(host, m, diag)
                                       : tl_machine_load(word, m, diag));
    *out = m;
    return TL_OK;
}
