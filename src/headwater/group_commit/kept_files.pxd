cimport cython

@cython.final
cdef class KeptFile:
    cdef readonly str path
    cdef public bint used
    cdef object _kept
    cdef object _files
    cdef bint _never_synced
    cdef bint _unsynced
    cdef object _lock
    cdef object _take
    cdef object _give_back
    cdef bint _closed
    cdef object _file
