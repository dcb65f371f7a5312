cimport cython
from headwater.exchange.router cimport Router
from headwater.net.arrived_run cimport ArrivedRun
from headwater.net.endpoint cimport Endpoint
from headwater.wire.route_ops cimport RouteMessage
from headwater.wire.run_announcement cimport Announced


@cython.final
cdef class RunIntake:
    cdef Announced announced
    cdef Py_ssize_t missing
    cdef bint runs_follow
    cdef readonly ArrivedRun pages
    cdef Endpoint _link
    cdef bint _direct
    cdef Router _router
    cdef bytearray _body
    cdef Py_ssize_t _have
    cdef RouteMessage _message

    cdef int begin(self, Announced run, Router router) except -1
    cdef Py_ssize_t take(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except -1
    cdef int expect(self, Py_ssize_t rest) except -1
    cdef bint hand_on(self) except -1
    cdef RouteMessage message(self)
    cdef list _receivers(self, Announced run)
    cdef int _read_back(self) except -1
    cpdef close(self)
