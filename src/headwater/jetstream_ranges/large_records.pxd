cimport cython
from headwater.streams.log_format cimport StoredRecord
from headwater.streams.segment cimport Segment

cdef long long _LEAST
cdef long long _LOW_HALF
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _BATCH_HEADER_SIZE

@cython.final
cdef class LargeRecords:
    cdef object _log
    cdef Segment _segment
    cdef long long _next
    cdef long long _at
    cdef long long _limit
    cpdef list read(self, long long offset, object wanted)
    cdef bint _stands_at(self, long long offset) except -1
    cdef tuple _head(self)
    cdef StoredRecord _read_one(self, long long offset)
    cdef bytes _pread(self, Py_ssize_t size, long long position)
