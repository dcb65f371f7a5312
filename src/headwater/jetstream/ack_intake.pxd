cimport cython
from headwater.jetstream_state.ack_subject cimport AckSubject
from headwater.jetstream_state.consumer cimport Consumer

@cython.final
cdef class AckIntake:
    cdef object _stream
    cdef Consumer _state
    cdef object _settled
    cdef object _rest
    cdef object _soon
    cdef AckSubject _where
    cdef bint _unreported
    cdef public bint closed
    cdef public bint sampled
    cpdef take(self, bytes subject, bytes reply, bytes header_block, bytes payload)
