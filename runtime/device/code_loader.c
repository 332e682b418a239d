/* runtime/device/code_loader.c: an ELF relocatable object made callable.
 *
 *     mapping:  | code sections | stubs | (page) | read-only data sections | address table |
 *                 read, execute                    read
 *
 * A stub is a jump to one of the permitted outside functions, which may lie farther than a
 * 32-bit displacement reaches; the address table serves code that loads addresses instead of
 * computing them (GOT). Every number that comes out of the file is checked where it is read. */
#include "runtime/device/code_loader.h"
#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STUB_SIZE = 16, MAX_ALIGNMENT = 4096, MAX_SECTIONS = 65000 };
#define MAX_IMAGE (UINT64_C(1) << 28)

/* What an object may call outside of itself. */
typedef struct {
    const char *name;
    uintptr_t address;
} outside;
static const outside outsides[] = {
    { "memcpy", (uintptr_t)memcpy },
    { "memset", (uintptr_t)memset },
    { "memmove", (uintptr_t)memmove },
};
enum { OUTSIDE_COUNT = sizeof outsides / sizeof outsides[0] };

typedef struct {
    char *name;
    void *address;
} entry;

struct tl_code {
    unsigned char *image;
    size_t size;
    entry *entries;
    size_t entry_count;
};

typedef struct {
    Elf64_Shdr header;
    const char *name;
    bool loaded, code;
    uint64_t place; /* offset in the image when loaded */
} section;

/* The object while it is being read. */
typedef struct {
    const unsigned char *bytes;
    uint64_t size;
    section *sections;
    size_t section_count;
    section *symbols; /* the symbol table and its names */
    const char *names;
    uint64_t names_size;
    uint64_t symbol_count;
    uint64_t code_size, stubs, data_start, table, table_used, image_size;
    tl_code *code;
    tl_diag *diag;
} loader;

static tl_status damaged(const loader *l, const char *what)
{
    return tl_fail(l->diag, TL_BAD_ARGUMENT, "kernel object: %s", what);
}

static bool inside(const loader *l, uint64_t offset, uint64_t size)
{
    return offset <= l->size && size <= l->size - offset;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* A string of a string table; NULL when it does not end inside the table. */
static const char *string_at(const char *table, uint64_t size, uint64_t offset)
{
    if (offset >= size || memchr(table + offset, '\0', size - offset) == NULL)
        return NULL;
    return table + offset;
}

static tl_status read_header(loader *l, Elf64_Ehdr *h)
{
    if (l->size < sizeof *h)
        return damaged(l, "shorter than an ELF header");
    memcpy(h, l->bytes, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return damaged(l, "not an ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_machine != EM_X86_64)
        return tl_fail(l->diag, TL_UNSUPPORTED,
                       "kernel object: for machine %d; only x86-64 objects (%d) can be loaded",
                       h->e_machine, EM_X86_64);
#if !defined(__x86_64__)
    return tl_fail(l->diag, TL_UNSUPPORTED,
                   "kernel object: an x86-64 object cannot run on this machine");
#endif
    if (h->e_type != ET_REL)
        return damaged(l, "not a relocatable object");
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > MAX_SECTIONS ||
        !inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
        h->e_shstrndx >= h->e_shnum)
        return damaged(l, "its section table lies outside of it");
    return TL_OK;
}

static tl_status read_sections(loader *l, const Elf64_Ehdr *h)
{
    l->sections = calloc(h->e_shnum, sizeof *l->sections);
    if (l->sections == NULL)
        return tl_fail(l->diag, TL_NO_MEMORY, "kernel object: no memory for %d sections",
                       h->e_shnum);
    l->section_count = h->e_shnum;
    for (size_t i = 0; i < l->section_count; i++) {
        Elf64_Shdr *s = &l->sections[i].header;
        memcpy(s, l->bytes + h->e_shoff + i * sizeof *s, sizeof *s);
        if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL &&
            !inside(l, s->sh_offset, s->sh_size))
            return damaged(l, "a section lies outside of it");
    }

    const Elf64_Shdr *names = &l->sections[h->e_shstrndx].header;
    if (names->sh_type != SHT_STRTAB)
        return damaged(l, "its section names are not a string table");
    for (size_t i = 0; i < l->section_count; i++) {
        section *s = &l->sections[i];
        s->name =
            string_at((const char *)l->bytes + names->sh_offset, names->sh_size, s->header.sh_name);
        if (s->name == NULL)
            return damaged(l, "a section's name lies outside of the string table");
    }
    return TL_OK;
}

static tl_status find_symbols(loader *l)
{
    for (size_t i = 0; i < l->section_count; i++) {
        section *s = &l->sections[i];
        if (s->header.sh_type != SHT_SYMTAB)
            continue;
        if (l->symbols != NULL)
            return damaged(l, "it has two symbol tables");
        if (s->header.sh_entsize != sizeof(Elf64_Sym) || s->header.sh_link >= l->section_count)
            return damaged(l, "its symbol table is malformed");
        const Elf64_Shdr *names = &l->sections[s->header.sh_link].header;
        if (names->sh_type != SHT_STRTAB)
            return damaged(l, "its symbol names are not a string table");
        l->symbols = s;
        l->symbol_count = s->header.sh_size / sizeof(Elf64_Sym);
        l->names = (const char *)l->bytes + names->sh_offset;
        l->names_size = names->sh_size;
    }
    return l->symbols != NULL ? TL_OK : damaged(l, "it has no symbol table");
}

/* Whether the section becomes part of the image; refuses what a closed, stateless kernel cannot
 * have. */
static tl_status choose_section(const loader *l, section *s)
{
    const Elf64_Shdr *h = &s->header;

    if ((h->sh_flags & SHF_ALLOC) == 0 || h->sh_size == 0 || h->sh_type == SHT_X86_64_UNWIND ||
        h->sh_type == SHT_NOTE || starts_with(s->name, ".eh_frame"))
        return TL_OK;
    if (h->sh_type != SHT_PROGBITS || (h->sh_flags & (SHF_TLS | SHF_COMPRESSED)) != 0 ||
        ((h->sh_flags & SHF_WRITE) != 0 && !starts_with(s->name, ".data.rel.ro")))
        return tl_fail(l->diag, TL_BAD_ARGUMENT,
                       "kernel object: section %s: a kernel has no data but constants", s->name);
    if (h->sh_addralign > MAX_ALIGNMENT || (h->sh_addralign & (h->sh_addralign - 1)) != 0)
        return damaged(l, "a section's alignment is not a power of two up to 4096");
    if (h->sh_size > MAX_IMAGE)
        return damaged(l, "a section is larger than 256 MB");
    s->loaded = true;
    s->code = (h->sh_flags & SHF_EXECINSTR) != 0;
    return TL_OK;
}

static uint64_t align_up(uint64_t offset, uint64_t alignment)
{
    return alignment > 1 ? (offset + alignment - 1) / alignment * alignment : offset;
}

static tl_status place_sections(loader *l, bool code, uint64_t *at)
{
    for (size_t i = 0; i < l->section_count; i++) {
        section *s = &l->sections[i];
        if (!s->loaded || s->code != code)
            continue;
        s->place = align_up(*at, s->header.sh_addralign);
        *at = s->place + s->header.sh_size;
        if (*at > MAX_IMAGE)
            return damaged(l, "its sections together are larger than 256 MB");
    }
    return TL_OK;
}

static bool uses_table(unsigned type)
{
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

static uint64_t relocation_count(const section *s)
{
    return s->header.sh_size / sizeof(Elf64_Rela);
}

static Elf64_Rela relocation_at(const loader *l, const section *s, uint64_t index)
{
    Elf64_Rela r;

    memcpy(&r, l->bytes + s->header.sh_offset + index * sizeof r, sizeof r);
    return r;
}

/* The section a relocation section changes; NULL when that is not part of the image. */
static const section *relocated(const loader *l, const section *s)
{
    if (s->header.sh_type != SHT_RELA || s->header.sh_info >= l->section_count)
        return NULL;
    const section *target = &l->sections[s->header.sh_info];
    return target->loaded ? target : NULL;
}

static tl_status lay_out(loader *l)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = 0, table_entries = 0;

    for (size_t i = 0; i < l->section_count; i++) {
        const section *s = &l->sections[i];
        if (s->header.sh_type == SHT_REL)
            return damaged(l, "it has relocations without addends");
        TL_TRY(choose_section(l, &l->sections[i]));
    }
    for (size_t i = 0; i < l->section_count; i++) {
        const section *s = &l->sections[i];
        if (relocated(l, s) == NULL)
            continue;
        if (s->header.sh_entsize != sizeof(Elf64_Rela) ||
            &l->sections[s->header.sh_link < l->section_count ? s->header.sh_link : 0] !=
                l->symbols)
            return damaged(l, "a relocation table is malformed");
        for (uint64_t r = 0; r < relocation_count(s); r++)
            table_entries += uses_table(ELF64_R_TYPE(relocation_at(l, s, r).r_info));
    }

    TL_TRY(place_sections(l, true, &at));
    l->stubs = align_up(at, STUB_SIZE);
    l->code_size = align_up(l->stubs + STUB_SIZE * OUTSIDE_COUNT, page);
    l->data_start = at = l->code_size;
    TL_TRY(place_sections(l, false, &at));
    l->table = align_up(at, 8);
    l->image_size = align_up(l->table + 8 * table_entries, page);
    return TL_OK;
}

static tl_status map_image(loader *l)
{
    unsigned char *image =
        mmap(NULL, l->image_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (image == MAP_FAILED)
        return tl_fail(l->diag, TL_NO_MEMORY, "kernel object: no memory for %llu bytes of code",
                       (unsigned long long)l->image_size);
    l->code->image = image;
    l->code->size = l->image_size;
    memset(image, 0xcc, l->code_size); /* what is not code traps */
    for (size_t i = 0; i < l->section_count; i++) {
        const section *s = &l->sections[i];
        if (s->loaded)
            memcpy(image + s->place, l->bytes + s->header.sh_offset, s->header.sh_size);
    }
    for (int i = 0; i < OUTSIDE_COUNT; i++) {
        static const unsigned char jump[6] = { 0xff, 0x25 }; /* jmp *0(%rip) */
        unsigned char *stub = image + l->stubs + STUB_SIZE * i;
        uint64_t address = outsides[i].address;
        memcpy(stub, jump, sizeof jump);
        memcpy(stub + sizeof jump, &address, sizeof address);
    }
    return TL_OK;
}

static Elf64_Sym symbol_at(const loader *l, uint64_t index)
{
    Elf64_Sym s;

    memcpy(&s, l->bytes + l->symbols->header.sh_offset + index * sizeof s, sizeof s);
    return s;
}

/* Where a symbol lies in the image; an outside function is its stub. */
static tl_status resolve(const loader *l, uint64_t index, uint64_t *out)
{
    if (index >= l->symbol_count)
        return damaged(l, "a relocation names a symbol that does not exist");
    Elf64_Sym symbol = symbol_at(l, index);

    if (symbol.st_shndx == SHN_UNDEF) {
        const char *name = string_at(l->names, l->names_size, symbol.st_name);
        for (int i = 0; name != NULL && i < OUTSIDE_COUNT; i++)
            if (strcmp(name, outsides[i].name) == 0) {
                *out = l->stubs + (uint64_t)(STUB_SIZE * i);
                return TL_OK;
            }
        return tl_fail(l->diag, TL_BAD_ARGUMENT,
                       "kernel object: it refers to \"%.64s\"; only memcpy, memset and memmove "
                       "are permitted",
                       name != NULL ? name : "");
    }
    if (symbol.st_shndx >= l->section_count || !l->sections[symbol.st_shndx].loaded)
        return damaged(l, "a relocation refers to a section that is not loaded");
    const section *s = &l->sections[symbol.st_shndx];
    if (symbol.st_value > s->header.sh_size)
        return damaged(l, "a symbol lies outside of its section");
    *out = s->place + symbol.st_value;
    return TL_OK;
}

static tl_status store_32(const loader *l, unsigned char *at, int64_t value)
{
    int32_t narrow = (int32_t)value;

    if (narrow != value)
        return damaged(l, "a relocation does not fit in 32 bits");
    memcpy(at, &narrow, sizeof narrow);
    return TL_OK;
}

static uint64_t add_table_entry(loader *l, uint64_t address)
{
    uint64_t entry_place = l->table + 8 * l->table_used++;

    memcpy(l->code->image + entry_place, &address, sizeof address);
    return entry_place;
}

static tl_status relocate_one(loader *l, const section *target, Elf64_Rela r)
{
    assert(target->loaded);
    unsigned type = (unsigned)ELF64_R_TYPE(r.r_info);
    uint64_t symbol = 0, width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;

    if (type == R_X86_64_NONE)
        return TL_OK;
    if (target->header.sh_size < width || r.r_offset > target->header.sh_size - width)
        return damaged(l, "a relocation lies outside of its section");
    TL_TRY(resolve(l, ELF64_R_SYM(r.r_info), &symbol));

    uint64_t base = (uint64_t)(uintptr_t)l->code->image;
    uint64_t place = target->place + r.r_offset, addend = (uint64_t)r.r_addend;
    unsigned char *at = l->code->image + place;
    uint64_t value;
    switch (type) { /* unsigned arithmetic wraps; what matters is checked by store_32 */
    case R_X86_64_64:
        value = base + symbol + addend;
        memcpy(at, &value, sizeof value);
        return TL_OK;
    case R_X86_64_PC64:
        value = symbol + addend - place;
        memcpy(at, &value, sizeof value);
        return TL_OK;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        return store_32(l, at, (int64_t)(symbol + addend - place));
    case R_X86_64_32S:
        return store_32(l, at, (int64_t)(base + symbol + addend));
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        value = add_table_entry(l, base + symbol);
        return store_32(l, at, (int64_t)(value + addend - place));
    default:
        return tl_fail(l->diag, TL_BAD_ARGUMENT,
                       "kernel object: relocation type %u is not one of position-independent code",
                       type);
    }
}

static tl_status relocate(loader *l)
{
    for (size_t i = 0; i < l->section_count; i++) {
        const section *s = &l->sections[i], *target = relocated(l, s);
        if (target == NULL)
            continue;
        for (uint64_t r = 0; r < relocation_count(s); r++)
            TL_TRY(relocate_one(l, target, relocation_at(l, s, r)));
    }
    return TL_OK;
}

static bool is_entry(const loader *l, Elf64_Sym s)
{
    unsigned bind = ELF64_ST_BIND(s.st_info), type = ELF64_ST_TYPE(s.st_info);

    return (bind == STB_GLOBAL || bind == STB_WEAK) && (type == STT_FUNC || type == STT_NOTYPE) &&
           s.st_shndx != SHN_UNDEF && s.st_shndx < l->section_count &&
           l->sections[s.st_shndx].code && s.st_value < l->sections[s.st_shndx].header.sh_size;
}

static tl_status collect_entries(loader *l)
{
    tl_code *code = l->code;

    code->entries = calloc(l->symbol_count + 1, sizeof *code->entries);
    for (uint64_t i = 0; code->entries != NULL && i < l->symbol_count; i++) {
        Elf64_Sym symbol = symbol_at(l, i);
        if (!is_entry(l, symbol))
            continue;
        const char *name = string_at(l->names, l->names_size, symbol.st_name);
        if (name == NULL)
            return damaged(l, "a symbol's name lies outside of the string table");
        entry *e = &code->entries[code->entry_count];
        e->name = strdup(name);
        if (e->name == NULL)
            return tl_fail(l->diag, TL_NO_MEMORY, "kernel object: no memory for a name");
        e->address = code->image + l->sections[symbol.st_shndx].place + symbol.st_value;
        code->entry_count++;
    }
    if (code->entries == NULL)
        return tl_fail(l->diag, TL_NO_MEMORY, "kernel object: no memory for %llu symbols",
                       (unsigned long long)l->symbol_count);
    return TL_OK;
}

static tl_status protect(loader *l)
{
    unsigned char *image = l->code->image;

    if (mprotect(image, l->code_size, PROT_READ | PROT_EXEC) != 0 ||
        (l->image_size > l->data_start &&
         mprotect(image + l->data_start, l->image_size - l->data_start, PROT_READ) != 0))
        return tl_fail(l->diag, TL_DEVICE,
                       "kernel object: the system does not let us make code executable");
    __builtin___clear_cache((char *)image, (char *)image + l->code_size);
    return TL_OK;
}

static tl_status load(loader *l)
{
    Elf64_Ehdr header;

    TL_TRY(read_header(l, &header));
    TL_TRY(read_sections(l, &header));
    TL_TRY(find_symbols(l));
    TL_TRY(lay_out(l));
    TL_TRY(map_image(l));
    TL_TRY(relocate(l));
    TL_TRY(collect_entries(l));
    return protect(l);
}

tl_status tl_code_load(const void *object, size_t size, tl_code **out, tl_diag *diag)
{
    loader l = { .bytes = object, .size = size, .diag = diag };

    l.code = calloc(1, sizeof *l.code);
    if (l.code == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "kernel object: out of memory");
    tl_status status = load(&l);
    free(l.sections);
    if (status != TL_OK) {
        tl_code_unload(l.code);
        return status;
    }
    *out = l.code;
    return TL_OK;
}

void tl_code_unload(tl_code *code)
{
    if (code == NULL)
        return;
    if (code->image != NULL)
        munmap(code->image, code->size);
    for (size_t i = 0; i < code->entry_count; i++)
        free(code->entries[i].name);
    free(code->entries);
    free(code);
}

void *tl_code_find(const tl_code *code, const char *name)
{
    for (size_t i = 0; i < code->entry_count; i++)
        if (strcmp(code->entries[i].name, name) == 0)
            return code->entries[i].address;
    return NULL;
}

size_t tl_code_size(const tl_code *code)
{
    return code->size;
}

/* A data pointer as a function pointer: POSIX says they are alike, ISO C has no cast for it. */
static tl_status find_function(const tl_code *code, const char *name, void *out, tl_diag *diag)
{
    void *address = tl_code_find(code, name);

    if (address == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel object: it does not define %s", name);
    memcpy(out, &address, sizeof address);
    return TL_OK;
}

tl_status tl_code_kernel(const tl_code *code, const tl_descriptor *d, tl_phase_fn **phases,
                         tl_sizes_fn **sizes, tl_diag *diag)
{
    *sizes = NULL;
    for (int i = 0; i < d->phase_count; i++)
        TL_TRY(find_function(code, tl_descriptor_function(d, i).text, &phases[i], diag));
    if (d->has_sizes)
        TL_TRY(find_function(code, tl_descriptor_function(d, d->phase_count).text, sizes, diag));
    return TL_OK;
}
