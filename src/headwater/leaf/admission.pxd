cimport cython
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Match
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class Admission:
    cdef readonly object may_cross
    cdef bint _is_open
    cdef bytes _subject
    cdef Match _receivers
    cdef Py_ssize_t _generation

    cpdef bint may_come(self, MessageView message) except? -1
    cpdef Match receivers(self, Router router, MessageView message)
