cimport cython
from headwater.net.endpoint cimport Endpoint
from headwater.net.moderation cimport Moderation

# The part of the C library that Python does not offer, or only with objects.
cdef extern from "sys/ioctl.h" nogil:
    enum:
        FIONREAD
    int ioctl(int descriptor, unsigned long request, ...)
cdef extern from "unistd.h" nogil:
    long syscall(long number, ...)


cdef unsigned int READABLE
cdef int _READS_AGAIN
cdef long MAX_EVENTS
cdef Py_ssize_t _FINISHED_TOGETHER
cdef Py_ssize_t READ_IN_A_TURN
cdef Py_ssize_t LEAST_READ
cdef long PAUSE
cdef double PAUSES_BEFORE
cdef double SET_FOR
cdef long EPOLL_PWAIT
cdef long TIMER_CREATE
cdef long TIMER_SET
cdef Py_ssize_t EVENT_SIZE
cdef Py_ssize_t EVENT_DATA

cdef int _make_timer() except? -1
cdef double _now() except? -1
cdef Py_ssize_t _available(int descriptor) except -1
cdef Py_ssize_t _cpu() except -1


@cython.final
cdef class Epoll:
    cdef object _epoll
    cdef long _number
    cdef list _found
    cdef int _timer
    cdef double _rings
    cdef char[4096] _events

    cdef Py_ssize_t poll(self, double seconds, double end) except -1
    cdef int descriptor_at(self, Py_ssize_t index) except -1
    cdef unsigned int events_at(self, Py_ssize_t index) except? 0
    cdef bint is_timer(self, int descriptor) except? -1
    cdef bint _is_set(self, double left, double end) except? -1


@cython.final
cdef class ReadyLinks:
    cdef public bint scheduled
    cdef public bint reading
    cdef public Py_ssize_t finishing
    cdef public Py_ssize_t events
    cdef public int own
    cdef public Moderation moderation
    cdef public Py_ssize_t pauses
    cdef public list afterwards
    cdef public list last
    cdef public object report
    cdef bint _pause_next
    cdef Py_ssize_t _left
    cdef list _rounds
    cdef Epoll _epoll
    cdef list _links

    cpdef Py_ssize_t events_seen(self) except -1
    cpdef bint finishes_alone(self) except -1
    cpdef list wait(self, double left)
    cdef Endpoint _link(self, Py_ssize_t descriptor)
    cdef int _look(self, Py_ssize_t count) except -1
    cdef int _pause(self) except -1
    cdef int _read_broken(self, Py_ssize_t count) except -1
    cdef int _run_afterwards(self) except -1
    cdef int _run(self, list callbacks) except -1
    cpdef bint together(self, object callback) except? -1
    cdef int _end_round(self) except -1
