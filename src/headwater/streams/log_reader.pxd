cimport cython
from headwater.streams.live_offsets cimport LiveOffsets
from headwater.streams.log_format cimport StoredRecord
from headwater.streams.recent cimport RecentBatches
from headwater.streams.segment cimport Segment

@cython.final
cdef class LogReader:
    cdef readonly list segments
    cdef readonly list damage
    cdef public object on_damage
    cdef readonly RecentBatches recent
    cdef LiveOffsets _live
    cdef list _with_handle
    cdef list _searched
    cdef readonly Py_ssize_t most_open
    cdef public object handles
    cdef list _unfinished
    cdef object _first_timestamp
    cdef unsigned long long address(self, long long offset, Py_ssize_t *size) except? 1
    cdef Segment _segment_of(self, long long offset)
    cpdef StoredRecord record(self, long long offset)
    cdef StoredRecord _record_in_file(self, long long offset)
    cdef bint _is_unfinished(self, long long offset) except -1
    cdef tuple _few_in_files(self, long long offset, Py_ssize_t max_records, Py_ssize_t max_bytes)
    cpdef Segment segment_at(self, long long offset)
    cdef _keep_handle(self, Segment segment, list[Segment] among, Py_ssize_t most)
