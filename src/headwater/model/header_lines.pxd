cimport cython

cdef Py_ssize_t FEW

@cython.final
cdef class HeaderLines:
    cdef public bytes block
    cdef list _pairs
    cdef dict _exact
    cdef dict _folded
    cdef Py_ssize_t _holes
    cdef int _searches
    cpdef list pairs(self)
    cpdef bint is_empty(self) except? -1
    @cython.locals(pairs=list, pair=tuple, found=list)
    cpdef object first(self, object name)
    @cython.locals(pairs=list, pair=tuple)
    cpdef list values(self, object name)
    @cython.locals(pairs=list, pair=tuple)
    cpdef list folded(self, object name)
    @cython.locals(lines=list)
    cpdef append(self, str name, str value)
    @cython.locals(pairs=list, kept=list, pair=tuple)
    cpdef discard(self, object name, bint fold)
    cpdef clear(self)
    cdef list _lines(self)
    @cython.locals(lines=list)
    cdef list _few(self)
    cdef dict _index(self, bint fold)
    cdef list _matching(self, object name, bint fold)
    cdef _make_holes(self, object name, bint fold)
