cimport cython

cdef double SHORTEST
cdef int STEPS
cdef int COUNTS
cdef double WINDOW

@cython.final
cdef class Latency:
    cdef readonly long long count
    cdef readonly double total
    cdef list _recent
    cdef list _before
    cdef double _begun
    cpdef int note(self, double seconds, double now) except? -1
    cpdef list counts(self, double now)

@cython.final
cdef class WriteStats:
    cdef readonly Latency writes
    cdef readonly Latency acks
    cdef public long long refused
