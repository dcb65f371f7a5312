cimport cython
from headwater.broker.router cimport Router
from headwater.broker.sublist cimport Match, Outlet, Sublist, Subscription
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class Target:
    cdef readonly Outlet outlet
    cdef readonly bint in_v1
    cdef bytes rmsg
    cdef bytes hmsg
    cdef list chosen
    cdef bint plain


@cython.final
cdef class Forwarding:
    cdef readonly bytes account
    cdef readonly Sublist interest
    cdef readonly Py_ssize_t headers_dropped
    cdef public Py_ssize_t groups_missed
    cdef public object withheld  # SubjectSet or None
    cdef dict _targets
    cdef dict _known
    cdef unsigned int _random

    cdef bint _goes_out(self, bytearray buffer, Py_ssize_t subject, Py_ssize_t subject_end) except? -1

    cpdef int route(
        self,
        Router router,
        Outlet publisher,
        Match match,
        bint own_subject,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) except? -1
    cdef int _send(
        self,
        Router router,
        Match match,
        Match remote,
        list[bytes] elsewhere,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) except? -1
    cdef int _choose(
        self,
        Match match,
        Match remote,
        list[bytes] elsewhere,
        list[Target] targets,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) except? -1
    cdef int _write_v2(
        self,
        Target target,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) except? -1
    cdef int _write_v1(
        self,
        Target target,
        Subscription subscription,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
    ) except? -1
    cpdef int deliver(self, Router router, bytearray buffer, RouteMessage message) except? -1
    cpdef int deliver_to_queue(
        self, Router router, bytearray buffer, RouteMessage message, bytes queue
    ) except? -1
    cdef unsigned int _next_random(self) noexcept
