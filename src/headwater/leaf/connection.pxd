cimport cython
from headwater.exchange.auth.guard cimport Guard
from headwater.exchange.peer_connection cimport PeerConnection
from headwater.exchange.router cimport Router
from headwater.leaf.forwarding cimport LeafForwarding, LeafTarget
from headwater.wire.message_view cimport MessageView
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class LeafConnection(PeerConnection):
    cdef public object nodes
    cdef public Py_ssize_t number
    cdef public object remote
    cdef public str nonce
    cdef public object connect
    cdef public object info
    cdef public object identity
    cdef public object account
    cdef public str name
    cdef public str server_id
    cdef public str cluster
    cdef public str remote_account
    cdef public object neighbour
    cdef public bint websocket
    cdef public long long since
    cdef public Py_ssize_t refused
    cdef public Py_ssize_t groups_missed
    cdef public str end_reason
    cdef public bint joined
    cdef Router _router
    cdef LeafForwarding _forwarding
    cdef LeafTarget _target
    cdef bytes _origin
    cdef Guard _guard
    cdef object _hears

    cdef int _take(self, RouteMessage message) except? -1
    cdef bint _may_come(self, MessageView message) except? -1
