/* codegen/object/elf_object.c: reading a relocatable 64-bit ELF object. */
#include "codegen/object/elf_object.h"
#include <stdbool.h>
#include <string.h>

static bool inside(const tl_elf *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->size && size <= elf->size - offset;
}

tl_status tl_elf_open(const void *object, size_t size, tl_elf *out, tl_diag *diag)
{
    *out = (tl_elf){ .data = object, .size = size };
    Elf64_Ehdr *h = &out->header;
    if (size < sizeof *h)
        return tl_fail(diag, TL_BAD_ARGUMENT, "an object of %zu bytes is too small to be one",
                       size);
    memcpy(h, object, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_type != ET_REL || h->e_shentsize != sizeof(Elf64_Shdr))
        return tl_fail(diag, TL_BAD_ARGUMENT, "the object is no relocatable 64-bit ELF file");
    return TL_OK;
}

tl_status tl_elf_section(const tl_elf *elf, unsigned index, Elf64_Shdr *out, tl_diag *diag)
{
    uint64_t at = elf->header.e_shoff + (uint64_t)index * sizeof *out;
    bool good = index < elf->header.e_shnum && elf->header.e_shoff <= elf->size &&
                inside(elf, at, sizeof *out);
    if (good) {
        memcpy(out, elf->data + at, sizeof *out);
        good = out->sh_type == SHT_NOBITS || inside(elf, out->sh_offset, out->sh_size);
    }
    return good ? TL_OK
                : tl_fail(diag, TL_BAD_ARGUMENT, "section %u of the object lies outside of it",
                          index);
}

tl_status tl_elf_text(const tl_elf *elf, const Elf64_Shdr *strings, uint64_t offset,
                      const char **out, tl_diag *diag)
{
    const char *table = (const char *)elf->data + strings->sh_offset;
    if (strings->sh_type != SHT_STRTAB || offset >= strings->sh_size ||
        memchr(table + offset, '\0', strings->sh_size - offset) == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "a name of the object has no end");
    *out = table + offset;
    return TL_OK;
}
