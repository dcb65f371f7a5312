cimport cython
from headwater.wire.columns cimport Offsets, TextColumn
from headwater.wire.memory cimport OutputBuffer

cdef int RAW
cdef int STRING
cdef int BOOL
cdef int INT8
cdef int INT64
cdef int UINT8
cdef int UINT64
cdef int FLOAT32
cdef int FLOAT64
cdef Py_ssize_t LONGEST
cdef Py_ssize_t MOST_HEADERS
cdef list KIND_NAMES
cdef bytes BASE64

cdef bint is_plain_value(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint is_text(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint append_text(OutputBuffer output, bytearray buffer, int kind, Py_ssize_t start, Py_ssize_t end) except? -1
cdef int append_base64(OutputBuffer output, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1

@cython.final
cdef class TypedDecoder:
    cdef public bint scans
    cdef readonly Py_ssize_t scanned
    cdef Offsets entry_ends
    cdef TextColumn keys
    cdef TextColumn kinds
    cdef TextColumn values
    cdef TextColumn raws
    cdef int[::1] block_ends
    cdef bint scan(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end, Py_ssize_t first) except? -1
    cdef bint repeated(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t first) noexcept
    cdef bint value(self, bytearray buffer, int kind, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint number(self, bytearray buffer, int kind, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint ask_reference(self, bytes block) except? -1
