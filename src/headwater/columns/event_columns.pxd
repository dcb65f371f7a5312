cimport cython
from headwater.wire.columns cimport Numbers, Offsets, TextColumn
from headwater.wire.memory cimport OutputBuffer

cdef int SPECVERSION
cdef int TIME
cdef int CONTENT_TYPE
cdef int REQUIRED
cdef int BINARY
cdef int STRUCTURED
cdef int NEITHER
cdef int UNCLEAR
cdef Py_ssize_t MOST_ATTRIBUTES
cdef Py_ssize_t MODE_WINDOW
cdef bytes PREFIX
cdef bytes MEDIA_TYPE
cdef bytes NO_EVENT_REASON
cdef bytes NO_EVENT_RULE
cdef bytes HEX_DIGITS

@cython.final
cdef class EventDecoder:
    cdef public bint scans
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t scanned
    cdef list texts
    cdef Numbers times
    cdef bytearray has_time
    cdef Offsets entry_ends
    cdef TextColumn keys
    cdef TextColumn values
    cdef bytearray is_event
    cdef bint apart
    cdef TextColumn data
    cdef bytearray has_data
    cdef TextColumn errors
    cdef TextColumn rules
    cdef bytearray blocks
    cdef int[::1] block_ends
    cdef bytearray payloads
    cdef int[::1] payload_ends
    cdef long long[::1] marks
    cdef Py_ssize_t marked
    cdef Py_ssize_t content_type
    cdef Py_ssize_t content_type_end
    cdef int seen
    cdef long long instant
    cdef Py_ssize_t data_start
    cdef Py_ssize_t data_end
    cdef OutputBuffer scratch
    cdef int row(self) except? -1
    cdef bint scan(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t payload, Py_ssize_t payload_end) except? -1
    cdef bint read_lines(self, Py_ssize_t at, Py_ssize_t end) except? -1
    cdef int mode(self, Py_ssize_t payload, Py_ssize_t payload_end) except? -1
    cdef bint binary(self, Py_ssize_t payload, Py_ssize_t payload_end) except? -1
    cdef bint header_value(self, int slot, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint structured(self, Py_ssize_t at, Py_ssize_t end) except? -1
    cdef Py_ssize_t member(self, Py_ssize_t at, Py_ssize_t end) except? -2
    cdef Py_ssize_t extension_value(self, Py_ssize_t at, Py_ssize_t end) except? -2
    cdef bint structured_data(self) except? -1
    cdef bint attribute(self, int slot, bytearray source, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint extension_name(self, bytearray source, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint context_holds(self) except? -1
    cdef int keep(self, bytearray source, Py_ssize_t start, Py_ssize_t end, bint present, bint separate) except? -1
    cdef int roll_back(self) except? -1
    cdef int refuse(self, bytes reason, bytes rule) except? -1
    cdef int ask_reference(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t payload, Py_ssize_t payload_end) except? -1
    cdef int add(self, event, bytes payload) except? -1
    cdef int set_apart(self) except? -1

cdef int slot_of(bytearray buffer, Py_ssize_t start, Py_ssize_t end) noexcept
cdef int set_bit(bytearray bits, Py_ssize_t row) noexcept
