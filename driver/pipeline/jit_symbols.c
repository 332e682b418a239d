/* driver/pipeline/jit_symbols.c: names of functions that were compiled in memory, for gdb and perf.
 *
 * gdb stops in __jit_debug_register_code and reads an ELF file out of this process: here one with a section and a symbol
 * a function, at its address, and nothing else. perf reads /tmp/perf-PID.map: address, size and name, in hexadecimal. */
#include "driver/pipeline/jit_symbols.h"
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/array.h"

/* The interface as gdb's manual gives it ("JIT Compilation Interface"): names and layouts are fixed, and so is it that
 * they are global. */
typedef struct jit_code_entry {
    struct jit_code_entry *next, *prev;
    const char *symfile;
    uint64_t symfile_size;
} jit_code_entry;
typedef struct {
    uint32_t version, action;
    jit_code_entry *relevant, *first;
} jit_descriptor;
enum { JIT_REGISTER = 1, JIT_UNREGISTER = 2 };

void __jit_debug_register_code(void);
extern jit_descriptor __jit_debug_descriptor;

jit_descriptor __jit_debug_descriptor = { 1, 0, NULL, NULL };
__attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory"); /* gdb's breakpoint: must not be optimised away */
}
static pthread_mutex_t jit_lock = PTHREAD_MUTEX_INITIALIZER;

struct tl_jit_symbols {
    jit_code_entry entry;
    tl_text file;
};

typedef struct {
    uint64_t address, size;
    char name[128];
} function;

typedef struct {
    function *items;
    int count, capacity;
} function_list;

static bool inside(size_t size, uint64_t offset, uint64_t length)
{
    return offset <= size && length <= size - offset;
}

/* A function of a relocatable object by its name; false: not found. Nothing in the object is believed. */
static bool find_symbol(const unsigned char *object, size_t size, const char *name, Elf64_Sym *out)
{
    Elf64_Ehdr header;
    Elf64_Shdr symbols, strings;
    Elf64_Sym symbol;
    if (object == NULL || size < sizeof header)
        return false;
    memcpy(&header, object, sizeof header);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!inside(size, header.e_shoff, (i + UINT64_C(1)) * sizeof symbols))
            return false;
        memcpy(&symbols, object + header.e_shoff + i * sizeof symbols, sizeof symbols);
        if (symbols.sh_type != SHT_SYMTAB || symbols.sh_link >= header.e_shnum ||
            !inside(size, header.e_shoff, (symbols.sh_link + UINT64_C(1)) * sizeof strings) ||
            !inside(size, symbols.sh_offset, symbols.sh_size))
            continue;
        memcpy(&strings, object + header.e_shoff + symbols.sh_link * sizeof strings,
               sizeof strings);
        if (!inside(size, strings.sh_offset, strings.sh_size))
            return false;
        size_t length = strlen(name) + 1;
        for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
            memcpy(&symbol, object + symbols.sh_offset + at, sizeof symbol);
            if (inside(strings.sh_size, symbol.st_name, length) &&
                memcmp(object + strings.sh_offset + symbol.st_name, name, length) == 0) {
                *out = symbol;
                return symbol.st_size > 0;
            }
        }
    }
    return false;
}

static void add_function(function_list *list, uint64_t address, uint64_t size, const char *name)
{
    if (!TL_HEAP_ROOM(list->items, list->count, list->capacity))
        return;
    function *f = &list->items[list->count++];
    f->address = address;
    f->size = size;
    /* names come from the model: one word */
    snprintf(f->name, sizeof f->name, "%.127s", name);
    for (char *p = f->name; *p; p++)
        if ((unsigned char)*p <= ' ')
            *p = '_';
}

/* A phase is NAME_p, which takes the arguments apart and calls NAME_p.body, where the time goes (or has become one with
 * it): the body gets the kernel's name. */
static void add_phase(function_list *list, const tl_executable_kernel *k, int phase,
                      const char *name)
{
    char symbol[512], entry_name[512];
    Elf64_Sym entry, body;
    uint64_t address = 0;
    memcpy(&address, &k->phases[phase], sizeof k->phases[phase]);
    snprintf(symbol, sizeof symbol, "%s_%d", k->descriptor.name, phase);
    if (address == 0 || !find_symbol(k->object, k->object_size, symbol, &entry))
        return;
    snprintf(symbol, sizeof symbol, "%s_%d.body", k->descriptor.name, phase);
    if (find_symbol(k->object, k->object_size, symbol, &body) && body.st_shndx == entry.st_shndx) {
        add_function(list, address - entry.st_value + body.st_value, body.st_size, name);
        snprintf(entry_name, sizeof entry_name, "%.500s.entry", name);
        add_function(list, address, entry.st_size, entry_name);
    } else {
        add_function(list, address, entry.st_size, name);
    }
}

static void add_kernel(function_list *list, const tl_executable_kernel *k, const char *step,
                       const char *suffix)
{
    char name[512];
    for (int p = 0; p < k->descriptor.phase_count; p++) {
        if (k->descriptor.phase_count > 1)
            snprintf(name, sizeof name, "%.400s%s.%d", step, suffix, p);
        else
            snprintf(name, sizeof name, "%.400s%s", step, suffix);
        add_phase(list, k, p, name);
    }
}

static function_list collect(const tl_executable *executable)
{
    const tl_executable_spec *spec = tl_executable_info(executable);
    function_list list = { 0 };
    bool *seen = calloc((size_t)spec->kernel_count + 1, sizeof *seen);
    for (int pass = 0; seen != NULL && pass < 2; pass++) {
        const tl_executable_step *steps = pass ? spec->prepare : spec->steps;
        for (int i = 0; i < (pass ? spec->prepare_count : spec->step_count); i++) {
            int k = steps[i].kernel;
            if (k < 0 || seen[k] || spec->kernels[k].phases == NULL)
                continue;
            seen[k] = true;
            add_kernel(&list, &spec->kernels[k], steps[i].name, pass ? ".prepare" : "");
        }
    }
    free(seen);
    return list;
}

/* header | sections (none, names, symbols, their names, one a function) | names | symbols | their names */
static void write_elf(const function_list *list, tl_text *out)
{
    static const char names[] = "\0.shstrtab\0.symtab\0.strtab\0.text";
    enum { SECTION_NAMES = 1, SYMBOLS = 11, NAMES = 19, TEXT = 27, FIRST = 4 };
    size_t sections = FIRST + (size_t)list->count, strings_size = 1;
    for (int i = 0; i < list->count; i++)
        strings_size += strlen(list->items[i].name) + 1;
    uint64_t names_at = sizeof(Elf64_Ehdr) + sections * sizeof(Elf64_Shdr);
    uint64_t symbols_at = (names_at + sizeof names + 7) / 8 * 8;
    uint64_t symbols_size = ((uint64_t)list->count + 1) * sizeof(Elf64_Sym);

    Elf64_Ehdr header = { .e_type = ET_REL,
                          .e_version = EV_CURRENT,
                          .e_shoff = sizeof header,
                          .e_ehsize = sizeof header,
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shnum = (Elf64_Half)sections,
                          .e_shstrndx = 1 };
#if defined(__x86_64__)
    header.e_machine = EM_X86_64;
#elif defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#endif
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    tl_text_add_bytes(out, &header, sizeof header);

    const Elf64_Shdr fixed[FIRST] = {
        { 0 },
        { .sh_name = SECTION_NAMES,
          .sh_type = SHT_STRTAB,
          .sh_offset = names_at,
          .sh_size = sizeof names,
          .sh_addralign = 1 },
        { .sh_name = SYMBOLS,
          .sh_type = SHT_SYMTAB,
          .sh_offset = symbols_at,
          .sh_size = symbols_size,
          .sh_link = 3,
          .sh_info = 1,
          .sh_addralign = 8,
          .sh_entsize = sizeof(Elf64_Sym) },
        { .sh_name = NAMES,
          .sh_type = SHT_STRTAB,
          .sh_offset = symbols_at + symbols_size,
          .sh_size = strings_size,
          .sh_addralign = 1 },
    };
    tl_text_add_bytes(out, fixed, sizeof fixed);
    for (int i = 0; i < list->count; i++) {
        const Elf64_Shdr text = { .sh_name = TEXT,
                                  .sh_type = SHT_NOBITS,
                                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                  .sh_addr = list->items[i].address,
                                  .sh_size = list->items[i].size,
                                  .sh_addralign = 1 };
        tl_text_add_bytes(out, &text, sizeof text);
    }
    tl_text_add_bytes(out, names, sizeof names);
    tl_text_add_bytes(out, "\0\0\0\0\0\0\0", (size_t)(symbols_at - names_at - sizeof names));

    const Elf64_Sym none = { 0 };
    uint32_t name = 1;
    tl_text_add_bytes(out, &none, sizeof none);
    for (int i = 0; i < list->count; i++) {
        const Elf64_Sym symbol = { .st_name = name,
                                   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                   .st_shndx = (Elf64_Half)(FIRST + i),
                                   .st_size = list->items[i].size };
        tl_text_add_bytes(out, &symbol, sizeof symbol);
        name += (uint32_t)strlen(list->items[i].name) + 1;
    }
    tl_text_add_bytes(out, "", 1);
    for (int i = 0; i < list->count; i++)
        tl_text_add_bytes(out, list->items[i].name, strlen(list->items[i].name) + 1);
}

/* /tmp is everyone's: never through a link, never into somebody else's file. */
static void write_perf_map(const function_list *list)
{
    const char *asked = getenv("TILTH_PERF");
    struct stat info;
    char path[64];
    if (asked == NULL || *asked == '\0')
        return;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *out =
        fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && S_ISREG(info.st_mode)
            ? fdopen(fd, "a")
            : NULL;
    if (out == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (int i = 0; i < list->count; i++)
        fprintf(out, "%llx %llx %s\n", (unsigned long long)list->items[i].address,
                (unsigned long long)list->items[i].size, list->items[i].name);
    fclose(out);
}

tl_jit_symbols *tl_jit_symbols_publish(const tl_executable *executable)
{
    enum { MAX_FUNCTIONS = 60000 }; /* section numbers are 16 bits */
    function_list list = collect(executable);
    tl_jit_symbols *s = list.count > 0 ? calloc(1, sizeof *s) : NULL;
    if (list.count > MAX_FUNCTIONS)
        list.count = MAX_FUNCTIONS;
    write_perf_map(&list);
    if (s != NULL)
        write_elf(&list, &s->file);
    free(list.items);
    if (s == NULL || s->file.failed) {
        if (s != NULL)
            tl_text_free(&s->file);
        free(s);
        return NULL;
    }
    s->entry.symfile = s->file.data;
    s->entry.symfile_size = s->file.size;

    pthread_mutex_lock(&jit_lock);
    s->entry.next = __jit_debug_descriptor.first;
    if (s->entry.next != NULL)
        s->entry.next->prev = &s->entry;
    __jit_debug_descriptor.first = &s->entry;
    __jit_debug_descriptor.relevant = &s->entry;
    __jit_debug_descriptor.action = JIT_REGISTER;
    __jit_debug_register_code();
    pthread_mutex_unlock(&jit_lock);
    return s;
}

void tl_jit_symbols_withdraw(tl_jit_symbols *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&jit_lock);
    if (s->entry.prev != NULL)
        s->entry.prev->next = s->entry.next;
    else
        __jit_debug_descriptor.first = s->entry.next;
    if (s->entry.next != NULL)
        s->entry.next->prev = s->entry.prev;
    __jit_debug_descriptor.relevant = &s->entry;
    __jit_debug_descriptor.action = JIT_UNREGISTER;
    __jit_debug_register_code();
    pthread_mutex_unlock(&jit_lock);
    tl_text_free(&s->file);
    free(s);
}
