cimport cython
from headwater.jetstream_state.items cimport Item

cdef bint _is_whole(bytes subject) except -1

@cython.final
cdef class SubjectFilter:
    cdef readonly tuple patterns
    cdef readonly bint literals
    cdef tuple _heads
    cdef dict _known
    cpdef bint matches(self, bytes subject) except? -1

@cython.final
@cython.freelist(64)
cdef class SubjectEntry:
    cdef public long long count
    cdef public long long last
    cdef public object history

cpdef long long stored_size(bytes subject, bytes header_block, bytes payload) except? -1
cpdef long long memory_size(bytes subject, bytes header_block, bytes payload) except? -1

@cython.final
cdef class SubjectTable:
    cdef public long long messages
    cdef readonly long long size_bytes
    cdef bint _with_history
    cdef object _find_before
    cdef dict _subjects

    cpdef remove(self, bytes subject, long long sequence, long long size)
    cpdef tuple add_all(self, list[Item] items)
    cpdef tuple replace_all(self, list[Item] items, long long most)
    cpdef Py_ssize_t last(self, bytes pattern) except? -1  # long long: Cython writes a literal that C refuses
