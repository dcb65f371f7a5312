cimport cython

cdef Py_ssize_t _ANNOUNCED

cdef bytes announcement(bytes before, bytes sid, bytes behind)
cdef Py_ssize_t bytes_but_sid(Py_ssize_t subject, Py_ssize_t size) except -1


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
