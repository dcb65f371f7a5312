cimport cython
from headwater.exchange.ahead cimport Foresight
from headwater.exchange.flusher cimport Flusher
from headwater.exchange.peer_frames cimport PeerFrames
from headwater.exchange.sublist cimport Match, Outlet, Sublist, Subscription
from headwater.model.xorshift cimport Xorshift
from headwater.net.shared_run cimport SharedRun
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.message_view cimport MessageView
from headwater.wire.publish_series cimport PublishSeries

cdef Py_ssize_t _LARGE
cdef Py_ssize_t _SHARED

cdef int _read_ahead(list[Subscription] plain, Py_ssize_t first) except -1


cdef class Router


cdef class PeerForwarding:
    cdef public list elsewhere

    cpdef list near(self, MessageView message)
    cpdef list far(self, MessageView message)
    cpdef Py_ssize_t weigh(
        self, bytes queue, PeerFrames source, bytes origin, MessageView message
    ) except? -1
    cpdef int spread(
        self,
        Router router,
        PeerFrames source,
        bytes origin,
        Match match,
        list[bytes] queues,
        list[bytes] served,
        MessageView message,
    ) except? -1
    cpdef int spread_run(
        self,
        Router router,
        PeerFrames source,
        bytes origin,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cpdef int from_leaf(
        self,
        Router router,
        PeerFrames source,
        bytes origin,
        Match match,
        list[bytes] queues,
        MessageView message,
    ) except? -1
    cpdef int from_route(
        self,
        Router router,
        bytes origin,
        Match match,
        list[bytes] queues,
        MessageView message,
    ) except? -1
    cpdef bint has_interest(self, bytes subject) except? -1
    cpdef Py_ssize_t pending(self, bytes subject) except? -1
    cpdef int route(
        self,
        Router router,
        Outlet publisher,
        Match match,
        MessageView message,
    ) except? -1
    cpdef int route_under(
        self,
        Router router,
        bytes inbox,
        Match match,
        MessageView message,
    ) except? -1
    cpdef int route_run(
        self,
        Router router,
        Outlet publisher,
        Match match,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int publish_series(
        self, Router router, Outlet publisher, Match match, ClientOpParser ops, PublishSeries series, bint same_subject
    ) except? -2


@cython.final
cdef class Router:
    cdef readonly Sublist sublist
    cdef readonly Flusher flusher
    cdef readonly Xorshift chance
    cdef readonly PeerForwarding forwarding
    cdef readonly PeerForwarding junction
    cdef readonly object routes_side
    cdef readonly object leafs_side
    cdef readonly dict between
    cdef public object imports
    cdef public Outlet publisher
    cdef public bytes inbox
    cdef public bint over_route
    cdef public bint samples_traces
    cdef readonly object awaited
    cdef public Foresight foresight

    cpdef int route(
        self,
        Outlet publisher,
        Match match,
        MessageView message,
    ) except? -1
    cpdef int route_plain(self, Outlet publisher, Match match, MessageView message) except? -1
    cpdef int route_here(
        self,
        Outlet publisher,
        Match match,
        bint own_subject,
        MessageView message,
        list[bytes] elsewhere,
        bint over_route,
    ) except? -1
    cpdef int route_under(
        self,
        bytes inbox,
        Match match,
        MessageView message,
    ) except? -1
    cpdef int route_under_here(
        self,
        bytes inbox,
        Match match,
        MessageView message,
        list[bytes] elsewhere,
        bint over_route,
    ) except? -1
    cpdef int call_one(
        self,
        Subscription subscription,
        Outlet publisher,
        bint over_route,
        bytes subject,
        bytes reply,
        bytes header_block,
        bytes payload,
    ) except? -1
    cdef bint _deliver_to(
        self,
        Subscription subscription,
        Outlet publisher,
        bint own_subject,
        MessageView message,
    ) except? -1
    cpdef int route_run(
        self,
        Outlet publisher,
        Match match,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cpdef int route_run_here(
        self,
        Outlet publisher,
        Match match,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int route_series(self, Outlet publisher, Match match, bytearray buffer, PublishSeries series) except -1
    cdef Py_ssize_t _deliver_run(
        self,
        Subscription subscription,
        Outlet outlet,
        MessageView message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _count_run(
        self, Subscription subscription, Outlet outlet, MessageView message, Py_ssize_t count
    ) except -1
    cpdef int begin_read(self) except? -1
    cpdef int end_read(self) except? -1
    cpdef mark_dirty(self, Outlet outlet)
    cpdef unsubscribe(self, Subscription subscription)
