cimport cython
from headwater.jetstream_state.ack_deadlines cimport Deadlines, DeliveryOrder, Unsettled

@cython.final
cdef class Consumer:
    # Positions are Python's numbers: a client may name some that no C number holds. Messages that were delivered have
    # sequences, deadlines and consumer sequences that fit.
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
    cdef Deadlines _deadlines
    cdef DeliveryOrder _in_order

    cpdef ack(self, long long sequence, long long consumer_sequence)
    cdef _note(self, int kind, long long sequence)
    cdef Py_ssize_t _ack_wait(self, Py_ssize_t attempt) except? -1  # long long: Cython writes a literal that C refuses
    cdef int _set_deadline(self, long long sequence, long long first, long long deadline) except? -1
    cdef _make_due(self, long long sequence)
    cdef Unsettled _settle(self, long long sequence)
    cdef int _move_floor(self, long long first) except? -1
    cdef _move_floor_past_settled(self)
    cdef _ack_all(self, long long sequence, long long consumer_sequence)
