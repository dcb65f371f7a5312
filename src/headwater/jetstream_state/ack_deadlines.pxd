cimport cython

cdef Py_ssize_t _STALE

@cython.final
@cython.freelist(256)
cdef class Unsettled:
    cdef readonly long long first
    cdef readonly long long deadline

cdef Unsettled unsettled(long long first, long long deadline)

@cython.final
cdef class Run:
    cdef long long deadline
    cdef list sequences
    cdef Py_ssize_t at

@cython.final
cdef class Deadlines:
    cdef dict _unacked
    cdef set _due
    cdef readonly list heap
    cdef object _runs
    cdef Py_ssize_t _in_runs
    cdef int add(self, long long sequence, long long deadline) except? -1
    cdef Run first_run(self)
    cdef int step(self, Run run) except? -1
    cdef int _drop_stale(self) except? -1

@cython.final
cdef class DeliveryOrder:
    cdef dict _unacked
    cdef readonly list sequences
    cdef Py_ssize_t _settled
    cdef Py_ssize_t first(self) except? -1
