cimport cython

@cython.final
cdef class Consumer:
    # Sequences and times are Python's numbers: a client may name some that no C number holds.
    cdef public object config
    cdef public object position
    cdef public object selected
    cdef public object num_pending
    cdef public object delivered_consumer
    cdef public object delivered_stream
    cdef public object floor_consumer
    cdef public object floor_stream
    cdef public dict unacked
    cdef public dict attempts
    cdef public list events
    cdef object _redeliveries
    cdef set _due
    cdef readonly tuple _deadlines
    cdef readonly object _in_order
