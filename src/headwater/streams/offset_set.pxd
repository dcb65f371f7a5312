cimport cython

@cython.final
cdef class OffsetSet:
    cdef dict _blocks
    cdef long long _count
    cdef long long _looked_at
    cdef bytes _looked
    cpdef bint has(self, long long offset) except -1
