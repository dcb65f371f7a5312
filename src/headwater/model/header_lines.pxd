cimport cython

@cython.final
cdef class HeaderLines:
    cdef public bytes block
    cdef list _pairs
    cdef int _searches
    cpdef list pairs(self)
    cpdef bint is_empty(self) except? -1
    @cython.locals(pairs=list)
    cpdef list changed(self)
    @cython.locals(pair=tuple)
    cpdef object first(self, object name)
    @cython.locals(pair=tuple)
    cpdef list values(self, object name)
