cimport cython
from headwater.net.endpoint cimport Endpoint


@cython.final
cdef class ArrivedRun:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t by_pages
    cdef readonly bint refused
    cdef tuple _pages
    cdef tuple _copy

    cpdef Py_ssize_t take(self, int descriptor, Py_ssize_t most) except? -1
    cpdef int hand(self, list[Endpoint] receivers) except? -1
    cpdef bytearray read(self, Py_ssize_t room)
    cdef Py_ssize_t _copy_to(self, Endpoint endpoint) except -1
    cdef Py_ssize_t _judge(self, Py_ssize_t moved) except -1
    cpdef close(self)
