from headwater.exchange.flusher cimport Flusher
from headwater.exchange.sublist cimport Outlet, Sublist
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.publishes_ahead cimport PublishesAhead

cdef PublishesAhead AHEAD

cdef Py_ssize_t deliver_ahead(ClientOpParser ops, Sublist sublist, Flusher flusher, Outlet publisher) except -1
cdef Py_ssize_t _append(bytearray buffer, Flusher flusher, Outlet publisher) except -1
