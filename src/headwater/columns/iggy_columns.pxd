cimport cython
from headwater.wire.columns cimport ColumnDecoder, Numbers, TextColumn
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t BATCH_HEADER
cdef Py_ssize_t FRAME_HEADER
cdef int STRING
cdef int BOOL
cdef int INT8
cdef int INT64
cdef int UINT8
cdef int UINT64
cdef bytes VERSION_LINE
cdef bytes CRLF

cdef Py_ssize_t u32(bytearray buffer, Py_ssize_t at) noexcept
cdef long long u64(bytearray buffer, Py_ssize_t at) noexcept
cdef bint is_plain_name(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint is_plain_value(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept

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
    cdef bint value(self, bytearray buffer, int kind, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef int block_carefully(self, bytes typed) except? -1
