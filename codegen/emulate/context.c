/* codegen/emulate/context.c: fibers: a stack and a place to go on.
 *
 * On x86-64 a switch saves what a called function must keep on the stack and takes the other stack, in a few
 * nanoseconds; elsewhere ucontext does it. */
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

#if defined(__x86_64__)

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

/* A context is made where somebody first switches away, too: the scheduler's. */
void tl_context_switch(void **from, void *to)
{
    if (*from == NULL && (*from = malloc(sizeof(ucontext_t))) == NULL)
        abort();
    swapcontext(*from, to);
}

bool tl_context_create(char *stack, size_t bytes, void (*entry)(void), void **out)
{
    ucontext_t *context = *out != NULL ? *out : malloc(sizeof *context);
    if (context == NULL || getcontext(context) != 0)
        return false;
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = bytes;
    context->uc_link = NULL;
    makecontext(context, entry, 0);
    *out = context;
    return true;
}

void tl_context_destroy(void *context)
{
    free(context);
}

#endif
