cimport cython
from headwater.exchange.router cimport Router
from headwater.exchange.sublist cimport Subscription
from headwater.streams.log_format cimport BatchHeader
from headwater.wire.memory cimport OutputBuffer

cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _LARGEST
cdef Py_ssize_t _ROOM
cdef Py_ssize_t _LONGEST
cdef long long _SECOND
cdef bytes _MSG
cdef bytes _HMSG
cdef unsigned char _DOT
cdef unsigned char _BLANK
cdef unsigned char _CR
cdef unsigned char _LF

cpdef Subscription only_reader(Router router, bytes inbox)
cpdef StoredRun find_run(object log, long long offset)
cdef bint _fits(BatchHeader header, long long offset) except -1


@cython.final
cdef class AckText:
    cdef OutputBuffer text
    cdef Py_ssize_t end
    cdef Py_ssize_t _first
    cdef Py_ssize_t _sequence_end
    cdef Py_ssize_t _given_end
    cdef Py_ssize_t _stamp_end
    cdef long long _second
    cdef Py_ssize_t _block
    cdef Py_ssize_t _rest

    cdef int begin(self, bytes head) except -1
    cdef int count(self, long long sequence, long long given, long long stamp, long long pending) except -1
    cdef int put_sizes(self, Py_ssize_t block, Py_ssize_t rest) except -1


cdef int _append_message(
    OutputBuffer output, unsigned char *record, Py_ssize_t subject, bytes between, OutputBuffer ack, bint has_block,
    Py_ssize_t rest
) except -1


@cython.final
cdef class StoredRun:
    cdef readonly long long offset
    cdef readonly long long end
    cdef bytes _body
    cdef Py_ssize_t _at
    cdef AckText _ack

    cpdef bint skip_to(self, long long offset) except -1


cdef unsigned char *_bytes_of(bytes body) noexcept
cdef Py_ssize_t _size_at(bytes body, Py_ssize_t at) noexcept
cdef int _put_nine(char *digits, unsigned int number) noexcept
cdef bint _count_up(char *digits, Py_ssize_t start, Py_ssize_t end) noexcept
cdef bint _count_down(char *digits, Py_ssize_t start, Py_ssize_t end) noexcept
