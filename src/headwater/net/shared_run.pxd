cimport cython
from headwater.net.endpoint cimport Endpoint
from headwater.wire.memory cimport OutputBuffer

# The part of the C library that Python does not offer.
cdef extern from "unistd.h":
    long syscall(long number, ...)

cdef Py_ssize_t _LEAST_RECEIVERS
cdef Py_ssize_t _MOST_BYTES
cdef long TEE
cdef long SPLICE

cdef Py_ssize_t _hand_over(long call, int source, int target, Py_ssize_t size)
cdef tuple _open_pipe()
cdef int _close(int one, int other) except -1


@cython.final
cdef class SharedRun:
    cdef readonly Endpoint first
    cdef readonly bytes sid
    cdef readonly Py_ssize_t by_pages
    cdef readonly bint refused
    cdef Py_ssize_t _size
    cdef bint _worth
    cdef bint _filled
    cdef tuple _pages
    cdef tuple _copy
    cdef public list links
    cdef object _to_announce

    cdef int begin(self, Endpoint first, bytes sid, Py_ssize_t size, Py_ssize_t receivers) except -1
    cdef int announce(self, list[Endpoint] links, object run) except -1
    cdef int _send_to_links(self) except -1
    cdef int _pass_on(self, Endpoint link, bytes head) except -1
    cdef Py_ssize_t _send_announced(self, Endpoint link, bytes head) except -1
    cdef bint _has_copy(self) except -1
    cdef int give(self, Endpoint endpoint) except -1
    cdef int end(self) except -1
    cdef bint _fill(self, OutputBuffer output) except -1
    cdef Py_ssize_t _send(self, Endpoint endpoint) except -1
    cdef Py_ssize_t _judge(self, Py_ssize_t moved) except -1
    cdef int _empty(self) except -1
    cdef int _empty_copy(self) except -1
