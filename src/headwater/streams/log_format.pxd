cimport cython

cdef Py_ssize_t _RECORD_HEAD_SIZE
cdef Py_ssize_t _RECORD_CRC_SIZE
cdef Py_ssize_t _RECORD_TAG_AT
cdef Py_ssize_t _RECORD_SIZES_AT
cdef Py_ssize_t _MAX_SUBJECT
cdef Py_ssize_t _MAX_BODY
cdef Py_ssize_t _APART

cdef long long _LOW_HALF
cdef int _TOMBSTONES
cdef Py_ssize_t _BATCH_HEADER_SIZE
cdef Py_ssize_t _CRC_SIZE
cdef bytes _ZEROS

@cython.final
@cython.freelist(64)
cdef class BatchHeader:
    cdef readonly int dialect
    cdef readonly int flags
    cdef readonly long long record_count
    cdef readonly long long offset_span
    cdef readonly long long body_size
    cdef readonly long long base_offset
    cdef readonly long long first_timestamp_ns
    cdef readonly long long last_timestamp_ns
    cdef readonly long long body_crc
    cdef readonly int version

@cython.final
@cython.freelist(64)
cdef class StoredRecord:
    cdef readonly long long offset
    cdef readonly long long timestamp_ns
    cdef readonly bytes subject
    cdef readonly bytes header_block
    cdef readonly bytes payload

@cython.final
cdef class BatchBuilder:
    cdef readonly long long base_offset
    cdef readonly long long record_count
    cdef readonly Py_ssize_t size
    cdef readonly long long first_timestamp_ns
    cdef readonly long long last_timestamp_ns
    cdef list _pieces
    cpdef Py_ssize_t append(self, bytes subject, bytes header_block, bytes payload, long long timestamp_ns) except? -1
    cdef bytes _sealed_body(self, bytes identity)
    cpdef tuple encode(self, bytes identity)
    cpdef tuple encode_apart(self, bytes identity)
    cdef list _sealed_pieces(self, bytes identity)

@cython.final
cdef class RecordCursor:
    cdef readonly bytes buffer
    cdef readonly long long base_offset
    cdef readonly long long offset
    cdef readonly long long timestamp_ns
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t subject_at
    cdef readonly Py_ssize_t header_block_at
    cdef readonly Py_ssize_t payload_at
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t limit
    cdef Py_ssize_t _head_size
    cdef long long _low_base
    cpdef bint advance(self) except? -1
    cpdef bint advance_to(self, bytes subject) except? -1
    cpdef bytes subject(self)
    cpdef bytes header_block(self)
    cpdef bytes payload(self)
    cpdef StoredRecord record(self)

cdef unsigned int _crc_of(unsigned int crc, list[bytes] pieces) except? 0
cdef Py_ssize_t _put(bytes buffer, Py_ssize_t at, bytes piece) noexcept
cdef Py_ssize_t _put_number(bytes buffer, Py_ssize_t at, Py_ssize_t size, long long number) noexcept
cdef bytes _record_head(
    long long timestamp_ns, long long offset, Py_ssize_t subject_size, Py_ssize_t block_size, Py_ssize_t payload_size
)
cpdef unsigned int record_seed(bytes identity, long long high_half) except? 0
cpdef unsigned int record_tag(bytes identity) except? 0
cpdef bytes encode_batch_header(BatchHeader header, bytes identity)
cdef bytes _slice(bytes buffer, Py_ssize_t start, Py_ssize_t end)
cdef Py_ssize_t _number_at(unsigned char *data, Py_ssize_t at) noexcept
cdef unsigned long long _u32(bytes buffer, Py_ssize_t at) noexcept
