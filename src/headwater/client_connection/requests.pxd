from headwater.client_connection.connection_ops cimport ConnectionOps
from headwater.model.message cimport Message

cdef double SWEEP_SECONDS

cdef class PendingRequest:
    cdef public str subject
    cdef public double deadline
    cdef public double timeout
    cdef public object answer
    cdef public tuple again
    cdef public bint waits_for_link

cdef class Requests:
    cdef public ConnectionOps connection
    cdef str inbox
    cdef str inbox_dot
    cdef Py_ssize_t inbox_size
    cdef object subscription
    cdef bint listens
    cdef dict waiting
    cdef Py_ssize_t last
    cdef object loop
    cdef object create_future
    cdef object now
    cdef object timer
    cdef double timer_at
