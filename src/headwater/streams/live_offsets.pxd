cimport cython

@cython.final
cdef class LiveOffsets:
    cdef public long long start
    cdef public long long end
    cdef public long long count
    cdef readonly object absent
