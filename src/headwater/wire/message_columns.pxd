cimport cython
from headwater.wire.message_view cimport MessageView
from headwater.wire.columns cimport TextColumn

@cython.final
cdef class MessageColumns:
    cdef readonly Py_ssize_t rows
    cdef TextColumn subjects
    cdef TextColumn replies
    cdef TextColumn blocks
    cdef TextColumn payloads
    cpdef int append(self, MessageView message) except? -1
    cdef int append_text(self, TextColumn column, bytearray buffer, Py_ssize_t start, Py_ssize_t end) except? -1
