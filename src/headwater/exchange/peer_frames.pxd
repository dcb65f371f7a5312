from headwater.exchange.sublist cimport Outlet
from headwater.wire.message_view cimport MessageView


cdef class PeerFrames:
    cdef readonly Outlet outlet
    cdef bytes listed
    cdef bint plain
    cdef bytes _plain_head
    cdef bytes _headed_head

    cdef int write(self, bytes listed, MessageView message) except? -1
    cdef Py_ssize_t write_run(
        self, bytes listed, MessageView message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
