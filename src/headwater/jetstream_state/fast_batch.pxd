cimport cython

cdef bytes _APPENDED

@cython.final
cdef class FastBatch:
    cdef readonly bytes batch_id
    cdef readonly bytes head
    cdef public bint over
    cdef readonly bint gap_ok
    cdef public long long sequence
    cdef public long long answered
    cdef public long long first
    cdef public long long stored
    cdef public bint committed
    cdef public long long ends_ns
    cdef public bint appended
    cdef public bytes last_reply
    cdef long long _most
    cdef readonly long long flow
    cpdef bint is_next(self, bytes reply) except -1
    cpdef int append(self, bytes reply, long long stream_sequence) except? -1
