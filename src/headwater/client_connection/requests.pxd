from headwater.client_connection.connection_ops cimport ConnectionOps, Sender
from headwater.model.message cimport Message

cdef double SWEEP_SECONDS
cdef Py_ssize_t WRITE_AFTER

cdef class Requests

cdef class PendingRequest:
    cdef public Requests requests
    cdef public str subject
    cdef public double deadline
    cdef public double timeout
    cdef public tuple again
    cdef public bint waits_for_link
    cdef public bint ended
    cdef public Message answer
    cdef public object error
    cdef public tuple cancelled_with
    cdef public object wakeup
    cdef public object context
    cdef public bint _asyncio_future_blocking
    cdef int end(self, Message answer, object error) except? -1

cdef class Requests:
    cdef public ConnectionOps connection
    cdef str inbox
    cdef bytes inbox_dot
    cdef Py_ssize_t inbox_size
    cdef object subscription
    cdef bint listens
    cdef dict waiting
    cdef list to_wake
    cdef bint in_read
    cdef Py_ssize_t last
    cdef object loop
    cdef object now
    cdef object done
    cdef object timer
    cdef double timer_at
    cdef PendingRequest add(self, str subject, double deadline, double timeout)
    cdef int send(self, PendingRequest pending, Py_ssize_t number, data, headers, bint repeat) except? -1
    cdef int forget(self, Py_ssize_t number) except? -1
    cdef int write_now(self) except? -1
    cdef int wake_soon(self, PendingRequest pending) except? -1

cdef class RequestSender(Sender):
    cdef public Requests _requests

cdef Py_ssize_t number_in(str subject, Py_ssize_t at) noexcept
