from headwater.streams.log_format cimport BatchHeader, StoredRecord

cdef long long _LOW_HALF
cdef long long _READ
cdef double _RECORDS
cdef double _BYTES_BEFORE
cdef double _RECORDS_BEFORE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _CRC_SIZE
cdef Py_ssize_t _TAG_AT
cdef Py_ssize_t _OFFSET_AT
cdef Py_ssize_t _SUBJECT_SIZE_AT
cdef Py_ssize_t _BLOCK_SIZE_AT

cpdef StoredRecord find_record(
    object fetch, long long position, BatchHeader header, bytes identity, long long offset
)
cdef Py_ssize_t _first_intact(bytes data, bytes identity, BatchHeader header) except? -2
cdef long long _offset(bytes data, Py_ssize_t at, long long base_offset) noexcept
cdef Py_ssize_t _end(bytes data, Py_ssize_t at) noexcept
cdef bint _is_intact(bytes data, Py_ssize_t at, Py_ssize_t end, bytes identity, long long offset) except -1
cdef StoredRecord _record(bytes data, Py_ssize_t at, long long base_offset, bytes identity, long long offset)
