cpdef bint matches(bytes pattern, bytes subject) except -1
cpdef bint matches_one(object patterns, bytes subject) except -1
cpdef bint is_plain(bytes subject) except -1
cdef bint _compare(unsigned char *pattern, Py_ssize_t size, unsigned char *subject, Py_ssize_t length) noexcept
