cimport cython
from headwater.cluster.arrivals cimport Arrivals
from headwater.cluster.run_intake cimport RunIntake
from headwater.exchange.peer_connection cimport PeerConnection
from headwater.exchange.router cimport Router
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class Destination:
    cdef bytes account
    cdef Router router
    cdef Arrivals arrivals


@cython.final
cdef class Route(PeerConnection):
    cdef public object cluster
    cdef public Py_ssize_t number
    cdef public str dialled
    cdef readonly double last_read
    cdef public bint registered
    cdef list _early
    cdef Destination _last
    cdef readonly RunIntake intake

    cdef int _deliver(self, Arrivals arrivals, RouteMessage message, Py_ssize_t stride, Py_ssize_t count) except? -1
    cdef Py_ssize_t parse_all(self, bytearray buffer, Py_ssize_t filled) except? -1
    cdef int _deliver_announced(self, RunIntake intake) except? -1
    cdef bint _find_account(self, bytes account) except? -1
    cdef int _take_interest(self, object interest) except? -1
