cimport cython
from headwater.streams.offset_set cimport OffsetSet

@cython.final
cdef class LiveOffsets:
    cdef public long long start
    cdef public long long end
    cdef public long long count
    cdef readonly OffsetSet absent
    cpdef bint has(self, long long offset) except -1
    cpdef list remove_each(self, object offsets)
    cpdef advance(self)
