cimport cython
from headwater.jetstream_state.counters cimport Sums

cdef Py_ssize_t MOST_DIGITS
cdef int _MESSAGE_ID
cdef int _TTL
cdef int _ROLLUP
cdef int _INCREMENT

@cython.final
cdef class PublishOptions:
    cdef readonly Sums sums
    cdef readonly bytes message_id
    cdef readonly bytes rollup
    cdef readonly long long ttl_ns
    cdef readonly long long increment
    cdef readonly bint counts
    cdef readonly bint republishes
    cdef bint _rolls_up
    cdef bint _expires
    cdef bytes _ttl_text
    cdef long long _ttl
    cpdef bint read(self, bytes block, bytes payload) except -1
    cdef bint _read_ttl(self, bytes text) except -1
    cdef bint _read_rollup(self, bytes text) except -1
    cdef bint _read_increment(self, bytes text) except -1

cdef int _named(bytes block, Py_ssize_t size, Py_ssize_t at) except -1
