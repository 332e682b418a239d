/* tests/sanitizers.c: what the sanitizers of VARIANT=asan and VARIANT=tsan are told, linked into every program of such a
 * build, so that it holds whoever starts it. A suppression is for other people's libraries only, and says why. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__lsan_default_suppressions(void);
const char *__tsan_default_suppressions(void);

/* A size that no allocator has is answered with NULL, as malloc does, not with the end of the program. A suppression that
 * was used is no news. The runtime of gcc 12 takes every block of thread-local storage that lies 16 bytes into a page for
 * one that glibc 2.19 made, reads its bounds from what stands before it, and its search for leaks then dies of signal 11
 * at an address of no meaning (seen with the storage of a library that was loaded late): it is not to look at those. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:print_suppressions=0:intercept_tls_get_addr=0";
}

/* A child of a process with threads may make a pool of its own, which tests are about: it is no end of the program. */
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:print_suppressions=0:die_after_fork=0";
}

/* libedit keeps the name and the help of a function that it is given (EL_ADDFN) for good. Of its frames none is seen, only
 * that of wcsdup, which nothing of ours calls. */
const char *__lsan_default_suppressions(void)
{
    return "leak:wcsdup\n";
}

/* None of these is built with the sanitizer, which therefore sees neither LLVM's atomic operations nor the barriers of
 * OpenMP, which order what XGBoost's threads do. */
const char *__tsan_default_suppressions(void)
{
    return "race:libLLVM\n"
           "race:libxgboost\n";
}
