from headwater.exchange.flusher cimport Flusher
from headwater.exchange.sublist cimport Outlet, Sublist
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.known_subjects cimport KnownSubjects
from headwater.wire.publishes_ahead cimport PublishesAhead

cdef class Foresight:
    cdef public Py_ssize_t seen
    cpdef int look(self, ClientOpParser ops) except -1

cdef PublishesAhead AHEAD
cdef PublishesAhead _BEHIND

cdef Py_ssize_t deliver_ahead(ClientOpParser ops, Py_ssize_t at, Sublist sublist, Flusher flusher, Outlet publisher) except -1
cdef Py_ssize_t _append(PublishesAhead ahead, bytearray buffer, KnownSubjects known, Flusher flusher, Outlet publisher) except -1
