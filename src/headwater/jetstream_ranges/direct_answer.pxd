cimport cython
from headwater.exchange.router cimport Router
from headwater.streams.log_format cimport StoredRecord
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t _PREFIX_SIZE
cdef Py_ssize_t _SEQUENCE_AT
cdef Py_ssize_t _KEPT
cdef Py_ssize_t _WRITTEN_TOGETHER
cdef long long _SECOND
cdef long long _DAY_SECONDS


@cython.final
cdef class DirectAnswer:
    cdef readonly Router router
    cdef OutputBuffer _lines
    cdef OutputBuffer _buffer
    cdef bint _busy
    cdef Py_ssize_t _unwritten
    cdef long long _day
    cdef bytes _date

    cpdef bint send_one(self, object streams, bytes request, bytes reply, bytes payload) except -1
    cpdef int send(self, bytes reply, bytes stream, StoredRecord record, bytes more, bint bare) except? -1
    cdef int _route(self, bytes reply, StoredRecord record, bint bare) except? -1
    cdef int _compose_lines(self, bytes stream, StoredRecord record, bytes more) except? -1
    cdef int _append_time(self, long long ns) except? -1

@cython.final
cdef class DirectRequests:
    cdef DirectAnswer _answers
    cdef object _streams
    cdef object _waiting
    cdef object _others
    cdef object _longer


cdef long long _sequence_in(bytes payload) except? -1
cdef int _append_digits(OutputBuffer output, long long number, Py_ssize_t digits) except? -1
