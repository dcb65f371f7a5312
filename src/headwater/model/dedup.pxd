cimport cython

cdef Py_ssize_t _LONGEST_PLAIN
cdef Py_ssize_t _FORGOTTEN
cdef Py_ssize_t _DIGEST_KEY

@cython.final
@cython.freelist(64)
cdef class Remembered:
    cdef readonly bytes key
    cdef readonly long long offset
    cdef readonly long long time

@cython.final
cdef class DuplicateWindow:
    cdef long long _window
    cdef long long _now
    cdef dict _known
    cdef list _entries
    cdef Py_ssize_t _first
    cpdef seen(self, bytes message_id, long long now_ns)
    cpdef bint claim(self, bytes message_id, long long offset, long long now_ns) except -1
    cpdef remember(self, bytes message_id, long long offset, long long now_ns)
    cdef int _add(self, bytes key, long long offset, long long time) except? -1
    cdef int _expire(self, long long now_ns) except? -1

cdef Remembered _entry(bytes key, long long offset, long long time)
cdef bytes _key(bytes message_id)
