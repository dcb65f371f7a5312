cimport cython

@cython.final
cdef class DuplicateWindow:
    cdef long long _window
    cdef long long _now
    cdef long long _oldest
    cdef dict _offsets
    cdef object _order
    cdef object _stored
    cdef object _times
    cpdef seen(self, bytes message_id, long long now_ns)
    cpdef remember(self, bytes message_id, long long offset, long long now_ns)
    cdef int _expire(self, long long now_ns) except? -1

cdef bytes _key(bytes message_id)
