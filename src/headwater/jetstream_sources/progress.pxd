cimport cython

@cython.final
cdef class Progress:
    cdef public long long safe
    cdef public str identity
    cdef object _staged
    cdef long long _here
    cdef long long _there
    cdef long long _count
    cpdef int note(self, long long here, long long there) except? -1
