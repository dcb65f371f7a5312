cimport cython
from headwater.streams.log_format cimport BatchHeader

@cython.final
@cython.freelist(64)
cdef class PlacedBatch:
    cdef readonly object segment
    cdef readonly long long position
    cdef readonly BatchHeader header
    cdef readonly bytes body

@cython.final
cdef class StagedBatch:
    cdef readonly list builders
    cdef readonly long long base_offset
    cdef readonly long long end_offset
    cdef readonly list deletions
    cdef readonly list placed

@cython.final
cdef class LogWriter:
    cdef object _files
    cdef str _directory
    cdef object _options
    cdef readonly long long segment_bytes
    cdef long long _ahead
    cdef bint _syncs_always
    cdef bytes _identity
    cdef long long _reserved_end
    cdef object _state
    cdef object _active
    cdef object _file
    cdef long long _position
    cdef long long _allocated
    cdef long long _written_end
    cdef long long _durable_end
    cdef long long _next_offset
    cdef long long _turn
    cdef bint _unsynced
    cdef long long _synced_at_ns
    cdef object _end_file
    cdef bint _notes_end
    cdef long long _written_position
    cdef long long _active_base
    cdef readonly object failure

    cpdef write(self, StagedBatch batch)
    cdef int _append(self, long long end_offset, list[bytes] pieces, long long size) except? -1
    cdef bytes _next_mark(self, long long durable_end, long long assigned_end)
    cdef int _sync_as_chosen(self, StagedBatch batch) except? -1
    cdef int _fdatasync(self) except? -1
    cdef int _note_end(self) except? -1
