cimport cython
from headwater.jetstream_state.items cimport Item
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Match
from headwater.streams.log_format cimport StoredRecord
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.message_view cimport MessageView

cdef bytes _RUNS
cdef bytes _RUN_MEMBER

cdef unsigned char _DOT
cdef unsigned char _BLANK
cdef unsigned char _CR
cdef unsigned char _LF

cdef int _compose_ack(OutputBuffer buffer, MessageView message, Item item, bytes head, Py_ssize_t run) except? -1
cdef bint _count_on(MessageView message) except -1
cpdef bytes with_size(bytes header_block, Py_ssize_t size)
cpdef bint send_at_once(Router router, Item item, bytes head) except -1
cpdef int send_acks(Router router, list[Item] items, bytes head) except? -1


@cython.final
cdef class RecordSender:
    cdef Router _router
    cdef bytes _inbox
    cdef Match _match
    cdef bytes _head
    cdef long long _given
    cdef long long _pending
    cdef Py_ssize_t _room
    cdef bint _headers_only
    cdef OutputBuffer _buffer
    cdef MessageView _message

    cdef Py_ssize_t _send_record(self, StoredRecord record) except? -1
