cimport cython
from headwater.exchange.peer_frames cimport PeerFrames
from headwater.exchange.sublist cimport Outlet, Subscription
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class Target(PeerFrames):
    cdef readonly bint in_v1
    cdef readonly bint ours
    cdef readonly bint knows_leafs
    cdef readonly bint takes_runs
    cdef bytes _account

    cpdef int write_from(self, bytes origin, bytes listed, MessageView message) except? -1
    cdef Py_ssize_t write_run_from(
        self, bytes origin, MessageView message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cdef int write_token(
        self, Subscription subscription, bint passed_on, MessageView message
    ) except? -1


@cython.final
cdef class Frame:
    cdef readonly Target target
    cdef Subscription subscription
    cdef bytes listed

    cdef bint is_plain(self) noexcept
    cpdef int write(self, MessageView message) except? -1
    cpdef Py_ssize_t write_run(
        self, MessageView message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
