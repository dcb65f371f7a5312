cimport cython
from headwater.broker.sublist cimport Outlet, Subscription
from headwater.wire.route_ops cimport RouteMessage


@cython.final
cdef class Target:
    cdef readonly Outlet outlet
    cdef readonly bint in_v1
    cdef readonly bint ours
    cdef bytes listed
    cdef bint plain
    cdef bytes _rmsg
    cdef bytes _hmsg

    cdef int write(self, bytes listed, bytearray buffer, RouteMessage message) except? -1
    cdef int write_token(
        self, Subscription subscription, bint passed_on, bytearray buffer, RouteMessage message
    ) except? -1


@cython.final
cdef class Frame:
    cdef readonly Target target
    cdef Subscription subscription
    cdef bytes listed

    cpdef int write(self, bytearray buffer, RouteMessage message) except? -1
    cpdef Py_ssize_t write_run(
        self, bytearray buffer, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
