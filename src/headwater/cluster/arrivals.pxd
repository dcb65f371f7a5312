cimport cython
from headwater.cluster.forwarding cimport Forwarding
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Match
from headwater.wire.publish_series cimport PublishSeries
from headwater.wire.route_ops cimport RouteMessage, RouteOpParser


cdef PublishSeries SERIES


@cython.final
cdef class Arrivals:
    cdef readonly Router router
    cdef public Py_ssize_t groups_missed
    cdef readonly Py_ssize_t passed_on
    cdef Forwarding _forwarding
    cdef object _departed
    cdef object _queue_of
    cdef Match _match
    cdef list[bytes] _queues
    cdef Match _served
    cdef bytes _head

    cpdef Py_ssize_t deliver_series(self, RouteMessage message, RouteOpParser ops) except -1
    cpdef int deliver(self, RouteMessage message) except? -1
    cpdef int deliver_run(
        self, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cpdef int deliver_to_member(
        self, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef Py_ssize_t _route_run(
        self, Match match, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef bint _for_leafs(self, RouteMessage message) except? -1
    cdef bint _takes_all(self, Match match, RouteMessage message) except? -1
    cpdef int deliver_to_queue(self, RouteMessage message, bytes queue, bint passed_on) except? -1
    cdef int _pass_on(self, RouteMessage message, bytes queue) except? -1
    cdef int _route(self, Match match, RouteMessage message) except? -1


cdef bint _is_passed_on(RouteMessage message) except? -1
