cimport cython
from headwater.broker.router cimport PeerForwarding, Router
from headwater.broker.sublist cimport Match, Outlet, Sublist, Subscription
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class Target:
    cdef readonly Outlet outlet
    cdef readonly bint in_v1
    cdef readonly bint ours
    cdef bytes rmsg
    cdef bytes hmsg
    cdef list chosen
    cdef bint plain


@cython.final
cdef class Forwarding(PeerForwarding):
    cdef readonly bytes account
    cdef readonly Sublist interest
    cdef readonly Py_ssize_t headers_dropped
    cdef public Py_ssize_t groups_missed
    cdef readonly Py_ssize_t passed_on
    cdef public object departed
    cdef public object withheld  # SubjectSet or None
    cdef dict _targets
    cdef dict _known
    cdef unsigned int _random
    cdef RouteMessage _view

    cdef bint _goes_out(self, bytearray buffer, Py_ssize_t subject, Py_ssize_t subject_end) except? -1
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
    cdef bint _sends_alike(self, list[Subscription] firsts, bint with_headers) except? -1
    cdef int _send_run(
        self,
        Router router,
        list[Subscription] firsts,
        bytearray buffer,
        RouteMessage message,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef int _send(
        self,
        Router router,
        Match match,
        Match remote,
        list[bytes] elsewhere,
        bytearray buffer,
        RouteMessage message,
    ) except? -1
    cdef int _count(self, Router router, Target target, RouteMessage message, Py_ssize_t count) except? -1
    cdef int _choose(
        self,
        Match match,
        Match remote,
        list[bytes] elsewhere,
        list[Target] targets,
        bytearray buffer,
        RouteMessage message,
    ) except? -1
    cdef int _write_v2(self, Target target, bytearray buffer, RouteMessage message) except? -1
    cdef int _write_v1(
        self, Target target, Subscription subscription, bint passed_on, bytearray buffer, RouteMessage message
    ) except? -1
    cpdef int deliver(self, Router router, bytearray buffer, RouteMessage message) except? -1
    cpdef int deliver_run(
        self, Router router, bytearray buffer, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cpdef int deliver_to_queue(
        self, Router router, bytearray buffer, RouteMessage message, bytes queue, bint passed_on
    ) except? -1
    cdef int _pass_on(self, Router router, bytearray buffer, RouteMessage message, bytes queue) except? -1
    cdef unsigned int _next_random(self) noexcept
