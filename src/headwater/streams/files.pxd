cdef class OsFile:
    cdef readonly int _descriptor
    cdef object _shared
