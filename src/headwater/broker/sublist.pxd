cimport cython
from headwater.wire.memory cimport OutputBuffer


@cython.final
cdef class Outlet:
    cdef public object link
    cdef public OutputBuffer output
    cdef public object guard
    cdef public bint headers
    cdef public bint echo
    cdef public bint dirty
    cdef public bint closed
    cdef public Py_ssize_t out_messages
    cdef public Py_ssize_t out_bytes
    cdef public dict subscriptions


@cython.final
cdef class Subscription:
    cdef readonly bytes subject
    cdef readonly bytes queue
    cdef readonly bytes sid
    cdef readonly Outlet outlet
    cdef readonly object callback
    cdef bytes after_subject
    cdef bytes msg
    cdef bytes hmsg
    cdef public Py_ssize_t maximum
    cdef public Py_ssize_t delivered
    cdef public bint closed


@cython.final
cdef class Match:
    cdef public list plain
    cdef public list groups
    cdef public Py_ssize_t generation


@cython.final
cdef class Sublist:
    cdef public Py_ssize_t generation
    cdef public Py_ssize_t count
    cdef object _root
    cdef dict _cache

    cpdef Match match(self, bytes subject)
    cdef Match _walk(self, bytes subject)
