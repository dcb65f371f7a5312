cimport cython

from headwater.jetstream_sources.progress cimport Progress

cdef unsigned char _AT
cdef bytes _NATS
cdef int CLOCK_STEP

@cython.final
cdef class Following:
    cdef readonly long long taken
    cdef readonly long long delivered
    cdef readonly long long sequence
    cdef readonly long long timestamp_ns
    cdef readonly long long pending
    cdef readonly bytes shown
    cdef readonly bytes digits
    cdef long long _consumer_sequence
    cdef bytes _consumer
    cdef bytes _head
    cdef Py_ssize_t _at
    cpdef bint goes_on(self, bytes reply) except -1
    cdef long long _next_number(self, bytes reply, Py_ssize_t end) noexcept
    cpdef int took(self) except? -1

@cython.final
cdef class Intake:
    cdef Following _following
    cdef Progress _progress
    cdef object _copy
    cdef bint _is_mirror
    cdef bytes _first
    cdef bytes _before
    cdef bytes _between
    cdef bytes _end
    cdef object _moved
    cdef object _now
    cdef object _others
    cdef public Py_ssize_t taken
    cdef readonly double received_at
    cpdef bint take(self, bytes subject, bytes reply, bytes header_block, bytes payload) except -1
