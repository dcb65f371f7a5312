cimport cython
from headwater.broker.cluster.frames cimport Frame, Target
from headwater.broker.cluster.peer_interest cimport PeerInterest
from headwater.broker.cluster.plans cimport Choice, Plan
from headwater.broker.router cimport Router
from headwater.broker.sublist cimport Match, Outlet, Subscription
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class Forwarding(PeerInterest):
    cdef readonly Py_ssize_t headers_dropped
    cdef unsigned int _random
    cdef RouteMessage _view
    cdef list _elsewhere

    cdef bint _goes_out(self, bytearray buffer, Py_ssize_t subject, Py_ssize_t subject_end) except? -1
    cdef Plan _plan(self, Match remote)
    cdef int _set_view(
        self,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) noexcept
    cdef int _route_each(
        self,
        Router router,
        Outlet publisher,
        Match match,
        bytearray buffer,
        RouteMessage message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _send_run(
        self,
        Router router,
        Match match,
        Plan plan,
        bytearray buffer,
        RouteMessage message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _send(
        self, Router router, Match match, Plan plan, bytearray buffer, RouteMessage message
    ) except? -1
    cdef int _choose(
        self, Router router, Match match, Plan plan, bytearray buffer, RouteMessage message
    ) except? -1
    cdef int _send_listed(self, Router router, Target target, bytearray buffer, RouteMessage message) except? -1
    cdef int _send_token(
        self, Router router, Target target, Subscription subscription, bint passed_on, bytearray buffer, RouteMessage message
    ) except? -1
    cdef int _count(self, Router router, Target target, RouteMessage message, Py_ssize_t count) except? -1
    cpdef bint pass_on(self, Router router, bytearray buffer, RouteMessage message, bytes queue) except? -1
    cdef unsigned int _next_random(self) noexcept
