cimport cython
from headwater.exchange.sublist cimport Outlet
from headwater.net.shared_run cimport SharedRun

cdef Py_ssize_t _TOGETHER

cdef int _read_ahead(list[Outlet] dirty, Py_ssize_t first, Py_ssize_t last) except -1


@cython.final
cdef class Flusher:
    cdef readonly SharedRun shared
    cdef readonly Py_ssize_t max_pending
    cdef readonly Py_ssize_t route_stall_at
    cdef readonly Py_ssize_t slow_consumers
    cdef readonly list congested
    cdef object _schedule
    cdef list _dirty
    cdef Py_ssize_t _marked
    cdef list _spare
    cdef bint _scheduled
    cdef bint _reading
    cdef object _together
    cdef bint _expected
    cdef Py_ssize_t _collected
    cdef list _publishers

    cpdef int mark(self, Outlet outlet) except? -1
    cpdef int begin_read(self) except? -1
    cpdef int end_read(self) except? -1
    cdef int _flush_dirty(self) except? -1
    cpdef int end_client_read(self, object publisher, Py_ssize_t size) except? -1
