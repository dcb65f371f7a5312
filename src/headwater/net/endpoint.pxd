cimport cython
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.receive cimport ReceiveBuffer


cdef class Endpoint:
    cdef public object owner
    cdef public OutputBuffer output
    cdef public bint closing
    cdef public ReceiveBuffer _input
    cdef public object _layer
    cdef public int _descriptor
    cdef public bint _blocked
    cdef public Py_ssize_t _handed

    cpdef bint read_ready(self) except? -1
    cpdef hand_over(self)
    cpdef Py_ssize_t push(self) except? -1
    cdef int _offer(self) except? -1
