cimport cython
from headwater.wire.message_view cimport MessageView
from headwater.wire.route_frames cimport MessageLine


cdef bytes _MESSAGE_VERBS
cdef Py_ssize_t _ANNOUNCED


@cython.final
cdef class RouteMessage(MessageView):
    cdef public bytes account
    cdef public bytes token
    cdef public bytes origin
    cdef public list queues


cdef class RouteOpHandler:
    cpdef int on_connect(self, bytes json) except? -1
    cpdef int on_info(self, bytes json) except? -1
    cpdef int on_ping(self) except? -1
    cpdef int on_pong(self) except? -1
    cpdef int on_error(self, bytes text) except? -1
    cpdef int on_subscribe(self, bytes subject, bytes queue, bytes token) except? -1
    cpdef int on_unsubscribe(self, bytes token, Py_ssize_t maximum) except? -1
    cpdef int on_interest(self, bytes account, bytes subject, bytes queue, Py_ssize_t weight) except? -1
    cpdef int on_no_interest(self, bytes account, bytes subject, bytes queue) except? -1
    cpdef int on_leaf_interest(
        self, bytes origin, bytes account, bytes subject, bytes queue, Py_ssize_t weight
    ) except? -1
    cpdef int on_message(self, RouteMessage message) except? -1
    cpdef int on_message_run(
        self, RouteMessage message, Py_ssize_t stride, Py_ssize_t count
    ) except? -1
    cpdef bint takes_runs(self) except? -1
    cpdef int on_run(self, bytes announced) except? -1
    cpdef int on_too_large(self, bytes subject, Py_ssize_t size, Py_ssize_t limit) except? -1
    cpdef int on_violation(self, int violation) except? -1


@cython.final
cdef class RouteOpParser:
    cdef public RouteOpHandler handler
    cdef public bytes account
    cdef public int dialect
    cdef public bint stopped
    cdef public bint suspended
    cdef RouteMessage _message
    cdef MessageLine _line
    cdef Py_ssize_t _max_payload
    cdef Py_ssize_t _max_line
    cdef bytes _account
    cdef bytes _token
    cdef bytes _list
    cdef list[bytes] _queues
    cdef Py_ssize_t _behind
    cdef Py_ssize_t _filled

    cpdef Py_ssize_t parse(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -1
    cdef Py_ssize_t _parse_op(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -2
    cdef Py_ssize_t _parse_message(
        self,
        bytearray buffer,
        Py_ssize_t start,
        bytes verb,
        Py_ssize_t argument,
        Py_ssize_t line_end,
        Py_ssize_t newline,
        Py_ssize_t filled,
    ) except? -2
    cdef Py_ssize_t _message_exact(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -2
    cdef Py_ssize_t _hand_over(
        self, bytearray buffer, Py_ssize_t start, Py_ssize_t body, Py_ssize_t filled
    ) except? -2
    cdef Py_ssize_t _read_address(self, bytearray buffer, bytes verb, Py_ssize_t at, Py_ssize_t line_end) except? -2
    cdef int _hand_over_rewritten(
        self,
        bytearray buffer,
        bytes reply,
        list[bytes] sizes,
        Py_ssize_t body,
        Py_ssize_t header_size,
        Py_ssize_t end,
    ) except? -1
    cdef int _dispatch(self, bytes verb, bytes argument) except? -1
    cdef int _leaf_interest_line(self, bytes verb, list[bytes] words) except? -1
    cdef int _stop_if(self, int result) except? -1
    cdef Py_ssize_t _violation(self, int violation) except? -2


cdef Py_ssize_t _size(bytes word) except? -2
cdef Py_ssize_t _spaced_out(list[bytes] words) except? -2
cdef list[bytes] _words(bytes line)
