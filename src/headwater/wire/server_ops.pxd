cimport cython
from headwater.wire.message_view cimport MessageView

cpdef bytes unquote(bytes text)

cdef int _MSG
cdef int _HMSG


cdef class ServerOpHandler:
    cpdef int on_message(self, MessageView message) except? -1
    cpdef int on_info(self, bytes json) except? -1
    cpdef int on_ping(self) except? -1
    cpdef int on_pong(self) except? -1
    cpdef int on_ok(self) except? -1
    cpdef int on_error(self, str text) except? -1
    cpdef int on_violation(self, error) except? -1

cdef class RecordingHandler(ServerOpHandler):
    cdef public list errors
    cdef public object violation
    cdef Py_ssize_t _pings
    cpdef int on_ping(self) except? -1
    cpdef int on_error(self, str text) except? -1
    cpdef int on_violation(self, error) except? -1

@cython.final
cdef class KnownLine:
    cdef bytes text
    cdef Py_ssize_t length
    cdef Py_ssize_t subject
    cdef Py_ssize_t subject_end
    cdef Py_ssize_t sid
    cdef Py_ssize_t reply
    cdef Py_ssize_t reply_end
    cdef Py_ssize_t header_size
    cdef Py_ssize_t size

@cython.final
cdef class ServerOpParser:
    cdef readonly ServerOpHandler handler
    cdef readonly bint broken
    cdef public bint greeting
    cdef readonly Py_ssize_t wanted
    cdef readonly Py_ssize_t max_control_line
    cdef readonly Py_ssize_t max_info_line
    cdef readonly Py_ssize_t max_message
    cdef Py_ssize_t token
    cdef Py_ssize_t token_end
    cdef MessageView message
    cdef KnownLine known
    cpdef Py_ssize_t parse(self, bytearray buffer, Py_ssize_t start, Py_ssize_t filled) except? -1
    cdef Py_ssize_t take_greeting(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) except? -2
    cdef Py_ssize_t take_ops(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) except? -2
    cdef Py_ssize_t take_known(self, bytearray buffer, Py_ssize_t at, Py_ssize_t filled) except? -2
    cdef Py_ssize_t hand_over(self, Py_ssize_t at, Py_ssize_t body) except? -2
    cdef int know(self, bytearray buffer, Py_ssize_t at, Py_ssize_t body) except? -1
    cdef bint line_may_grow(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
    cdef bint verb_is_msg(self, bytearray buffer, Py_ssize_t at) noexcept
    cdef Py_ssize_t take_message(self, bytearray buffer, Py_ssize_t at, Py_ssize_t arguments, Py_ssize_t line_end, Py_ssize_t filled, bint with_headers) except? -1
    cdef Py_ssize_t take_other(self, bytearray buffer, Py_ssize_t at, Py_ssize_t line_end) except? -1
    cdef int next_token(self, bytearray buffer, Py_ssize_t start, Py_ssize_t line_end) noexcept
    cdef Py_ssize_t next_number(self, bytearray buffer, Py_ssize_t start, Py_ssize_t line_end) noexcept
    cdef int tokens_left(self, bytearray buffer, Py_ssize_t start, Py_ssize_t line_end) noexcept
    cdef Py_ssize_t refuse(self, str what, bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
