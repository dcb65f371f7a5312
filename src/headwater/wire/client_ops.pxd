cimport cython
from headwater.wire.message_view cimport MessageView
from headwater.wire.receive cimport Receiver
from headwater.wire.scan cimport PublishLine


cdef bint _PUB
cdef bint _HPUB


cdef class ClientOpParser


cdef class ClientOpHandler(Receiver):
    cpdef int on_publishes(self, ClientOpParser ops) except? -1
    cpdef int on_publish(self, MessageView message) except? -1
    cpdef int on_publish_run(self, MessageView message, Py_ssize_t stride, Py_ssize_t count) except? -1
    cpdef int on_early_publish(self, bytes subject) except? -1
    cpdef int on_subscribe(self, bytes subject, bytes queue, bytes sid) except? -1
    cpdef int on_unsubscribe(self, bytes sid, Py_ssize_t maximum) except? -1
    cpdef int on_connect(self, bytes json) except? -1
    cpdef int on_info(self, bytes json) except? -1
    cpdef int on_ping(self) except? -1
    cpdef int on_pong(self) except? -1
    cpdef int on_error(self) except? -1
    cpdef int on_violation(self, int violation) except? -1


@cython.final
cdef class ClientOpParser:
    cdef public ClientOpHandler handler
    cdef public Py_ssize_t max_control_line
    cdef public Py_ssize_t max_payload
    cdef public bint awaiting_connect
    cdef public bint headers
    cdef public bint stopped
    cdef public bint suspended
    cdef public MessageView message
    cdef public Py_ssize_t stride
    cdef public Py_ssize_t count
    cdef public Py_ssize_t incomplete
    cdef Py_ssize_t _position
    cdef Py_ssize_t _filled
    cdef PublishLine _line

    cpdef Py_ssize_t parse(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -1
    cdef Py_ssize_t _parse_op(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -2
    cpdef bint next_publish(self) except? -1
    cdef Py_ssize_t _parse_publish(
        self,
        bytearray buffer,
        Py_ssize_t start,
        Py_ssize_t argument,
        Py_ssize_t newline,
        Py_ssize_t filled,
        bint with_headers,
    ) except? -2
    cdef int _rewrite(self, Py_ssize_t last_end) except? -1
    cdef Py_ssize_t _parse_other(
        self, bytearray buffer, Py_ssize_t start, Py_ssize_t newline, Py_ssize_t filled
    ) except? -2
    cdef int _dispatch(self, object verb, bytes argument) except? -1
    cdef int _stop_if(self, int result) except? -1
    cdef Py_ssize_t _violation(self, int violation) except? -2
