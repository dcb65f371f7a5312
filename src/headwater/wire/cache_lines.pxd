# A builtin of GCC and Clang; reading ahead changes nothing but how long the read takes.
cdef extern from *:
    void prefetch "__builtin_prefetch" (const void *address) noexcept
