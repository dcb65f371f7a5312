cimport cython
from headwater.wire.scan cimport SizedLine


@cython.final
cdef class MessageLine(SizedLine):
    cdef readonly Py_ssize_t first
    cdef readonly Py_ssize_t first_end
    cdef readonly Py_ssize_t second
    cdef readonly Py_ssize_t second_end
    cdef readonly Py_ssize_t reply
    cdef readonly Py_ssize_t queues
    cdef readonly Py_ssize_t queues_end
    cdef readonly bint in_v1

    cpdef bint read(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) noexcept
    cpdef bint read_leaf(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) noexcept
    cdef bint _read_rest(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) noexcept
    cdef bint _read_list(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) noexcept
