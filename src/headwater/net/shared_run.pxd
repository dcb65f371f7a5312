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
cdef int _close(int one, int other) except -1


@cython.final
cdef class PageCalls:
    cdef readonly bint refused
    cdef tuple _copy
    cdef Py_ssize_t _left_out
    cdef bint _logged

    cdef bint are_ready(self) except -1
    cdef tuple open_pipe(self)
    cdef Py_ssize_t copy_to(self, int source, Endpoint endpoint, Py_ssize_t size, bytes head=*) except -1
    cdef Py_ssize_t move_to(self, int source, Endpoint endpoint, Py_ssize_t size) except -1
    cdef Py_ssize_t judge(self, Py_ssize_t moved) except -1
    cdef int close(self) except -1
    cdef object _do_without(self, int problem)


@cython.final
cdef class SharedRun:
    cdef readonly PageCalls calls
    cdef readonly Endpoint first
    cdef readonly bytes sid
    cdef readonly Py_ssize_t by_pages
    cdef Py_ssize_t _size
    cdef bint _worth
    cdef bint _filled
    cdef tuple _pages
    cdef public list links
    cdef object _to_announce

    cdef int begin(self, Endpoint first, bytes sid, Py_ssize_t size, Py_ssize_t receivers) except -1
    cdef int announce(self, list[Endpoint] links, object run) except -1
    cdef int _send_to_links(self) except -1
    cdef int _pass_on(self, Endpoint link, bytes head) except -1
    cdef int give(self, Endpoint endpoint) except -1
    cdef int end(self) except -1
    cdef bint _fill(self, OutputBuffer output) except -1
    cdef Py_ssize_t _send(self, Endpoint endpoint, bytes head) except -1
    cdef int _empty(self) except -1
