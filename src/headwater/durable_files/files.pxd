from headwater.durable_files.mapped_file cimport MappedFile


cdef class OsFile:
    cdef readonly int _descriptor
    cdef object _shared
    cpdef bytes pread(self, Py_ssize_t size, long long position)
    cdef MappedFile _mapped
    cpdef bytes look(self, Py_ssize_t size, long long position)
    cdef unsigned long long address(self, Py_ssize_t size, long long position) noexcept
    cdef bint is_mapped(self) except -1
