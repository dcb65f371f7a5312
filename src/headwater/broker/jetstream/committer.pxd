cimport cython
from headwater.broker.jetstream.items cimport Item

cdef Py_ssize_t _MAX_STAGED_BYTES

@cython.final
cdef class Committer:
    cdef object _log
    cdef object _writers
    cdef object _on_durable
    cdef object _on_failed
    cdef object _loop
    cdef object _soon
    cdef bint _scheduled
    cdef object _idle
    cdef readonly list waiting
    cdef readonly list writing
    cdef bint _writing
    cdef Py_ssize_t _waiting_bytes
    cdef Py_ssize_t _writing_bytes
    cdef readonly bint full
    cdef list _barriers
    cdef list _reached
    cdef object _delayed
    cdef object _erase
    cdef bint _upkeep_wanted
    cdef double _pace
    cpdef int add(self, Item item) except? -1
    cdef int _schedule(self) except? -1
    cdef int _write_here(self, batch, bint small) except? -1
    cdef int _note_time(self, double seconds, bint small) except? -1
    cdef int _finish(self, batch, BaseException error) except? -1
    cdef int _go_on(self) except? -1
