cimport cython
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.receive cimport ReceiveBuffer, Receiver


cdef class Endpoint:
    cdef public object owner
    cdef public OutputBuffer output
    cdef public bint closing
    cdef public ReceiveBuffer _input
    cdef public object _layer
    cdef public int _descriptor
    cdef public bint _blocked
    cdef public Py_ssize_t _handed
    cdef public Py_ssize_t _apart

    cdef bint read_ready(self, Py_ssize_t most) except? -1
    cdef int _parse(self) except -1
    cdef Py_ssize_t write_output(self) except? -1
    cdef int _offer(self) except? -1
    cdef bint is_free(self) noexcept
    cdef int write_behind(self, bytearray source, Py_ssize_t start, Py_ssize_t end) except? -1
