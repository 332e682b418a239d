/* codegen/llvm/load_llvm.c: LLVM, when it is first needed.
 *
 *     a call in codegen ──▶ LLVMBuildAdd: jmp *slot ──▶ the function in libLLVM
 *                                          ▲ filled by tl_llvm_load
 *
 * A process that runs what was compiled before needs nothing of LLVM, whose library costs 45 MB to be there at all. So it
 * is no library that programs are linked with: every function that this folder calls is a jump through a slot, and the slots
 * are filled when the library is loaded. Nothing is called before tl_llvm_load has succeeded; the list of functions is the
 * build's (codegen/llvm/link.sh). On processors whose jump is not written here, LLVM is linked as other libraries are. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include "codegen/llvm/llvm_private.h"
#include "codegen/llvm/llvm_link.h"

static char version[32];
static tl_diag failure;
static tl_status outcome;

#if defined(__x86_64__) || defined(__aarch64__)
#define NAME(number, name) #name,
static const char *const names[] = { LLVM_FUNCTIONS(NAME) };
#undef NAME
enum { FUNCTIONS = sizeof names / sizeof names[0] };

/* Known to the jumps below, and to nobody else. */
extern void *tl_llvm_slots[FUNCTIONS] __attribute__((visibility("hidden")));
void *tl_llvm_slots[FUNCTIONS];

#if defined(__x86_64__)
#define JUMP(number) "jmp *tl_llvm_slots+8*" #number "(%rip)\n"
#else
#define JUMP(number)                          \
    "adrp x16, tl_llvm_slots+8*" #number "\n" \
    "ldr x16, [x16, :lo12:tl_llvm_slots+8*" #number "]\nbr x16\n"
#endif
#define FUNCTION(number, name)                                                                 \
    __asm__(".pushsection .text\n.balign 4\n.globl " #name "\n.hidden " #name "\n.type " #name \
            ", %function\n" #name ":\n" JUMP(number) ".size " #name ", .-" #name               \
                                                     "\n.popsection\n");
LLVM_FUNCTIONS(FUNCTION)
#undef FUNCTION

/* The file that this build knows; on a system that has it elsewhere, where the system finds it. */
static void load(void)
{
    void *library = dlopen(LLVM_FILE, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen(LLVM_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        outcome = tl_fail(&failure, TL_IO, "LLVM cannot be loaded: %s", dlerror());
        return;
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        tl_llvm_slots[i] = dlsym(library, names[i]);
        if (tl_llvm_slots[i] == NULL) {
            outcome = tl_fail(&failure, TL_IO, "%s has no function %s", LLVM_SONAME, names[i]);
            return;
        }
    }
}
#else
static void load(void)
{
}
#endif

static bool is_file_of_build(void)
{
    struct stat info;
    return stat(LLVM_FILE, &info) == 0 && info.st_size == LLVM_FILE_SIZE &&
           info.st_mtim.tv_sec == LLVM_FILE_TIME;
}

static void load_and_ask(void)
{
    unsigned major, minor, patch;
    load();
    if (outcome != TL_OK)
        return;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
}

tl_status tl_llvm_load(tl_diag *diag)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_and_ask);
    return outcome == TL_OK ? TL_OK : tl_fail(diag, outcome, "%s", failure.text);
}

/* The library's, not that of the headers: a system's update brings another library to the same program. What this build knew
 * need not be loaded to be asked. */
const char *tl_codegen_llvm_version(void)
{
    if (is_file_of_build())
        return LLVM_BUILT_FOR;
    return tl_llvm_load(NULL) == TL_OK ? version : "absent";
}
