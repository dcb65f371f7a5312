cimport cython
from headwater.streams.log_format cimport BatchBuilder
from headwater.streams.writer cimport LogWriter

@cython.final
cdef class Staging:
    cdef BatchBuilder _open
    cdef list _full
    cdef Py_ssize_t _batch_bytes
    cdef LogWriter _writer
    cpdef Py_ssize_t following(self) except -1
    cpdef Py_ssize_t stage(self, bytes subject, bytes header_block, bytes payload, long long timestamp_ns) except? -1
    cpdef list seal(self)
