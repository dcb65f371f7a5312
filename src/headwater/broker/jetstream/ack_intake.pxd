cimport cython
from headwater.broker.jetstream.consumer cimport Consumer

cdef Py_ssize_t LONGEST_NUMBER
cdef unsigned char DOT

@cython.final
cdef class AckIntake:
    cdef object _stream
    cdef Consumer _state
    cdef object _settled
    cdef object _rest
    cdef object _soon
    cdef bint _untold
    cdef public bint closed
    cpdef take(self, bytes subject, bytes reply, bytes header_block, bytes payload)

cdef Py_ssize_t _token_start(bytes subject, Py_ssize_t end) noexcept
cdef long long _number_before(bytes subject, Py_ssize_t end) noexcept
