from headwater.wire.message_view cimport MessageView
from headwater.client_connection.message_queue cimport MessageQueue
from headwater.wire.publish cimport OpWriter
from headwater.wire.server_ops cimport ServerOpHandler

cdef Py_ssize_t SEND_EARLY
cdef Py_ssize_t TURN_BYTES
cdef object _DONE

cdef class ConnectionOps(ServerOpHandler):
    cdef public dict queues
    cdef public MessageQueue last_queue
    cdef public list touched
    cdef public object link
    cdef public OpWriter writer
    cdef public Py_ssize_t max_payload
    cdef public bint takes_headers
    cdef public bint open
    cdef public Py_ssize_t since_turn
    cdef object turn
    cdef public object after_read
    cdef public bint holds
    cpdef int on_message(self, MessageView message) except? -1
    cpdef publish(self, str subject, data, str reply, headers)
    cdef object send(self, str subject, data, str reply, headers)
    cdef bint buffer(self, str subject, data, str reply, headers) except? -1
    cdef bint buffer_any(self, str subject, data, str reply, headers) except? -1
    cdef int ask(self, str subject, data, bytes inbox, Py_ssize_t number, headers) except? -1
    cdef int accept(self, str subject, Py_ssize_t size) except? -1
    cdef begin_to_write(self, Py_ssize_t size)

cdef class Sender:
    cdef public ConnectionOps _connection
