/* runtime/base/float_mode.h: how kernels round what is smaller than the smallest normal number: to zero, and such inputs
 * count as zero. A processor takes a hundred cycles for an operation on one, and a sigmoid makes many. The interpreter,
 * and with it the folding of constants, computes in the same mode, so that it says what kernels do. */
#ifndef TL_RUNTIME_BASE_FLOAT_MODE_H
#define TL_RUNTIME_BASE_FLOAT_MODE_H
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The calling thread's mode as it was, to be given back to tl_float_mode_leave. */
static inline uint64_t tl_float_mode_enter(void)
{
    uint64_t old = 0;
#if defined(__x86_64__)
    enum { DENORMALS_ARE_ZERO = 1 << 6, FLUSH_TO_ZERO = 1 << 15 };
    old = _mm_getcsr();
    _mm_setcsr((unsigned)old | DENORMALS_ARE_ZERO | FLUSH_TO_ZERO);
#elif defined(__aarch64__)
    const uint64_t flush_to_zero = UINT64_C(1) << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"(old | flush_to_zero));
#endif
    return old;
}

static inline void tl_float_mode_leave(uint64_t old)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)old);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(old));
#else
    (void)old;
#endif
}

#endif
