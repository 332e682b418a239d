/* driver/pipeline/build_id.c: the build id that the linker put into the note of this program or library: a digest of all
 * of it. */
#include "driver/pipeline/build_id.h"
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "runtime/api/tilth_rt.h"

static char id[128];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void take_note(const unsigned char *p, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, p, sizeof note);
        size_t name = (note.n_namesz + 3u) & ~(size_t)3, text = (note.n_descsz + 3u) & ~(size_t)3;
        if (name > size - sizeof note || text > size - sizeof note - name)
            return;
        const unsigned char *bytes = p + sizeof note + name;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz < sizeof id / 2)
            for (size_t i = 0; i < note.n_descsz; i++)
                snprintf(id + 2 * i, 3, "%02x", bytes[i]);
        p += sizeof note + name + text;
        size -= sizeof note + name + text;
    }
}

static int look(struct dl_phdr_info *module, size_t size, void *context)
{
    (void)size;
    bool ours = false;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &module->dlpi_phdr[i];
        uintptr_t begin = module->dlpi_addr + h->p_vaddr;
        ours |= h->p_type == PT_LOAD && (uintptr_t)context >= begin &&
                (uintptr_t)context < begin + h->p_memsz;
    }
    for (int i = 0; ours && i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_NOTE)
            take_note((const unsigned char *)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr),
                      module->dlpi_phdr[i].p_memsz);
    return ours;
}

static void find(void)
{
    snprintf(id, sizeof id, "%s", TILTH_VERSION);
    dl_iterate_phdr(look, (void *)(uintptr_t)&tl_build_id);
}

const char *tl_build_id(void)
{
    pthread_once(&once, find);
    return id;
}
