cimport cython
from headwater.wire.message_view cimport MessageView
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.server_ops cimport RecordingHandler

cdef bytes CRLF
cdef bytes MSG_ID_LINE
cdef bytes VERSION_LINE
cdef bytes ERROR_MEMBER
cdef bytes STREAM_MEMBER
cdef bytes SEQUENCE_MEMBER
cdef bytes DUPLICATE_MEMBER
cdef bytes _RUN_MEMBER
cdef tuple INSTRUCTIONS
cdef Py_ssize_t SLOTS

cdef bint is_one_line(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint is_header_name(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint is_instruction(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef Py_ssize_t run_of(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.final
cdef class TextReader:
    cdef bytearray data
    cdef int[::1] ends
    cdef Py_ssize_t rows

@cython.final
cdef class CheckedSubjects:
    cdef list _recent
    cdef dict _known
    cdef bytes find(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t end)
    cdef bytes check(self, Py_ssize_t row, bytes subject)

@cython.final
cdef class RowFrames:
    cdef Py_ssize_t limit
    cdef OutputBuffer output
    cdef OutputBuffer block
    cdef bytes inbox
    cdef TextReader subjects
    cdef bytes subject
    cdef TextReader payloads
    cdef TextReader blocks
    cdef int[::1] entry_ends
    cdef TextReader names
    cdef int[::1] list_ends
    cdef TextReader values
    cdef TextReader ids
    cdef bytes id_prefix
    cdef long long id_start
    cdef bytes lines
    cdef bint with_map
    cdef CheckedSubjects checked
    cdef readonly Py_ssize_t appended
    cdef bytes last
    cpdef Py_ssize_t append_rows(self, Py_ssize_t row, Py_ssize_t last, bytearray acked, Py_ssize_t most) except? -1
    cpdef Py_ssize_t append(self, Py_ssize_t row) except? -1
    cdef int subject_of(self, Py_ssize_t row) except? -1
    cdef int block_of(self, Py_ssize_t row) except? -1
    cdef int map_lines(self, Py_ssize_t row) except? -1
    cdef int message_id(self, Py_ssize_t row) except? -1

cdef class AckCounter(RecordingHandler):
    cdef readonly Py_ssize_t sid
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t count
    cdef readonly bytearray acked
    cdef readonly list duplicates
    cdef readonly list refused
    cdef readonly dict samples
    cdef readonly bytes foreign
    cdef bytes head
    cdef readonly Py_ssize_t pongs
    cdef Py_ssize_t token
    cdef bint is_ack(self, bytes answer) except? -1
    cdef bint has_member(self, bytearray buffer, Py_ssize_t start, Py_ssize_t end, bytes member) noexcept
    cpdef int on_message(self, MessageView message) except? -1
    cpdef int on_pong(self) except? -1
