cimport cython
from headwater.wire.columns cimport TextColumn

@cython.final
cdef class MessageColumns:
    cdef readonly Py_ssize_t rows
    cdef TextColumn subjects
    cdef TextColumn replies
    cdef TextColumn blocks
    cdef TextColumn payloads
    cpdef int append(self, bytearray buffer, Py_ssize_t subject, Py_ssize_t subject_end, Py_ssize_t reply, Py_ssize_t reply_end, Py_ssize_t headers, Py_ssize_t payload, Py_ssize_t end) except? -1
    cdef int append_text(self, TextColumn column, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
