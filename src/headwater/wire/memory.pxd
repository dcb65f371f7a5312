cimport cython

cpdef Py_ssize_t find_byte(bytearray buffer, int byte, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef bint equals(bytearray buffer, Py_ssize_t start, Py_ssize_t end, bytes other) noexcept
cpdef bytes slice_bytes(bytearray buffer, Py_ssize_t start, Py_ssize_t end)
cpdef bytes part_of(bytes source, Py_ssize_t start, Py_ssize_t end)
cpdef bytes joined(bytes one, bytes two, bytes three, bytes four, bytes five)
cpdef bint ends_line(bytearray buffer, Py_ssize_t at) noexcept
cpdef bint has_empty_token(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t hash_slice(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cpdef Py_ssize_t count_run(
    bytearray buffer, Py_ssize_t start, Py_ssize_t filled, Py_ssize_t line, Py_ssize_t stride
) noexcept
cpdef bytearray unset_array(Py_ssize_t size)
cpdef Py_ssize_t drop_front(bytearray buffer, Py_ssize_t used, Py_ssize_t filled) except? -1

@cython.final
cdef class OutputBuffer:
    cdef public bytearray data
    cdef public Py_ssize_t head
    cdef public Py_ssize_t size
    cdef int reserve(self, Py_ssize_t extra) except? -1
    cpdef int append(self, bytes piece) except? -1
    cpdef int append_slice(self, bytearray source, Py_ssize_t start, Py_ssize_t end) except? -1
    cpdef int append_pair(self, bytes piece, bytearray source, Py_ssize_t start, Py_ssize_t end) except? -1
    cpdef int append_message(
        self,
        bytes verb,
        bytearray source,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        bytes between,
        Py_ssize_t tail,
        Py_ssize_t end,
    ) except? -1
    cpdef int append_framed(self, bytes line, bytes payload) except? -1
    cpdef int append_run(
        self, bytes piece, bytearray source, Py_ssize_t start, Py_ssize_t end, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cpdef int skip(self, Py_ssize_t count) except? -1
