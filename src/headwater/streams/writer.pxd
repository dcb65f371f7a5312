cimport cython
from headwater.streams.active_segment cimport ActiveSegment
from headwater.streams.end_note cimport EndNote
from headwater.streams.log_format cimport BatchHeader

cdef long long _HEAD_PAGE_SIZE

@cython.final
@cython.freelist(64)
cdef class PlacedBatch:
    cdef readonly object segment
    cdef readonly long long position
    cdef readonly BatchHeader header
    cdef readonly list body

@cython.final
cdef class StagedBatch:
    cdef readonly list builders
    cdef readonly long long base_offset
    cdef readonly long long end_offset
    cdef readonly list deletions
    cdef readonly list placed
    cdef readonly long long size
    cdef readonly long long last_timestamp_ns

@cython.final
cdef class LogWriter:
    cdef object _files
    cdef str _directory
    cdef object _options
    cdef readonly long long segment_bytes
    cdef object _saved
    cdef ActiveSegment _active
    cdef EndNote _end
    cdef long long _written_end
    cdef long long _durable_end
    cdef long long _next_offset
    cdef long long _marked_end
    cdef long long _ahead
    cdef bint _unsynced
    cdef long long _synced_at_ns
    cdef readonly object failure

    cpdef write(self, StagedBatch batch)
    cpdef bint begins_segment(self, long long size) except? -1
    cpdef bint is_due(self, long long now_ns) except? -1
    cdef int _append(self, long long end_offset, list[bytes] pieces, long long size) except? -1
    cdef int _mark(self, long long assigned_end) except? -1
    cdef int _sync_as_chosen(self, StagedBatch batch) except? -1
    cdef int _fdatasync(self) except? -1
    cdef int _note_durable(self) except? -1
