cimport cython

cdef Py_ssize_t _ANNOUNCED


@cython.final
cdef class ToAnnounce:
    cdef bytes _before
    cdef bytes _behind
    cdef Py_ssize_t _bare
    cdef Py_ssize_t _count


@cython.final
cdef class Announced:
    cdef readonly bytes account
    cdef readonly bytes subject
    cdef readonly bytes sid
    cdef readonly bytes head
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t stride
    cdef readonly Py_ssize_t total
