cimport cython
from headwater.exchange.peer_frames cimport PeerFrames
from headwater.exchange.router cimport PeerForwarding, Router
from headwater.exchange.shown_subject cimport AddressedMessage
from headwater.exchange.sublist cimport Match, Outlet
from headwater.model.xorshift cimport Xorshift
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class Junction(PeerForwarding):
    cdef readonly PeerForwarding routes
    cdef readonly PeerForwarding leafs
    cdef object _routes_side
    cdef object _leafs_side
    cdef Xorshift _chance
    cdef AddressedMessage _addressed

    cdef bint _has_groups(self, MessageView message) except? -1
    cdef int _send(
        self,
        Router router,
        PeerFrames source,
        bytes origin,
        Match match,
        list[bytes] queues,
        MessageView message,
    ) except? -1
    cdef bint _prefers_leafs(
        self, bytes queue, list[bytes] far, PeerFrames source, bytes origin, MessageView message
    ) except? -1
