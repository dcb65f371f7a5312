cimport cython

@cython.final
cdef class OffsetSet:
    cdef dict _blocks
    cdef long long _count
    cpdef bint add_one(self, long long offset) except -1
