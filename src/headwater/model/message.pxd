cimport cython

@cython.no_gc  # it holds no container of messages, and a million waiting ones would be walked by every collection
@cython.freelist(256)
cdef class Message:
    cdef public str subject
    cdef public bytes data
    cdef public str reply
    cdef public bytes header_block
    cdef public object channel
    cdef object _headers
