cimport cython
from headwater.authorization.guard cimport Guard
from headwater.exchange.client_state cimport Traffic
from headwater.exchange.router cimport Router
from headwater.leaf.admission cimport Admission
from headwater.leaf.forwarding cimport LeafForwarding, LeafTarget
from headwater.wire.message_view cimport MessageView
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class LeafArrivals:
    cdef readonly Router router
    cdef readonly LeafTarget target
    cdef readonly Py_ssize_t refused
    cdef readonly Py_ssize_t groups_missed
    cdef Traffic _traffic
    cdef object _on_denied
    cdef object _account
    cdef LeafForwarding _forwarding
    cdef bytes _origin
    cdef Guard _guard
    cdef Admission _admission

    cdef int deliver(self, RouteMessage message) except? -1
    cdef bint deliver_run(
        self, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef object _mappings(self)
    cdef bint _may_come(self, MessageView message) except? -1
