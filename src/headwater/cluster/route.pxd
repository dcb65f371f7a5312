cimport cython
from headwater.cluster.arrivals cimport Arrivals
from headwater.exchange.client_state cimport Traffic
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Outlet
from headwater.wire.route_ops cimport RouteOpHandler, RouteOpParser


@cython.final
cdef class Destination:
    cdef bytes account
    cdef Router router
    cdef Arrivals arrivals


@cython.final
cdef class Route(RouteOpHandler):
    cdef public object cluster
    cdef public Py_ssize_t number
    cdef public str dialled
    cdef public object link
    cdef public Outlet outlet
    cdef public RouteOpParser parser
    cdef public object pulse
    cdef public Traffic traffic
    cdef readonly double opened
    cdef readonly double last_read
    cdef public bint registered
    cdef list _early
    cdef Destination _last

    cdef bint _find_account(self, bytes account) except? -1
    cdef int _take_interest(self, object interest) except? -1
