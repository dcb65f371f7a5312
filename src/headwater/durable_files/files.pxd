cdef class OsFile:
    cdef readonly int _descriptor
    cdef object _shared
    cpdef bytes pread(self, Py_ssize_t size, long long position)
