from headwater.wire.message_view cimport MessageView
from headwater.model.message cimport Message
from headwater.wire.message_columns cimport MessageColumns

cdef class MessageQueue:
    cdef public Py_ssize_t sid
    cdef public Py_ssize_t received
    cdef public Py_ssize_t dropped
    cdef public Py_ssize_t maximum
    cdef public Py_ssize_t max_pending
    cdef public Py_ssize_t max_pending_bytes
    cdef public Py_ssize_t pending_bytes
    cdef public bint touched
    cdef public bint overrun
    cdef public bint drop_oldest
    cdef public object direct
    cdef public MessageColumns columns
    cdef list arrived
    cdef list reading
    cdef str last_subject
    cdef bytes last_subject_bytes
    cdef int add(self, Message message, Py_ssize_t size) except? -1
    cdef int add_row(self, MessageView message) except? -1
    cdef int full(self, Message message, Py_ssize_t size) except? -1
    cpdef Message pop(self)
    cpdef list take(self, Py_ssize_t maximum)
    cdef int turn_round(self) except? -1
    cdef int end_overrun(self) except? -1
