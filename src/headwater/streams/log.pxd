cimport cython

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
    cdef object _recent
    cdef readonly object staging
    cdef list _unfinished
    cdef bint _closed
    cdef readonly object _writer
