# A builtin of GCC and Clang; reading ahead changes nothing but how long the read takes.
cdef extern from *:
    void prefetch "__builtin_prefetch" (const void *address) noexcept


# A slot of `known_subjects` is one cache line: tag, outlet, messages that it got (of COUNTS_ITSELF the subscription), sizes
# in half a word, since when it is right in another half, text. The sizes: that of the text, and flags. Text that is
# ELSEWHERE: the fifth word says where.
cdef enum:
    TEXT_AT = 32
    ROOM = 32
    ELSEWHERE = 1 << 16
    COUNTS_ITSELF = 1 << 17
    LOOKED_AT = 8  # slots, by a search
