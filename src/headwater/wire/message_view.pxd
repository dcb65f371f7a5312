cdef class MessageView:
    cdef public bytearray buffer
    cdef public Py_ssize_t sid
    cdef public Py_ssize_t subject
    cdef public Py_ssize_t subject_end
    cdef public Py_ssize_t reply
    cdef public Py_ssize_t reply_end
    cdef public Py_ssize_t tail
    cdef public Py_ssize_t headers
    cdef public Py_ssize_t payload
    cdef public Py_ssize_t end
    cdef public Py_ssize_t shown
    cdef public object trace

    cpdef int advance(self, Py_ssize_t by) except? -1
    cpdef int trace_mark(self) except? -1
    cpdef int run_trace_mark(self, Py_ssize_t stride, Py_ssize_t count, bint sampled) except? -1
    cpdef int release(self) except? -1
    cpdef bytes subject_bytes(self)
    cpdef bytes reply_bytes(self)


cpdef MessageView renamed(bytes subject, MessageView message)
cpdef MessageView composed(bytes subject, bytes reply, bytes header_block, bytes payload)
