cimport cython
from headwater.streams.index cimport SparseIndex
from headwater.streams.log_format cimport StoredRecord

cdef Py_ssize_t _LAST_PLACE

@cython.final
cdef class Segment:
    cdef readonly str path
    cdef readonly bytes identity
    cdef readonly long long base_offset
    cdef public bint keeps_evidence
    cdef public bint kept
    cdef object _files
    cdef object _facts
    cdef SparseIndex _index
    cdef object _file
    cdef object _checked_from
    cdef set _intact
    cdef list _known
    cdef list _met

    cdef unsigned long long address(self, long long offset, Py_ssize_t *size) except? 1
    cpdef StoredRecord record_at(self, long long offset)
    cpdef list records_from(
        self, long long offset, Py_ssize_t max_records, Py_ssize_t max_bytes, bint at_least_one
    )
    cpdef bint knows(self, long long offset) except -1
    cpdef tuple batch_of(self, long long offset)
    cdef tuple _known_place(self, long long offset)
    cdef tuple _walk_to(self, long long offset, object window)
