cimport cython
from headwater.streams.log_format cimport BatchHeader, RecordCursor, StoredRecord

@cython.final
cdef class RecentBatches:
    cdef Py_ssize_t _limit
    cdef list _bases
    cdef list _batches
    cdef dict _marks
    cdef readonly Py_ssize_t size

    cpdef add(self, BatchHeader header, list[bytes] body)
    cpdef bint reaches(self, long long offset) except -1
    cpdef StoredRecord record(self, long long offset)
    cdef bytes _body(self, Py_ssize_t place)
    cdef tuple _mark(self, BatchHeader header, bytes body)
