cimport cython
from headwater.streams.recent cimport RecentBatches
from headwater.streams.staging cimport Staging
from headwater.streams.writer cimport LogWriter, StagedBatch

@cython.final
cdef class Log:
    cdef readonly str directory
    cdef readonly object options
    cdef readonly object recovery
    cdef readonly list damage
    cdef object _files
    cdef readonly object _lock
    cdef list _segments
    cdef list _with_handle
    cdef long long _end_offset
    cdef object _absent
    cdef long long _start_offset
    cdef long long _records
    cdef list _deletions
    cdef object _first_timestamp
    cdef readonly bytes document
    cdef RecentBatches _recent
    cdef readonly Staging staging
    cdef list _unfinished
    cdef bint _closed
    cdef readonly LogWriter _writer

    cpdef seal(self)
    cpdef write(self, StagedBatch batch)
    cpdef publish(self, StagedBatch batch)
