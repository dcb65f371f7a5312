cimport cython
from headwater.streams.log_format cimport BatchHeader

@cython.final
cdef class RecentBatches:
    cdef Py_ssize_t _limit
    cdef list _bases
    cdef list _batches
    cdef readonly Py_ssize_t size

    cpdef add(self, BatchHeader header, bytes body)
