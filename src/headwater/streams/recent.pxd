cimport cython

@cython.final
cdef class RecentBatches:
    cdef Py_ssize_t _limit
    cdef list _bases
    cdef list _batches
    cdef readonly Py_ssize_t size
