cimport cython

@cython.final
@cython.freelist(1024)
cdef class Particulars:
    cdef readonly bytes rollup
    cdef readonly bytes header_block
    cdef readonly bytes payload
    cdef readonly long long timestamp_ns
    cdef readonly long long ttl_ns

@cython.final
@cython.freelist(1024)
cdef class Item:
    cdef readonly bytes reply
    cdef public bytes ack
    cdef readonly bytes subject
    cdef readonly long long sequence
    cdef readonly Py_ssize_t size
    cdef readonly bytes message_id
    cdef readonly Particulars particulars
    cdef public object answer


cpdef Item unchecked(bytes reply, bytes subject, long long sequence, Py_ssize_t size, bytes message_id)
cpdef Item unacknowledged(bytes subject, long long sequence, Py_ssize_t size)
