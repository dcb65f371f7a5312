cimport cython

@cython.final
cdef class LentBytes:
    cdef bytearray _source
    cdef object _pin
    cdef Py_ssize_t _start
    cdef Py_ssize_t _size
