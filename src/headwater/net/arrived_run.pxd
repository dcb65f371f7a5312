cimport cython
from headwater.net.endpoint cimport Endpoint
from headwater.net.shared_run cimport PageCalls


@cython.final
cdef class ArrivedRun:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t by_pages
    cdef readonly PageCalls calls
    cdef tuple _pages

    cpdef bint begin(self, PageCalls calls) except -1
    cpdef Py_ssize_t take(self, int descriptor, Py_ssize_t most) except? -1
    cpdef int hand(self, list[Endpoint] receivers) except? -1
    cpdef bytearray read(self, Py_ssize_t room)
    cpdef close(self)
