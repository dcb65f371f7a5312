cimport cython
from headwater.exchange.peer_connection cimport PeerConnection
from headwater.leaf.arrivals cimport LeafArrivals


@cython.final
cdef class LeafConnection(PeerConnection):
    cdef public object nodes
    cdef public Py_ssize_t number
    cdef public object remote
    cdef readonly LeafArrivals arrivals
    cdef readonly object far_end
    cdef public str nonce
    cdef public object account
    cdef public object neighbour
    cdef public bint websocket
    cdef public str end_reason
    cdef public bint joined
