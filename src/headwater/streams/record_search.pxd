from headwater.streams.log_format cimport BatchHeader, StoredRecord

cdef long long _LOW_HALF
cdef long long _READ
cdef double _RECORDS
cdef long long _BYTES_BEFORE
cdef double _RECORDS_BEFORE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _CRC_SIZE
cdef Py_ssize_t _TAG_AT
cdef Py_ssize_t _OFFSET_AT
cdef Py_ssize_t _SUBJECT_SIZE_AT
cdef Py_ssize_t _BLOCK_SIZE_AT

cpdef bint can_search(BatchHeader header) except -1
cdef long long likely_place(long long low, BatchHeader header, long long offset) noexcept
cpdef StoredRecord find_record(object file, long long position, BatchHeader header, bytes identity, long long offset)
cpdef list find_records(
    object file,
    long long position,
    BatchHeader header,
    bytes identity,
    long long offset,
    Py_ssize_t max_records,
    Py_ssize_t max_bytes,
    bint at_least_one,
)
cdef tuple _searched(
    object file, long long low, long long limit, BatchHeader header, bytes identity, long long offset
)
cdef StoredRecord _guessed(
    object file, long long low, long long limit, BatchHeader header, bytes identity, long long offset
)
cdef bytes _fetch(object file, long long size, long long position)
cdef Py_ssize_t _first_between(
    bytes data, bytes identity, long long base_offset, long long low_offset, long long high_offset
) except? -2
cdef long long _offset(bytes data, Py_ssize_t at, long long base_offset) noexcept
cdef Py_ssize_t _end(bytes data, Py_ssize_t at) noexcept
cdef StoredRecord _record(
    object file, bytes data, Py_ssize_t at, long long start, long long limit, unsigned int seed, long long offset
)
cdef bint _is_intact(bytes data, Py_ssize_t at, Py_ssize_t end, unsigned int seed) except -1
cdef StoredRecord _decoded(bytes data, Py_ssize_t at, long long offset)
