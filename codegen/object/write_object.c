/* codegen/object/write_object.c: kernels' objects and data put together as one relocatable ELF object.
 *
 *     header | sections of the objects | data | relocations | symbols, names | section headers
 *
 * Sections are not merged: those of the same name are the linker's to join. What changes are numbers: a relocation
 * names a symbol of the whole, a symbol a section of the whole. */
#include "codegen/object/write_object.h"
#include <string.h>
#include "codegen/object/elf_object.h"
#include "codegen/llvm/llvm_private.h"
#include "runtime/base/text.h"

#define LARGE_SECTION 0x10000000u /* SHF_X86_64_LARGE of the x86-64 ABI */

enum { MOST_ALIGNMENT = 4096, EXTERNALS = 8 };

static const struct {
    const char *name;
    uint64_t flags, alignment;
} data_kinds[TL_OBJECT_DATA_COUNT] = {
    [TL_OBJECT_TEXT] = { ".rodata.tilth", SHF_ALLOC, 64 },
    [TL_OBJECT_BULK] = { "tilth_constants", SHF_ALLOC, MOST_ALIGNMENT },
    [TL_OBJECT_LARGE] = { ".lrodata.tilth", SHF_ALLOC | LARGE_SECTION, MOST_ALIGNMENT },
    [TL_OBJECT_POINTERS] = { ".data.rel.ro.tilth", SHF_ALLOC | SHF_WRITE, 64 },
};

/* One of the objects. */
typedef struct {
    tl_elf elf;
    Elf64_Shdr symbols, strings;
    uint32_t symbol_count;
    unsigned *section_of; /* its section -> ours; 0: left out */
    uint32_t *symbol_of;  /* its symbol -> ours; 0: none */
} input;

typedef struct {
    Elf64_Shdr header;
    tl_pieces pieces;
} section;

typedef struct {
    const tl_object_parts *parts;
    tl_diag *diag;
    tl_arena *arena;
    input *inputs;
    section *sections;
    unsigned section_count, first_data; /* of ours: where the parts' sections begin */
    Elf64_Sym *symbols;
    uint32_t symbol_count, first_data_symbol, first_global;
    uint32_t externals[EXTERNALS]; /* ours; 0: not used */
    tl_text section_names, symbol_names;
} writer;

static uint32_t add_name(tl_text *names, const char *name)
{
    uint32_t at = (uint32_t)names->size;
    tl_text_add_bytes(names, name, strlen(name) + 1);
    return at;
}

static section *add_section(writer *w, const char *name, Elf64_Shdr header)
{
    section *s = &w->sections[w->section_count++];
    header.sh_name = add_name(&w->section_names, name);
    s->header = header;
    return s;
}

static section *add_bytes(writer *w, const char *name, Elf64_Shdr header, const void *bytes,
                          uint64_t size)
{
    section *s = add_section(w, name, header);
    s->pieces = tl_pieces_make(w->arena, 1);
    tl_pieces_add(&s->pieces, bytes, (int64_t)size, 1);
    s->header.sh_size = size;
    return s;
}

static uint32_t add_symbol(writer *w, const char *name, unsigned char info, unsigned section_index,
                           uint64_t value, uint64_t size)
{
    w->symbols[w->symbol_count] = (Elf64_Sym){
        .st_name = name[0] != '\0' ? add_name(&w->symbol_names, name) : 0,
        .st_info = info,
        .st_shndx = (Elf64_Half)section_index,
        .st_value = value,
        .st_size = size,
    };
    return w->symbol_count++;
}

static Elf64_Sym symbol_at(const input *in, uint32_t index)
{
    Elf64_Sym symbol;
    memcpy(&symbol, in->elf.data + in->symbols.sh_offset + index * sizeof symbol, sizeof symbol);
    return symbol;
}

static tl_status symbol_name(const writer *w, const input *in, Elf64_Sym symbol, const char **out)
{
    return tl_elf_text(&in->elf, &in->strings, symbol.st_name, out, w->diag);
}

/* ---- reading ---- */

static tl_status open_input(writer *w, const tl_piece *object, input *in)
{
    TL_TRY(tl_elf_open(object->data, (size_t)object->size, &in->elf, w->diag));
    if (in->elf.header.e_machine != EM_X86_64)
        return tl_fail(w->diag, TL_UNSUPPORTED,
                       "an object for machine %d; object files are written for x86-64 (%d) only",
                       in->elf.header.e_machine, EM_X86_64);
    for (unsigned i = 0; i < in->elf.header.e_shnum; i++) {
        TL_TRY(tl_elf_section(&in->elf, i, &in->symbols, w->diag));
        if (in->symbols.sh_type == SHT_SYMTAB) {
            in->symbol_count = (uint32_t)(in->symbols.sh_size / sizeof(Elf64_Sym));
            in->section_of = TL_NEW_ARRAY(w->arena, unsigned, in->elf.header.e_shnum);
            in->symbol_of = TL_NEW_ARRAY(w->arena, uint32_t, in->symbol_count);
            return tl_elf_section(&in->elf, in->symbols.sh_link, &in->strings, w->diag);
        }
    }
    return tl_fail(w->diag, TL_BAD_ARGUMENT, "an object has no symbols");
}

/* Opens all, and makes room for the most that can come of them. */
static tl_status open_inputs(writer *w)
{
    const tl_object_parts *parts = w->parts;
    const unsigned own_sections = 5; /* the first, the stack's note, symbols and two of names */
    size_t sections = own_sections + 2 * (size_t)parts->section_count, symbols;

    symbols = 1 + (size_t)parts->section_count + EXTERNALS + (size_t)parts->export_count;
    w->inputs = TL_NEW_ARRAY(w->arena, input, parts->code.count);
    for (int i = 0; i < parts->code.count; i++) {
        TL_TRY(open_input(w, &parts->code.items[i], &w->inputs[i]));
        sections += w->inputs[i].elf.header.e_shnum;
        symbols += w->inputs[i].symbol_count;
    }
    if (sections >= SHN_LORESERVE || symbols > UINT32_MAX)
        return tl_fail(w->diag, TL_UNSUPPORTED,
                       "%zu sections and %zu symbols are more than an object file can have",
                       sections, symbols);
    w->sections = TL_NEW_ARRAY(w->arena, section, sections);
    w->symbols = TL_NEW_ARRAY(w->arena, Elf64_Sym, symbols);
    return TL_OK;
}

/* Code and constants; not what serves unwinding and debugging. */
static tl_status take_sections(writer *w, input *in)
{
    Elf64_Shdr names, h;
    const char *name;

    TL_TRY(tl_elf_section(&in->elf, in->elf.header.e_shstrndx, &names, w->diag));
    for (unsigned i = 0; i < in->elf.header.e_shnum; i++) {
        TL_TRY(tl_elf_section(&in->elf, i, &h, w->diag));
        TL_TRY(tl_elf_text(&in->elf, &names, h.sh_name, &name, w->diag));
        if ((h.sh_flags & SHF_ALLOC) == 0 || h.sh_size == 0 || h.sh_type == SHT_X86_64_UNWIND ||
            h.sh_type == SHT_NOTE || strncmp(name, ".eh_frame", 9) == 0)
            continue;
        if (h.sh_type != SHT_PROGBITS || (h.sh_flags & SHF_TLS) != 0 ||
            ((h.sh_flags & SHF_WRITE) != 0 && strncmp(name, ".data.rel.ro", 12) != 0))
            return tl_fail(w->diag, TL_BAD_ARGUMENT,
                           "section %s of an object: a kernel has no data but constants", name);
        if (h.sh_addralign > MOST_ALIGNMENT || (h.sh_addralign & (h.sh_addralign - 1)) != 0)
            return tl_fail(w->diag, TL_BAD_ARGUMENT,
                           "section %s of an object: its alignment is no power of two up to %d",
                           name, MOST_ALIGNMENT);
        in->section_of[i] = w->section_count;
        add_bytes(w, name, h, in->elf.data + h.sh_offset, h.sh_size);
    }
    return TL_OK;
}

static tl_status take_symbols(writer *w, input *in)
{
    const char *name;
    for (uint32_t i = 1; i < in->symbol_count; i++) {
        Elf64_Sym s = symbol_at(in, i);
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= in->elf.header.e_shnum ||
            in->section_of[s.st_shndx] == 0)
            continue;
        TL_TRY(symbol_name(w, in, s, &name));
        in->symbol_of[i] = add_symbol(w, name, ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(s.st_info)),
                                      in->section_of[s.st_shndx], s.st_value, s.st_size);
    }
    return TL_OK;
}

/* What an object needs from outside is the same for all of them. */
static tl_status take_externals(writer *w, input *in)
{
    const char *name;
    for (uint32_t i = 1; i < in->symbol_count; i++) {
        Elf64_Sym s = symbol_at(in, i);
        if (s.st_shndx != SHN_UNDEF)
            continue;
        TL_TRY(symbol_name(w, in, s, &name));
        for (int k = 0; k < EXTERNALS && tl_permitted_externals[k] != NULL; k++) {
            if (strcmp(name, tl_permitted_externals[k]) != 0)
                continue;
            if (w->externals[k] == 0)
                w->externals[k] =
                    add_symbol(w, name, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), SHN_UNDEF, 0, 0);
            in->symbol_of[i] = w->externals[k];
        }
    }
    return TL_OK;
}

/* ---- putting together ---- */

static void add_data(writer *w)
{
    w->first_data = w->section_count;
    for (int i = 0; i < w->parts->section_count; i++) {
        const tl_object_section *from = &w->parts->sections[i];
        section *s = add_section(w, data_kinds[from->kind].name,
                                 (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
                                               .sh_flags = data_kinds[from->kind].flags,
                                               .sh_addralign = data_kinds[from->kind].alignment,
                                               .sh_size = (uint64_t)from->pieces.size });
        s->pieces = from->pieces;
    }
}

static tl_status add_symbols(writer *w)
{
    const tl_object_parts *parts = w->parts;
    const unsigned char object = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);

    add_symbol(w, "", 0, SHN_UNDEF, 0, 0);
    for (int i = 0; i < parts->code.count; i++)
        TL_TRY(take_symbols(w, &w->inputs[i]));
    w->first_data_symbol = w->symbol_count;
    for (int i = 0; i < parts->section_count; i++)
        add_symbol(w, parts->sections[i].name, object, w->first_data + (unsigned)i, 0,
                   (uint64_t)parts->sections[i].pieces.size);
    w->first_global = w->symbol_count;
    for (int i = 0; i < parts->export_count; i++) {
        int from = parts->exports[i].section;
        add_symbol(w, parts->exports[i].name, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                   w->first_data + (unsigned)from, 0, (uint64_t)parts->sections[from].pieces.size);
    }
    for (int i = 0; i < parts->code.count; i++)
        TL_TRY(take_externals(w, &w->inputs[i]));
    return TL_OK;
}

static void add_relocations(writer *w, unsigned target, const Elf64_Rela *list, uint64_t count)
{
    if (count > 0)
        add_bytes(w, ".rela",
                  (Elf64_Shdr){ .sh_type = SHT_RELA,
                                .sh_flags = SHF_INFO_LINK,
                                .sh_info = target,
                                .sh_addralign = 8,
                                .sh_entsize = sizeof *list },
                  list, count * sizeof *list);
}

static tl_status take_relocations(writer *w, const input *in, const Elf64_Shdr *h)
{
    uint64_t count = h->sh_size / sizeof(Elf64_Rela);
    Elf64_Rela *list =
        tl_arena_copy(w->arena, in->elf.data + h->sh_offset, h->sh_size, _Alignof(Elf64_Rela));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t symbol = ELF64_R_SYM(list[i].r_info);
        if (symbol >= in->symbol_count || in->symbol_of[symbol] == 0)
            return tl_fail(w->diag, TL_BAD_ARGUMENT,
                           "a relocation of an object names symbol %llu, which is left out",
                           (unsigned long long)symbol);
        list[i].r_info =
            ELF64_R_INFO((uint64_t)in->symbol_of[symbol], ELF64_R_TYPE(list[i].r_info));
    }
    add_relocations(w, in->section_of[h->sh_info], list, count);
    return TL_OK;
}

static tl_status take_all_relocations(writer *w, const input *in)
{
    Elf64_Shdr h;
    for (unsigned i = 0; i < in->elf.header.e_shnum; i++) {
        TL_TRY(tl_elf_section(&in->elf, i, &h, w->diag));
        bool wanted = (h.sh_type == SHT_RELA || h.sh_type == SHT_REL) &&
                      h.sh_info < in->elf.header.e_shnum && in->section_of[h.sh_info] != 0;
        if (wanted && (h.sh_type == SHT_REL || h.sh_entsize != sizeof(Elf64_Rela)))
            return tl_fail(w->diag, TL_BAD_ARGUMENT, "an object's relocations have no addends");
        if (wanted)
            TL_TRY(take_relocations(w, in, &h));
    }
    return TL_OK;
}

static tl_status find_function(const writer *w, int object, const char *function, uint32_t *out)
{
    const input *in = &w->inputs[object];
    const char *name;
    for (uint32_t i = 1; i < in->symbol_count; i++) {
        Elf64_Sym s = symbol_at(in, i);
        if (in->symbol_of[i] == 0 || ELF64_ST_TYPE(s.st_info) != STT_FUNC)
            continue;
        TL_TRY(symbol_name(w, in, s, &name));
        if (strcmp(name, function) == 0) {
            *out = in->symbol_of[i];
            return TL_OK;
        }
    }
    return tl_fail(w->diag, TL_BAD_ARGUMENT, "an object does not define %s", function);
}

static tl_status add_pointers(writer *w, int in_section)
{
    Elf64_Rela *list = TL_NEW_ARRAY(w->arena, Elf64_Rela, w->parts->pointer_count);
    uint64_t count = 0;
    for (int i = 0; i < w->parts->pointer_count; i++) {
        const tl_object_pointer *p = &w->parts->pointers[i];
        uint32_t symbol = w->first_data_symbol + (uint32_t)p->target;
        if (p->section != in_section)
            continue;
        if (p->function != NULL)
            TL_TRY(find_function(w, p->target, p->function, &symbol));
        list[count++] = (Elf64_Rela){ .r_offset = (uint64_t)p->offset,
                                      .r_info = ELF64_R_INFO((uint64_t)symbol, R_X86_64_64),
                                      .r_addend = p->addend };
    }
    add_relocations(w, w->first_data + (unsigned)in_section, list, count);
    return TL_OK;
}

static tl_status add_tables(writer *w)
{
    Elf64_Shdr strings = { .sh_type = SHT_STRTAB, .sh_addralign = 1 };
    unsigned symbols = w->section_count + 1;

    for (unsigned i = 0; i < w->section_count; i++)
        if (w->sections[i].header.sh_type == SHT_RELA)
            w->sections[i].header.sh_link = symbols;
    add_bytes(w, ".note.GNU-stack", (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_addralign = 1 }, "",
              0);
    add_bytes(w, ".symtab",
              (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
                            .sh_link = symbols + 1,
                            .sh_info = w->first_global,
                            .sh_addralign = 8,
                            .sh_entsize = sizeof(Elf64_Sym) },
              w->symbols, w->symbol_count * sizeof(Elf64_Sym));
    add_bytes(w, ".strtab", strings, w->symbol_names.data, w->symbol_names.size);
    strings.sh_name = add_name(&w->section_names, ".shstrtab");
    section *last = &w->sections[w->section_count++]; /* its own name is among its bytes */
    last->pieces = tl_pieces_make(w->arena, 1);
    tl_pieces_add(&last->pieces, w->section_names.data, (int64_t)w->section_names.size, 1);
    last->header = strings;
    last->header.sh_size = w->section_names.size;
    bool failed = w->section_names.failed || w->symbol_names.failed;
    return failed ? tl_fail(w->diag, TL_NO_MEMORY, "object file: out of memory") : TL_OK;
}

/* ---- writing ---- */

static uint64_t align_up(uint64_t offset, uint64_t alignment)
{
    return alignment > 1 ? (offset + alignment - 1) / alignment * alignment : offset;
}

/* The header, every section at its place, the table of sections. */
static tl_status write_file(writer *w, tl_file *file)
{
    Elf64_Ehdr header = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_REL,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)w->section_count,
        .e_shstrndx = (Elf64_Half)(w->section_count - 1),
    };
    Elf64_Shdr *table = TL_NEW_ARRAY(w->arena, Elf64_Shdr, w->section_count);
    static const char zeros[MOST_ALIGNMENT];
    uint64_t at = sizeof header, end;

    for (unsigned i = 1; i < w->section_count; i++) {
        w->sections[i].header.sh_offset = at = align_up(at, w->sections[i].header.sh_addralign);
        table[i] = w->sections[i].header;
        at += table[i].sh_size;
    }
    header.e_shoff = align_up(at, 8);

    TL_TRY(tl_file_append(file, &header, sizeof header, w->diag));
    end = sizeof header;
    for (unsigned i = 1; i < w->section_count; i++) {
        TL_TRY(tl_file_append(file, zeros, table[i].sh_offset - end, w->diag));
        TL_TRY(tl_pieces_append(&w->sections[i].pieces, file, w->diag));
        end = table[i].sh_offset + table[i].sh_size;
    }
    TL_TRY(tl_file_append(file, zeros, header.e_shoff - end, w->diag));
    return tl_file_append(file, table, w->section_count * sizeof *table, w->diag);
}

static tl_status write_object(writer *w, tl_file *file)
{
    TL_TRY(open_inputs(w));
    tl_text_add_bytes(&w->symbol_names, "", 1);
    add_section(w, "", (Elf64_Shdr){ 0 });
    for (int i = 0; i < w->parts->code.count; i++)
        TL_TRY(take_sections(w, &w->inputs[i]));
    add_data(w);
    TL_TRY(add_symbols(w));
    for (int i = 0; i < w->parts->code.count; i++)
        TL_TRY(take_all_relocations(w, &w->inputs[i]));
    for (int i = 0; i < w->parts->section_count; i++)
        TL_TRY(add_pointers(w, i));
    TL_TRY(add_tables(w));
    return write_file(w, file);
}

static tl_status write_guarded(writer *w, tl_file *file)
{
    w->arena = tl_arena_create(0);
    if (w->arena == NULL || TL_ARENA_GUARD(w->arena))
        return tl_fail(w->diag, TL_NO_MEMORY, "object file: out of memory");
    return write_object(w, file);
}

tl_status tl_object_write(const tl_object_parts *parts, tl_file *file, tl_diag *diag)
{
    writer w = { .parts = parts, .diag = diag };
    tl_status status = write_guarded(&w, file);

    tl_text_free(&w.section_names);
    tl_text_free(&w.symbol_names);
    tl_arena_destroy(w.arena);
    return status;
}
