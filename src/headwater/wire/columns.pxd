cimport cython
from headwater.wire.message_view cimport MessageView
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.server_ops cimport RecordingHandler

cdef bytes PREFIX
cdef bytes ACK_PREFIX
cdef Py_ssize_t MANY_NAMES
cdef Py_ssize_t MAX_TOKENS

cdef bint is_ascii(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint is_name(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint same(bytearray buffer, Py_ssize_t start, Py_ssize_t end, bytearray other, Py_ssize_t other_start) noexcept
cdef long long number(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.final
cdef class Numbers:
    cdef object values
    cdef long long[::1] view
    cdef Py_ssize_t capacity
    cdef readonly Py_ssize_t size
    cdef object spares
    cdef int append(self, long long value) except? -1
    cdef int grow(self) except? -1

@cython.final
cdef class Offsets:
    cdef object values
    cdef int[::1] view
    cdef Py_ssize_t capacity
    cdef readonly Py_ssize_t size
    cdef object spares
    cdef int append(self, Py_ssize_t value) except? -1
    cdef int fill(self, Py_ssize_t size, Py_ssize_t value) except? -1
    cdef int truncate(self, Py_ssize_t size) except? -1
    cdef int grow(self) except? -1

@cython.final
cdef class TextColumn:
    cdef readonly OutputBuffer data
    cdef readonly Offsets ends
    cdef object spares
    cdef int append_slice(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef int append(self, bytes text) except? -1
    cdef int pad(self, Py_ssize_t count) except? -1
    cdef int truncate(self, Py_ssize_t count) except? -1

cdef class ColumnDecoder(RecordingHandler):
    cdef readonly bint with_map
    cdef readonly bint with_raw
    cdef readonly Py_ssize_t sid
    cdef readonly long long start
    cdef readonly long long end
    cdef readonly long long position
    cdef readonly long long pending
    cdef readonly long long first_gap
    cdef readonly bint complete
    cdef readonly bint skipped
    cdef readonly bint drained
    cdef readonly Py_ssize_t received
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t strays
    cdef readonly Py_ssize_t blockless
    cdef public list statuses
    cdef list header_errors
    cdef list unmapped
    cdef TextColumn subjects
    cdef Numbers sequences
    cdef Numbers timestamps
    cdef TextColumn blocks
    cdef TextColumn payloads
    cdef Offsets entry_ends
    cdef TextColumn keys
    cdef Offsets item_ends
    cdef TextColumn items
    cdef long long[::1] marks
    cpdef int on_message(self, MessageView message) except? -1
    cdef int subject_row(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef int read_ack(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef int message_row(self, bytearray buffer, Py_ssize_t headers, Py_ssize_t payload, Py_ssize_t end) except? -1
    cdef int map_row(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint map_plainly(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint repeated(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t first) noexcept
    cdef int map_carefully(self, bytes block) except? -1
