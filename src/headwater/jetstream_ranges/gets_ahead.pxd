cimport cython
from headwater.exchange.ahead cimport Foresight
from headwater.jetstream_state.subject_table cimport SubjectTable
from headwater.streams.log_reader cimport LogReader
from headwater.wire.client_ops cimport ClientOpParser

cdef Py_ssize_t _MOST
cdef Py_ssize_t _MOST_BYTES
cdef Py_ssize_t _START


@cython.final
cdef class GetsAhead(Foresight):
    cdef object _streams
    cdef Py_ssize_t _count
    cdef long long[32] _sequence
    cdef unsigned long long[32] _address
    cdef Py_ssize_t[32] _size

    cdef LogReader _reader_of(self, object stream)
    cdef int _read_ahead(self, LogReader reader) except -1
    cdef int _rows(self, SubjectTable subjects, list[bytes] names) except -1
