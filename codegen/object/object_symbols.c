/* codegen/object/object_symbols.c: reads the sections and the symbol table of an ELF object and refuses what a kernel
 * must not have: data that it could write, and needs from outside. (The code loader of runtime/device refuses the
 * same.) */
#include <string.h>
#include "codegen/object/elf_object.h"
#include "codegen/llvm/llvm_private.h"

const char *const tl_permitted_externals[] = { "memcpy", "memset", "memmove", NULL };

/* An assembler leaves the name of the table of addresses, which whoever links makes. */
static bool is_permitted(const char *name)
{
    if (strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0)
        return true;
    for (int i = 0; tl_permitted_externals[i] != NULL; i++)
        if (strcmp(name, tl_permitted_externals[i]) == 0)
            return true;
    return false;
}

static tl_status check_table(const tl_elf *elf, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                             tl_diag *diag)
{
    const char *name;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, elf->data + table->sh_offset + at, sizeof symbol);
        if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0)
            continue;
        TL_TRY(tl_elf_text(elf, strings, symbol.st_name, &name, diag));
        if (!is_permitted(name))
            return tl_fail(diag, TL_INTERNAL,
                           "the object needs %s from outside, which is not permitted", name);
    }
    return TL_OK;
}

/* Addresses of constants are written once, when the object is linked. */
static tl_status check_section(const tl_elf *elf, const Elf64_Shdr *section, tl_diag *diag)
{
    static const char constants[] = ".data.rel.ro";
    Elf64_Shdr strings;
    const char *name;
    if ((section->sh_flags & SHF_ALLOC) == 0 || section->sh_size == 0 ||
        ((section->sh_flags & (SHF_WRITE | SHF_TLS)) == 0 && section->sh_type != SHT_NOBITS))
        return TL_OK;
    TL_TRY(tl_elf_section(elf, elf->header.e_shstrndx, &strings, diag));
    TL_TRY(tl_elf_text(elf, &strings, section->sh_name, &name, diag));
    if (strncmp(name, constants, sizeof constants - 1) == 0)
        return TL_OK;
    return tl_fail(diag, TL_INTERNAL,
                   "the object has section %s, and a kernel no data but constants", name);
}

tl_status tl_object_check(const void *object, size_t size, tl_diag *diag)
{
    tl_elf elf;
    TL_TRY(tl_elf_open(object, size, &elf, diag));
    for (unsigned i = 0; i < elf.header.e_shnum; i++) {
        Elf64_Shdr section, strings;
        TL_TRY(tl_elf_section(&elf, i, &section, diag));
        TL_TRY(check_section(&elf, &section, diag));
        if (section.sh_type != SHT_SYMTAB)
            continue;
        TL_TRY(tl_elf_section(&elf, section.sh_link, &strings, diag));
        TL_TRY(check_table(&elf, &section, &strings, diag));
    }
    return TL_OK;
}
