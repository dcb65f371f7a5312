cimport cython

cdef Py_ssize_t BATCH_HEADER
cdef Py_ssize_t FRAME_HEADER
cdef Py_ssize_t MAX_PAYLOAD
cdef Py_ssize_t MAX_HEADERS

@cython.final
@cython.freelist(1024)
cdef class ReceivedMessage:
    cdef bytearray source
    cdef Py_ssize_t head
    cdef Py_ssize_t at

@cython.final
cdef class Message:
    cdef readonly object payload
    cdef readonly object headers
    cdef readonly object id
    cdef readonly object offset
    cdef readonly object timestamp
    cdef readonly object origin_timestamp

cdef int put_id(bytearray buffer, Py_ssize_t at, object identity) except? -1
cdef int check_sizes(Py_ssize_t payload, Py_ssize_t block) except -1
