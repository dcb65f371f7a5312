cimport cython

@cython.final
cdef class SparseIndex:
    cdef public object offsets
    cdef public object positions
    cdef public object times
    cdef public long long latest
    cdef long long _start
    cdef long long _next
    cpdef Py_ssize_t entry(self, long long offset) except? -2
