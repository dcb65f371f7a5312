cimport cython
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Match, Outlet
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.message_view cimport MessageView


cdef bytes _HEAD
cdef int _DOTS_BEHIND


@cython.final
cdef class AddressedMessage:
    cdef MessageView _view
    cdef OutputBuffer _frame

    cdef MessageView to(self, bytes inbox, MessageView message)


cpdef bint is_ack_subject(bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
cpdef Py_ssize_t find_shown(bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -2
cpdef int route_arrival(
    Router router, Outlet publisher, Match match, MessageView message, bint over_route
) except? -1
cdef int _route_shown(
    Router router, Match match, MessageView message, Py_ssize_t at, bint over_route
) except? -1
