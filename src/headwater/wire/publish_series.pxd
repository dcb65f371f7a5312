cimport cython
from headwater.wire.client_ops cimport ClientOpParser
from headwater.wire.memory cimport OutputBuffer
from headwater.wire.message_view cimport MessageView


cdef Py_ssize_t _covered_end(bytearray buffer, Py_ssize_t start, Py_ssize_t filled, bint deep) noexcept
cdef Py_ssize_t _sizes_end(unsigned char *base, Py_ssize_t at, Py_ssize_t filled, Py_ssize_t *size) noexcept


@cython.final
cdef class PublishSeries:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t payload
    cdef Py_ssize_t _names
    cdef Py_ssize_t _tails
    cdef Py_ssize_t _max_payload
    cdef Py_ssize_t _max_line
    cdef Py_ssize_t[256] _subject
    cdef Py_ssize_t[256] _tail
    cdef Py_ssize_t[256] _end

    cdef Py_ssize_t collect(self, ClientOpParser ops, bytes prefix, bint deep) except -1
    cdef int limit(self, Py_ssize_t max_payload, Py_ssize_t max_line) except -1
    cdef Py_ssize_t gather(
        self, MessageView message, bytes head, Py_ssize_t at, Py_ssize_t filled, bytes prefix, bint deep
    ) except -1
    cdef int append_frames(self, OutputBuffer output, bytearray buffer, bytes head) except -1
    cdef int append_to(self, OutputBuffer output, bytearray buffer, bytes line, bytes after_subject) except -1
    cdef list reply_pairs(self, bytearray buffer)
