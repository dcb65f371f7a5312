cimport cython
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.known_subjects cimport KnownSubjects
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class PublishesAhead:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t window
    cdef Py_ssize_t payload
    cdef void *lately
    cdef Py_ssize_t[65] start
    cdef Py_ssize_t[64] tail
    cdef Py_ssize_t[64] size
    cdef Py_ssize_t[64] slot
    cdef unsigned long long[64] _tag

    cdef bint goes_on(self, object publisher, MessageView message) noexcept
    cdef int collect(
        self, ClientOpParser ops, Py_ssize_t at, Py_ssize_t window, KnownSubjects known, Py_ssize_t generation
    ) except -1
    cdef int step(self, KnownSubjects known) except -1
    cdef int look_up(self, KnownSubjects known) except -1


cdef bint counted(unsigned long long subscription) noexcept
