cimport cython
from headwater.group_commit.pace cimport Pace
from headwater.group_commit.write_stats cimport WriteStats

cdef Py_ssize_t _MAX_STAGED_BYTES
cdef Py_ssize_t _INLINE_BYTES
cdef Py_ssize_t _LONE_BYTES

@cython.final
cdef class Group:
    cdef list items
    cdef Py_ssize_t size
    cdef double since
    cdef list barriers

cdef Group _WRITTEN

@cython.final
cdef class Committer:
    cdef object _log
    cdef object _writers
    cdef object _on_durable
    cdef object _on_failed
    cdef WriteStats _stats
    cdef public object answer_first
    cdef object _soon
    cdef bint _scheduled
    cdef object _idle
    cdef Group _next
    cdef Group _current
    cdef Pace _pace
    cdef Pace _lone_pace
    cdef readonly bint full
    cdef readonly object upkeep
    cpdef int add(self, object item, Py_ssize_t size) except? -1
    cdef int _schedule(self) except? -1
    cdef int _write(self, batch) except -1
    cdef int _write_here(self, batch, Pace paced) except? -1
    cdef int _note_time(self, double seconds, Pace paced) except? -1
    cdef int _finish(self, batch, BaseException error) except? -1
    cdef int _answer(self, object item) except -1
    cpdef int _go_on(self) except? -1
