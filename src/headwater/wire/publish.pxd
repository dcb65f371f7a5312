cimport cython
from headwater.wire.memory cimport OutputBuffer

@cython.final
cdef class OpWriter:
    cdef public OutputBuffer output
    cdef str last_subject
    cdef bytes last_encoded
    cdef bytes last_line
    cdef Py_ssize_t last_size
    cdef str last_reply_head
    cdef dict known
    cdef bint again(self, str subject, bytes payload, Py_ssize_t limit) except? -1
    cpdef int publish(self, str subject, str reply, bytes header_block, bytes payload) except? -1
    cdef int ask(self, str subject, bytes inbox, Py_ssize_t number, bytes header_block, bytes payload) except? -1
    cdef int put_after(self, Py_ssize_t number, int code) except? -1
    cdef int encode_subject(self, str subject) except? -1
    cdef bytes encode_reply(self, str reply)

cdef bytes encode_checked(str text)
cdef Py_ssize_t LONGEST_NUMBER

cdef Py_ssize_t digits_of(unsigned long long number) noexcept
cdef Py_ssize_t put_number(bytearray data, Py_ssize_t at, long long number) except? -1
cdef int append_number(OutputBuffer output, long long number) except? -1
