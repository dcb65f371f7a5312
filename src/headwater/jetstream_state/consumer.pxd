cimport cython

cdef Py_ssize_t _STALE

@cython.final
@cython.freelist(256)
cdef class Unsettled:
    cdef readonly long long first
    cdef readonly long long deadline

cdef Unsettled _unsettled(long long first, long long deadline)

@cython.final
cdef class Run:
    cdef long long deadline
    cdef list sequences
    cdef Py_ssize_t at

@cython.final
cdef class Consumer:
    # Positions are Python's numbers: a client may name some that no C number holds. Messages that were delivered have
    # sequences, deadlines and consumer sequences that fit.
    cdef object _config
    cdef bint _awaits
    cdef bint _acks_before
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
    cdef readonly object _runs
    cdef Py_ssize_t _in_runs
    cdef readonly list _heap
    cdef readonly list _in_order
    cdef Py_ssize_t _settled_first

    cpdef ack(self, long long sequence, long long consumer_sequence)
    cdef _note(self, int kind, long long sequence)
    cdef Py_ssize_t _ack_wait(self, Py_ssize_t attempt) except? -1  # long long: Cython writes a literal that C refuses
    cdef int _set_deadline(self, long long sequence, long long first, long long deadline) except? -1
    cdef int _drop_stale(self) except? -1
    cdef Run _first_run(self)
    cdef _make_due(self, long long sequence)
    cdef Unsettled _settle(self, long long sequence)
    cdef int _move_floor(self, long long first) except? -1
    cdef _move_floor_past_settled(self)
    cdef _ack_all(self, long long sequence, long long consumer_sequence)
    cdef Py_ssize_t _first_unacked(self) except? -1
