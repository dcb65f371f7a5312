cimport cython
from headwater.broker.cluster.arrivals cimport Arrivals
from headwater.broker.router cimport Router
from headwater.broker.sublist cimport Outlet
from headwater.wire.route_ops cimport RouteOpHandler, RouteOpParser


@cython.final
cdef class Route(RouteOpHandler):
    cdef public object cluster
    cdef public Py_ssize_t number
    cdef public str dialled
    cdef public object link
    cdef public Outlet outlet
    cdef public RouteOpParser parser
    cdef public Py_ssize_t pings_out
    cdef public double round_trip
    cdef public double pinged_at
    cdef readonly double opened
    cdef readonly double last_read
    cdef public Py_ssize_t in_messages
    cdef public Py_ssize_t in_bytes
    cdef public bint registered
    cdef list _early
    cdef bytes _account
    cdef Router _router
    cdef Arrivals _arrivals

    cdef bint _find_account(self, bytes account) except? -1
    cdef int _hear_interest(self, object interest) except? -1
