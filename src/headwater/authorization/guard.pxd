cimport cython
from headwater.wire.message_view cimport MessageView


@cython.final
cdef class Guard:
    cdef readonly object rules
    cdef readonly bint filters
    cdef readonly bint tracks
    cdef object _clock
    cdef bytes _last_published
    cdef readonly dict _published
    cdef bytes _last_delivered
    cdef bytes _last_queue
    cdef bint _last_denied
    cdef dict _denied
    cdef readonly object _replies

    cpdef bint always_publishes(self, MessageView message) except? -1
    cpdef bint may_publish(self, MessageView message) except? -1
    cpdef bint lets_through(self, MessageView message, bytes queue) except? -1
    cdef bint _is_denied(self, MessageView message, bytes queue) except? -1
