cimport cython

cdef double QUICK
cdef double SLOW
cdef double FORGIVING
cdef double QUICKEST

@cython.final
cdef class Pace:
    cdef readonly double seconds
    cpdef bint is_quick(self) noexcept
    cpdef int note(self, double seconds) except? -1
