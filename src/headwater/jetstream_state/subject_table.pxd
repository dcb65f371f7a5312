cimport cython
from headwater.jetstream_state.items cimport Item
from headwater.jetstream_state.subject_rows cimport SubjectRows
from headwater.streams.record_places cimport RecordPlaces

cdef Py_ssize_t COMPARED
cdef Py_ssize_t AHEAD
cdef Py_ssize_t _STORE_OVERHEAD
cdef Py_ssize_t _HEADER_OVERHEAD
cdef Py_ssize_t _MEMORY_OVERHEAD
cdef bint _is_whole(bytes subject) except -1

@cython.final
cdef class SubjectFilter:
    cdef readonly tuple patterns
    cdef readonly bint literals
    cdef tuple _heads
    cdef frozenset _literal
    cdef tuple _wild
    cdef dict _known
    cpdef bint matches(self, bytes subject) except? -1

cpdef long long stored_size(bytes subject, bytes header_block, bytes payload) except? -1
cpdef long long memory_size(bytes subject, bytes header_block, bytes payload) except? -1

@cython.final
cdef class SubjectTable:
    cdef public long long messages
    cdef readonly long long size_bytes
    cdef bint _with_history
    cdef object _find_before
    cdef SubjectRows _rows
    cdef dict _histories

    cdef Py_ssize_t _place_of(self, bytes subject) except? -1
    cdef int _read_ahead(self, list[Item] items, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef Py_ssize_t total(self, bytes subject) except? -1
    cpdef remove(self, bytes subject, long long sequence, long long size)
    cpdef remove_all(self, RecordPlaces places)
    cpdef tuple add_all(self, list[Item] items)
    cpdef tuple replace_all(self, list[Item] items, long long most)
    cpdef Py_ssize_t last(self, bytes pattern) except? -1  # long long: Cython writes a literal that C refuses

cpdef dict previous_of(list[Item] items, SubjectTable subjects)
cpdef dict replaced_by(list[Item] items, SubjectTable subjects)
