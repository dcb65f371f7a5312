cimport cython
from headwater.streams.log_format cimport RecordCursor, StoredRecord
from headwater.streams.offset_set cimport OffsetSet

@cython.final
cdef class RecordPlaces:
    cdef readonly list offsets
    cdef readonly list subjects
    cdef readonly list sizes
    cdef Py_ssize_t _plain
    cdef Py_ssize_t _with_headers
    cpdef note(self, StoredRecord record)
    cpdef bint note_matching(
        self, RecordCursor cursor, long long start, long long end, OffsetSet absent, object wanted, Py_ssize_t most
    ) except -1

cdef bint _matches(RecordCursor cursor, object patterns) except -1
