cimport cython
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t BATCH_HEADER
cdef Py_ssize_t FRAME_HEADER

@cython.final
cdef class ReceivedMessage:
    cdef readonly bytes payload
    cdef bytes block
    cdef readonly unsigned long long offset
    cdef readonly unsigned long long timestamp
    cdef readonly unsigned long long origin_timestamp
    cdef readonly unsigned long long checksum
    cdef readonly unsigned int partition
    cdef unsigned long long id_low
    cdef unsigned long long id_high

cdef int write_frame(OutputBuffer out, bytes payload, bytes block, object identity, unsigned int number, unsigned int delta, bytearray checksums) except? -1
cdef int put_id(bytearray buffer, Py_ssize_t at, object identity) except? -1
cdef unsigned long long u64(bytearray buffer, Py_ssize_t at) noexcept
cdef unsigned int u32(bytearray buffer, Py_ssize_t at) noexcept
cdef int put_u64(bytearray buffer, Py_ssize_t at, unsigned long long value) except? -1
cdef int put_u32(bytearray buffer, Py_ssize_t at, unsigned int value) except? -1
