/* codegen/object_symbols.c: reads the symbol table of an ELF object and refuses what it must not need from outside.
 * Objects may come from files: nothing in one is believed before it was checked against the size. */
#include "codegen/llvm_private.h"
#include <elf.h>
#include <string.h>

const char *const tl_permitted_externals[] = { "memcpy", "memset", "memmove", NULL };

typedef struct {
    const unsigned char *data;
    size_t size;
} bytes;

static bool inside(const bytes *b, uint64_t offset, uint64_t size)
{
    return offset <= b->size && size <= b->size - offset;
}

static bool read_section(const bytes *b, const Elf64_Ehdr *header, unsigned index, Elf64_Shdr *out)
{
    uint64_t at = header->e_shoff + (uint64_t)index * sizeof *out;
    if (index >= header->e_shnum || header->e_shoff > b->size || !inside(b, at, sizeof *out))
        return false;
    memcpy(out, b->data + at, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(b, out->sh_offset, out->sh_size);
}

static bool is_permitted(const char *name)
{
    for (int i = 0; tl_permitted_externals[i] != NULL; i++)
        if (strcmp(name, tl_permitted_externals[i]) == 0)
            return true;
    return false;
}

static tl_status check_table(const bytes *b, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                             tl_diag *diag)
{
    const char *names = (const char *)b->data + strings->sh_offset;
    if (strings->sh_size == 0 || names[strings->sh_size - 1] != '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the object's table of names has no end");
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, b->data + table->sh_offset + at, sizeof symbol);
        if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0)
            continue;
        if (symbol.st_name >= strings->sh_size)
            return tl_fail(diag, TL_BAD_ARGUMENT, "a symbol of the object has no name");
        if (!is_permitted(names + symbol.st_name))
            return tl_fail(diag, TL_INTERNAL,
                           "the object needs %s from outside, which is not permitted",
                           names + symbol.st_name);
    }
    return TL_OK;
}

tl_status tl_object_check(const void *object, size_t size, tl_diag *diag)
{
    bytes b = { object, size };
    Elf64_Ehdr header;
    if (size < sizeof header)
        return tl_fail(diag, TL_BAD_ARGUMENT, "an object of %zu bytes is too small to be one",
                       size);
    memcpy(&header, object, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_type != ET_REL || header.e_shentsize != sizeof(Elf64_Shdr))
        return tl_fail(diag, TL_BAD_ARGUMENT, "the object is no relocatable 64-bit ELF file");
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section, strings;
        if (!read_section(&b, &header, i, &section))
            return tl_fail(diag, TL_BAD_ARGUMENT, "section %u of the object lies outside of it", i);
        if (section.sh_type != SHT_SYMTAB)
            continue;
        if (!read_section(&b, &header, section.sh_link, &strings) || strings.sh_type != SHT_STRTAB)
            return tl_fail(diag, TL_BAD_ARGUMENT, "the object's symbols have no names");
        TL_TRY(check_table(&b, &section, &strings, diag));
    }
    return TL_OK;
}
