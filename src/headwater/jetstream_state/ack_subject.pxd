cimport cython

cdef unsigned char DOT
cdef Py_ssize_t MOST_DIGITS

@cython.final
cdef class AckSubject:
    cdef readonly long long stream_sequence
    cdef readonly long long consumer_sequence
    cpdef bint read(self, bytes subject) noexcept
    cpdef bint read_behind(self, bytes subject, Py_ssize_t start) noexcept

cdef Py_ssize_t _token_end(bytes subject, Py_ssize_t at, Py_ssize_t size) noexcept

cpdef long long number(bytes subject, Py_ssize_t start, Py_ssize_t end) noexcept
