/* codegen/emulate/context.c: fibers: a stack and a place to go on.
 *
 * On x86-64 a switch saves what a called function must keep on the stack and takes the other stack, in a few
 * nanoseconds; elsewhere ucontext does it, and where ThreadSanitizer looks on, who has to be told of each switch. */
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

__asm__(".text\n"
        ".p2align 4\n"
        ".globl tl_context_switch\n"
        ".hidden tl_context_switch\n"
        ".type tl_context_switch, @function\n"
        "tl_context_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size tl_context_switch, .-tl_context_switch\n");

/* The first switch pops six registers and returns into `entry`, with the stack as after a call. */
bool tl_context_create(char *stack, size_t bytes, void (*entry)(void), void **out)
{
    enum { REGISTERS = 6 };
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
    void **frame = (void **)top - REGISTERS - 2;
    memset(frame, 0, (REGISTERS + 2) * sizeof *frame);
    memcpy(&frame[REGISTERS], &entry, sizeof entry);
    *out = frame;
    return true;
}

void tl_context_destroy(void *context)
{
    (void)context;
}

#else
#include <ucontext.h>

typedef struct {
    ucontext_t place;
    void *seen;  /* ThreadSanitizer's fiber */
    bool is_own; /* made for it; not that of a thread which was there */
} fiber;

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
static void *new_fiber(void)
{
    return __tsan_create_fiber(0);
}

static void *current_fiber(void)
{
    return __tsan_get_current_fiber();
}

static void end_fiber(void *seen)
{
    __tsan_destroy_fiber(seen);
}

static void enter_fiber(void *seen)
{
    __tsan_switch_to_fiber(seen, 0);
}
#else
static void *new_fiber(void)
{
    return NULL;
}

static void *current_fiber(void)
{
    return NULL;
}

static void end_fiber(void *seen)
{
    (void)seen;
}

static void enter_fiber(void *seen)
{
    (void)seen;
}
#endif

/* A context is made where somebody first switches away, too: the scheduler's. */
void tl_context_switch(void **from, void *to)
{
    if (*from == NULL && (*from = calloc(1, sizeof(fiber))) == NULL)
        abort();
    fiber *own = *from, *next = to;
    if (!own->is_own)
        own->seen = current_fiber();
    enter_fiber(next->seen);
    swapcontext(&own->place, &next->place);
}

bool tl_context_create(char *stack, size_t bytes, void (*entry)(void), void **out)
{
    fiber *f = *out != NULL ? *out : calloc(1, sizeof *f);
    if (f == NULL)
        return false;
    *out = f;
    if (f->is_own)
        end_fiber(f->seen); /* its calls never returned */
    f->seen = new_fiber();
    f->is_own = true;
    if (getcontext(&f->place) != 0)
        return false;
    f->place.uc_stack.ss_sp = stack;
    f->place.uc_stack.ss_size = bytes;
    f->place.uc_link = NULL;
    makecontext(&f->place, entry, 0);
    return true;
}

void tl_context_destroy(void *context)
{
    fiber *f = context;
    if (f != NULL && f->is_own)
        end_fiber(f->seen);
    free(f);
}

#endif
