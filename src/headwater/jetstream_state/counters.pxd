# Compiled: every addition runs through it.
cimport cython
from headwater.jetstream_state.items cimport Item

@cython.final
@cython.freelist(64)
cdef class _Held:
    cdef long long sequence
    cdef object value
    cdef bytes sources

@cython.final
cdef class Sums:
    cdef object _last
    cdef object _load
    cdef dict _unwritten
    cdef dict _written
    cpdef total(self, bytes subject, long long increment)
    cpdef int note_all_done(self, list[Item] items, bint stored) except -1
    cpdef int note_done(self, bytes subject, long long sequence, bint stored) except -1
    cdef int _remember(self, bytes subject, _Held held) except -1
