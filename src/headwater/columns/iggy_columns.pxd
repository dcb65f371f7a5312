cimport cython
from headwater.wire.columns cimport ColumnDecoder, Numbers, TextColumn
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t BATCH_HEADER
cdef Py_ssize_t FRAME_HEADER
cdef int STRING
cdef bytes VERSION_LINE
cdef bytes CRLF

cdef bint is_plain_name(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.final
cdef class IggyDecoder(ColumnDecoder):
    cdef readonly bint with_typed
    cdef readonly Py_ssize_t careful
    cdef Numbers origins
    cdef TextColumn ids
    cdef TextColumn typed
    cdef OutputBuffer block
    cdef bytearray digits
    cpdef Py_ssize_t feed(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
    cdef int message(self, bytearray buffer, Py_ssize_t batch, Py_ssize_t frame, Py_ssize_t payload, Py_ssize_t headers, Py_ssize_t end) except? -1
    cdef int id_row(self, bytearray buffer, Py_ssize_t at) except? -1
    cdef int block_of(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef int block_carefully(self, bytes typed) except? -1
