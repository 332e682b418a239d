/* codegen/object/elf_object.h: reading a relocatable 64-bit ELF object. It may come from a file: nothing in it is believed
 * before it was checked against the size. */
#ifndef TL_CODEGEN_OBJECT_ELF_OBJECT_H
#define TL_CODEGEN_OBJECT_ELF_OBJECT_H
#include <elf.h>
#include <stddef.h>
#include "runtime/base/status.h"

typedef struct {
    const unsigned char *data;
    size_t size;
    Elf64_Ehdr header;
} tl_elf;

/* TL_BAD_ARGUMENT for what is no such object. */
tl_status tl_elf_open(const void *object, size_t size, tl_elf *out, tl_diag *diag);
/* The header of a section whose bytes lie inside of the object. */
tl_status tl_elf_section(const tl_elf *elf, unsigned index, Elf64_Shdr *out, tl_diag *diag);
/* The text at `offset` of a table of strings; TL_BAD_ARGUMENT when it does not end in it. */
tl_status tl_elf_text(const tl_elf *elf, const Elf64_Shdr *strings, uint64_t offset,
                      const char **out, tl_diag *diag);

#endif
