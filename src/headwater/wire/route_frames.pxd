cimport cython


@cython.final
cdef class MessageLine:
    cdef readonly Py_ssize_t first
    cdef readonly Py_ssize_t first_end
    cdef readonly Py_ssize_t second
    cdef readonly Py_ssize_t second_end
    cdef readonly Py_ssize_t reply_end
    cdef readonly Py_ssize_t header_size
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t body
    cdef readonly bint with_headers
    cdef readonly bint in_v1

    cpdef bint read(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) noexcept
    cdef bint _read_sizes(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) noexcept
