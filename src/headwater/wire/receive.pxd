cimport cython


@cython.final
cdef class ReceiveBuffer:
    cdef readonly bytearray data
    cdef readonly Py_ssize_t filled
    cdef readonly Py_ssize_t expected
    cdef bytearray _free
    cdef bytearray _target
    cdef object _view
    cdef Py_ssize_t _steps
    cdef bint _left
    cdef list _lent

    cpdef bint leave(self, Py_ssize_t size) except? -1
    cpdef int expect(self, Py_ssize_t size) except? -1
    cdef bytearray room(self, Py_ssize_t size)
    cdef bint is_spare(self, Py_ssize_t rest) except? -1
    cpdef writable(self, Py_ssize_t hint=*)
    cpdef int received(self, Py_ssize_t count) except? -1
    cpdef int consume(self, Py_ssize_t used) except? -1
