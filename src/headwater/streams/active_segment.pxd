cimport cython

cdef long long _JOINED

@cython.final
cdef class ActiveSegment:
    cdef readonly object segment
    cdef readonly bytes identity
    cdef readonly long long base_offset
    cdef public long long position
    cdef readonly long long written_position
    cdef object _file
    cdef long long _hastened
    cdef long long _allocated
    cdef long long _turn

    cpdef int mark(self, long long durable_end, long long assigned_end) except? -1
    cpdef int write(self, list[bytes] pieces, long long size) except? -1
    cpdef int hasten(self) except? -1
    cpdef int make_room(self, long long size, long long ahead, long long most) except? -1
    cpdef int fdatasync(self) except? -1
