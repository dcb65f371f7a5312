cimport cython
from headwater.exchange.router cimport Router
from headwater.jetstream_state.subject_table cimport SubjectTable
from headwater.streams.log_format cimport StoredRecord
from headwater.streams.log_reader cimport LogReader
from headwater.wire.memory cimport OutputBuffer

cdef long long _SECOND
cdef long long _DAY_SECONDS


@cython.final
cdef class DirectAnswer:
    cdef Router _router
    cdef OutputBuffer _lines
    cdef OutputBuffer _buffer
    cdef bint _busy
    cdef long long _day
    cdef bytes _date

    cpdef bint send_last(
        self, bytes reply, bytes stream, LogReader log, SubjectTable subjects, bytes subject
    ) except -1
    cpdef int send(self, bytes reply, bytes stream, StoredRecord record, bytes more, bint bare) except? -1
    cdef int _route(self, bytes reply, StoredRecord record, bint bare) except? -1
    cdef int _compose_lines(self, bytes stream, StoredRecord record, bytes more) except? -1
    cdef int _append_time(self, long long ns) except? -1


cdef int _append_digits(OutputBuffer output, long long number, Py_ssize_t digits) except? -1
