cimport cython

cdef double QUICK
cdef double SLOW
cdef double FORGIVING
cdef double QUICKEST
cdef double _PATIENCE

@cython.final
cdef class Pace:
    cdef readonly double seconds
    cdef object _count_events
    cdef long long _events
    cpdef bint lets_wait(self) except -1
    cpdef int begin(self) except? -1
    cpdef bint is_quick(self) noexcept
    cpdef int note(self, double seconds) except? -1
