cimport cython

cdef Py_ssize_t word_end(unsigned char *base, Py_ssize_t at, Py_ssize_t end) noexcept
cpdef Py_ssize_t skip_blanks(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t token_end(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t parse_size(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef int trace_mark(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef int run_trace_mark(
    bytearray buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t stride, Py_ssize_t count, bint sampled
) noexcept


cdef class SizedLine:
    cdef readonly Py_ssize_t reply_end
    cdef readonly Py_ssize_t header_size
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t body
    cdef readonly bint with_headers

    @cython.final
    cdef bint read_sizes(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) noexcept


@cython.final
cdef class PublishLine(SizedLine):
    cdef readonly Py_ssize_t subject
    cdef readonly Py_ssize_t subject_end

    cpdef bint read(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) noexcept
