cimport cython
from headwater.authorization.guard cimport Guard
from headwater.exchange.peer_frames cimport PeerFrames
from headwater.exchange.router cimport PeerForwarding, Router
from headwater.exchange.shown_subject cimport AddressedMessage
from headwater.exchange.sublist cimport Match, Outlet, Sublist, Subscription
from headwater.model.xorshift cimport Xorshift
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class LeafTarget(PeerFrames):
    cdef readonly object sends  # Crossing
    cdef public bytes cluster
    cdef readonly bint is_hub
    cdef public bint is_route
    cdef readonly Py_ssize_t kept_back
    cdef bytes _last
    cdef bint _open
    cdef bint able
    cdef public Guard guard

    cdef bint _is_answer(self, MessageView message) except? -1
    cpdef bint takes(self, MessageView message, LeafTarget source) except? -1


@cython.final
cdef class LeafChoice:
    cdef readonly bytes queue
    cdef readonly list targets
    cdef readonly list weights
    cdef bytes name
    cdef bytes listed


@cython.final
cdef class LeafPlan:
    cdef readonly list plain
    cdef readonly list choices


@cython.final
cdef class LeafForwarding(PeerForwarding):
    cdef readonly Sublist interest
    cdef readonly dict targets
    cdef readonly Py_ssize_t headers_dropped
    cdef dict _known
    cdef dict _weights
    cdef Xorshift _chance
    cdef AddressedMessage _addressed
    cdef LeafTarget _over_routes

    cpdef int pass_on(
        self, Router router, LeafTarget source, list[bytes] served, list[bytes] queues, MessageView message
    ) except? -1
    cpdef int send_run(
        self,
        Router router,
        LeafTarget source,
        Match match,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _run_to_plain(
        self,
        Router router,
        LeafTarget source,
        LeafPlan plan,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef LeafPlan _plan(self, Match remote)
    cdef int _send(
        self,
        Router router,
        LeafTarget source,
        list[bytes] served,
        list[bytes] queues,
        Match remote,
        MessageView message,
    ) except? -1
    cdef LeafTarget _choose(self, LeafChoice choice, LeafTarget source, MessageView message)
    cdef Py_ssize_t _total(self, LeafChoice choice, LeafTarget source, MessageView message) except? -1
    cdef int _write(self, Router router, LeafTarget target, MessageView message) except? -1
    cdef int _count(self, Router router, LeafTarget target, MessageView message, Py_ssize_t count) except? -1
