cimport cython


@cython.final
cdef class Moderation:
    cdef public bint pausing
    cdef public bint counting
    cdef Py_ssize_t _usual
    cdef double _rate
    cdef Py_ssize_t _unseen
    cdef Py_ssize_t _began
    cdef Py_ssize_t _rounds
    cdef Py_ssize_t _reads
    cdef Py_ssize_t _bytes
    cdef Py_ssize_t _poor
    cdef Py_ssize_t _lease
    cdef Py_ssize_t _next_try
    cdef Py_ssize_t _backoff

    cpdef bint wants_look(self, Py_ssize_t reads) except? -1
    cpdef bint look(self, Py_ssize_t now, Py_ssize_t reads, Py_ssize_t size) except? -1
    cdef int _judge_usual(self, Py_ssize_t now) except -1
    cdef int _judge_pauses(self, Py_ssize_t now, bint poor) except -1
    cdef int _begin(self, Py_ssize_t now) except -1
    cdef int _stop(self, Py_ssize_t now) except -1
