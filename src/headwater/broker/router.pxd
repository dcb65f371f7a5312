cimport cython
from headwater.broker.sublist cimport Match, Outlet, Sublist, Subscription


cdef class Router


cdef class PeerForwarding:
    cpdef bint has_interest(self, bytes subject) except? -1
    cpdef Py_ssize_t pending(self, bytes subject) except? -1
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
    cpdef int route_run(
        self,
        Router router,
        Outlet publisher,
        Match match,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1


@cython.final
cdef class Router:
    cdef readonly Sublist sublist
    cdef public Py_ssize_t max_pending
    cdef readonly Py_ssize_t stall_at
    cdef readonly Py_ssize_t route_stall_at
    cdef public Py_ssize_t slow_consumers
    cdef readonly list congested
    cdef object _schedule
    cdef unsigned int _random
    cdef list _dirty
    cdef readonly PeerForwarding forwarding
    cdef object _observer
    cdef readonly set between
    cdef set _unannounced
    cdef public object imports
    cdef public Outlet publisher
    cdef bint _scheduled
    cdef bint _reading

    cpdef int route(
        self,
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
    cpdef int route_here(
        self,
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
        list[bytes] elsewhere,
    ) except? -1
    cdef bint _deliver_to(
        self,
        Subscription subscription,
        Outlet publisher,
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
    cpdef int route_run(
        self,
        Outlet publisher,
        Match match,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cpdef int route_run_here(
        self,
        Outlet publisher,
        Match match,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t reply,
        Py_ssize_t reply_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef bint _deliver_run(
        self,
        Subscription subscription,
        Outlet outlet,
        bytearray buffer,
        Py_ssize_t subject,
        Py_ssize_t subject_end,
        Py_ssize_t tail,
        Py_ssize_t headers,
        Py_ssize_t payload,
        Py_ssize_t end,
        Py_ssize_t stride,
        Py_ssize_t count,
    ) except? -1
    cdef unsigned int _next_random(self) noexcept
    cdef int _mark(self, Outlet outlet) except? -1
    cpdef int begin_read(self) except? -1
    cpdef int end_read(self) except? -1
    cdef int _flush_dirty(self) except? -1
    cpdef mark_dirty(self, Outlet outlet)
    cpdef unsubscribe(self, Subscription subscription)


cdef bytearray _message(bytes subject, bytes reply, bytes header_block, bytes payload)
