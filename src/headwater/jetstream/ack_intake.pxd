cimport cython
from headwater.jetstream_state.ack_subject cimport AckSubject
from headwater.jetstream_state.consumer cimport Consumer

cdef Py_ssize_t TOKENS

@cython.final
cdef class AckIntake:
    cdef object _stream
    cdef Consumer _state
    cdef object _taken
    cdef object _has_listener
    cdef object _rest
    cdef object _soon
    cdef AckSubject _where
    cdef Py_ssize_t _numbers_at
    cdef bint _unreported
    cdef bint _settled
    cdef object _seen
    cdef bint _keeps
    cdef public bint closed
    cdef public bint sampled
    cdef bint _keeps_acked(self) except? -1
    cdef int _report_soon(self) except -1
    cpdef take(self, bytes subject, bytes reply, bytes header_block, bytes payload)
