cimport cython
from headwater.streams.live_offsets cimport LiveOffsets
from headwater.streams.log_reader cimport LogReader
from headwater.streams.staging cimport Staging
from headwater.streams.writer cimport LogWriter, StagedBatch

@cython.final
cdef class Log:
    cdef readonly str directory
    cdef readonly object options
    cdef object _files
    cdef readonly object _opened
    cdef LiveOffsets _live
    cdef readonly LogReader reader
    cdef readonly Staging staging
    cdef list _deletions
    cdef long long _unplanned
    cdef long long _until_checkpoint
    cdef bint _closed
    cdef readonly object compression
    cdef readonly LogWriter _writer

    cpdef seal(self)
    cpdef write(self, StagedBatch batch)
    cpdef publish(self, StagedBatch batch)
