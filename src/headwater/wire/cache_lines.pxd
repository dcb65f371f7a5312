# A builtin of GCC and Clang; reading ahead changes nothing but how long the read takes.
cdef extern from *:
    void prefetch "__builtin_prefetch" (const void *address) noexcept
    void *item "PyList_GET_ITEM" (list items, Py_ssize_t index) noexcept  # untouched


# A slot of `known_subjects` is one cache line: tag, outlet, messages that it got (of COUNTS_ITSELF the subscription), sizes
# in half a word, since when it is right in another half, text. The sizes: that of the text, and flags. Text that is
# ELSEWHERE: the fifth word says where.
cdef enum:
    TEXT_AT = 32
    ROOM = 32
    ELSEWHERE = 1 << 16
    COUNTS_ITSELF = 1 << 17
    LOOKED_AT = 8  # slots, by a search


# Of `known_subjects`, whose own constants are Python's objects inside a function.
cdef enum:
    NOTED_TOKENS = 4  # of a pattern, under which its changes are noted; what is behind them makes no difference
    SWEPT = 16  # slots, by `forget_stale`
    # Numbers in the small table of changes, 64 KiB. Of a hundred thousand subjects that are met in turn, with a pattern that
    # comes and goes for each two hundred messages, one in thirty needs the other table.
    FEW_CHANGES = 1 << 14
