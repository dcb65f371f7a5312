cimport cython

@cython.final
cdef class EndNote:
    cdef object _files
    cdef str _directory
    cdef bytes _identity
    cdef bytes _boot
    cdef object _file
    cdef bint _usable

    cpdef int note(self, long long end, long long base_offset, long long size) except? -1
