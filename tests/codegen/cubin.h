/* tests/codegen/cubin.h: how often each instruction stands in the code of a kernel, as ptxas assembled it: an ELF file whose
 * section .text.NAME has 16 bytes an instruction, the low 12 bits of which say which one it is (sm_70 to sm_90). */
#ifndef TL_TESTS_CUBIN_H
#define TL_TESTS_CUBIN_H
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    CUBIN_FFMA,
    CUBIN_HMMA,
    CUBIN_IMMA,
    CUBIN_LDSM,
    CUBIN_LDS,
    CUBIN_STS,
    CUBIN_LDG,
    CUBIN_STG,
    CUBIN_LDGSTS,
    CUBIN_LDL,
    CUBIN_STL,
    CUBIN_BAR,
    CUBIN_HGMMA,
    CUBIN_KINDS
} cubin_kind;

static const struct {
    unsigned code;
    cubin_kind kind;
} cubin_codes
    [] = {
        { 0x223, CUBIN_FFMA },  { 0x423, CUBIN_FFMA },   { 0x823, CUBIN_FFMA },
        { 0x623, CUBIN_FFMA },  { 0x23c, CUBIN_HMMA },   { 0x237, CUBIN_IMMA },
        { 0x83b, CUBIN_LDSM },  { 0x984, CUBIN_LDS },    { 0x388, CUBIN_STS },
        { 0x988, CUBIN_STS },   { 0x981, CUBIN_LDG },    { 0x986, CUBIN_STG },
        { 0x983, CUBIN_LDL },   { 0x387, CUBIN_STL },    { 0x987, CUBIN_STL },
        { 0xb1d, CUBIN_BAR },   { 0xfae, CUBIN_LDGSTS }, { 0x9f0, CUBIN_HGMMA },
        { 0xdf0, CUBIN_HGMMA }, /* its first operand from registers */
    };

/* Of all kernels in it together; false: it is no such file. */
static inline bool cubin_count(const void *data, size_t size, int counts[CUBIN_KINDS])
{
    const unsigned char *bytes = data;
    Elf64_Ehdr header;
    memset(counts, 0, CUBIN_KINDS * sizeof *counts);
    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != 190 /* CUDA */)
        return false;
    const Elf64_Shdr *sections = (const void *)(bytes + header.e_shoff);
    const char *names = (const char *)bytes + sections[header.e_shstrndx].sh_offset;
    for (int s = 0; s < header.e_shnum; s++) {
        if (strncmp(names + sections[s].sh_name, ".text.", 6) != 0)
            continue;
        for (uint64_t at = 0; at + 16 <= sections[s].sh_size; at += 16) {
            uint32_t word;
            memcpy(&word, bytes + sections[s].sh_offset + at, sizeof word);
            for (size_t k = 0; k < sizeof cubin_codes / sizeof cubin_codes[0]; k++)
                if (cubin_codes[k].code == (word & 0xfff))
                    counts[cubin_codes[k].kind]++;
        }
    }
    return true;
}

#endif
