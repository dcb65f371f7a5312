cimport cython
from headwater.authorization.guard cimport Guard
from headwater.wire.known_subjects cimport KnownSubjects, Receiver
from headwater.net.endpoint cimport Endpoint
from headwater.wire.memory cimport OutputBuffer


@cython.final
cdef class Outlet:
    cdef public object link
    cdef Endpoint endpoint
    cdef public OutputBuffer output
    cdef public Guard guard
    cdef public bint headers
    cdef public bint echo
    cdef public bint dirty
    cdef public bint closed
    cdef public bint is_route
    cdef public Py_ssize_t out_messages
    cdef public Py_ssize_t out_bytes
    cdef public dict subscriptions


@cython.final
cdef class Subscription(Receiver):
    # First what a delivery touches: with what a Receiver has it is one cache line.
    cdef readonly Outlet outlet
    cdef bytes msg
    cdef public bint closed
    cdef readonly bytes subject
    cdef readonly bytes queue
    cdef readonly bytes sid
    cdef readonly object callback
    cdef public object traced
    cdef bytes after_subject
    cdef bytes hmsg


cdef class Node


@cython.final
cdef class Match:
    cdef readonly list plain
    cdef readonly list groups
    cdef readonly Py_ssize_t generation
    cdef readonly bint separate
    cdef readonly Subscription lone
    cdef readonly list queues
    cdef list _firsts
    cdef dict _longer
    cdef dict _serving
    cdef public object plan

    cpdef list firsts(self)
    cdef bint takes_series(self) except -1
    cpdef Match serving(self, list[bytes] queues, bint plain)
    cdef Match extend(self, Node node)
    cdef bint _is_separate(self) except? -1
    cdef Subscription _only_callback(self)


@cython.final
cdef class Node:
    cdef dict literals
    cdef Node one
    cdef Node tail
    cdef dict plain
    cdef dict groups
    cdef Match alone

    cdef Node child(self, bytes token)
    cdef set_child(self, bytes token, Node node)
    cdef bint is_empty(self) except? -1


@cython.final
cdef class Beginning:
    cdef bytes prefix
    cdef bint deep
    cdef Match match


@cython.final
cdef class Sublist:
    cdef public Py_ssize_t generation
    cdef public Py_ssize_t count
    cdef readonly Py_ssize_t epoch
    cdef bint _as_one
    cdef Node _root
    cdef Match _no_match
    cdef list[Match] _bases
    cdef Py_ssize_t _floor
    cdef Py_ssize_t _passing
    cdef KnownSubjects _known
    cdef dict _seen
    cdef bytes _prefix
    cdef Match _prefix_found
    cdef Node _prefix_node
    cdef Beginning _beginning

    cdef int _changed(self, Subscription subscription, Node node) except -1
    cpdef Py_ssize_t delivered(self, Subscription subscription) except -1
    cpdef bint limit(self, Subscription subscription, Py_ssize_t maximum) except -1
    cpdef Match match(self, bytes subject)
    cpdef Match find(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end)
    cdef Match _walk(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end)
    cdef Match _empty_match(self)
    cdef Beginning beginning_of(self, Match match, bytearray buffer, Py_ssize_t start, Py_ssize_t end)
    cpdef bint reaches(self, bytes prefix) except -1
    cdef int _remember(self, unsigned long long tag, bytes subject, Match found) except -1
    cdef int _gave_up(self) except -1
    cdef Py_ssize_t _most_known(self) except -1
    cdef Match _grown(self, Match match, Node node)
