cimport cython


cdef class Receiver:
    cpdef Py_ssize_t receive(self, bytearray buffer, Py_ssize_t filled) except? -1


@cython.final
cdef class ReceiveBuffer:
    cdef readonly bytearray data
    cdef readonly Py_ssize_t filled
    cdef readonly Py_ssize_t expected
    cdef bytearray _free
    cdef bytearray _target
    cdef Py_ssize_t _most
    cdef Py_ssize_t _steps
    cdef bint _left
    cdef list _lent

    cpdef bint leave(self, Py_ssize_t size) except? -1
    cpdef int expect(self, Py_ssize_t size) except? -1
    cdef bytearray room(self, Py_ssize_t size)
    cdef int _keep_front(self, bytearray target) except -1
    cdef bytearray _rest(self, Py_ssize_t used)
    cdef bint is_spare(self, Py_ssize_t rest) except? -1
    cdef Py_ssize_t space(self, Py_ssize_t hint, Py_ssize_t most) except -1
    cpdef writable(self, Py_ssize_t hint=*)
    cpdef int received(self, Py_ssize_t count) except? -1
    cpdef int consume(self, Py_ssize_t used) except? -1
