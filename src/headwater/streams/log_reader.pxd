cimport cython
from headwater.streams.live_offsets cimport LiveOffsets
from headwater.streams.log_format cimport StoredRecord
from headwater.streams.recent cimport RecentBatches

@cython.final
cdef class LogReader:
    cdef readonly list segments
    cdef readonly list damage
    cdef public object on_damage
    cdef readonly RecentBatches recent
    cdef LiveOffsets _live
    cdef list _with_handle
    cdef list _unfinished
    cdef object _first_timestamp
    cpdef StoredRecord record(self, long long offset)
