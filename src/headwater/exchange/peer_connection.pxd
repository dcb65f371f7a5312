from headwater.exchange.client_state cimport Traffic
from headwater.exchange.sublist cimport Outlet
from headwater.wire.route_ops cimport RouteOpHandler, RouteOpParser


cdef class PeerConnection(RouteOpHandler):
    cdef public object clock
    cdef public object link
    cdef public Outlet outlet
    cdef public RouteOpParser parser
    cdef public object pulse
    cdef public Traffic traffic
    cdef readonly double opened
