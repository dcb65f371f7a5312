cimport cython

cdef Py_ssize_t BATCH_HEADER
cdef Py_ssize_t FRAME_HEADER
cdef Py_ssize_t MAX_PAYLOAD
cdef Py_ssize_t MAX_HEADERS

@cython.final
cdef class ReceivedMessage:
    cdef readonly bytes payload
    cdef bytes block
    cdef readonly unsigned long long offset
    cdef readonly unsigned long long timestamp
    cdef readonly unsigned long long origin_timestamp
    cdef readonly unsigned long long checksum
    cdef readonly unsigned int partition
    cdef unsigned long long id_low
    cdef unsigned long long id_high

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
