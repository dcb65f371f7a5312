cimport cython

cdef Py_ssize_t GLANCE
cdef Py_ssize_t FAST
cdef Py_ssize_t LARGE
cdef Py_ssize_t PAUSED
cdef Py_ssize_t MEASURED
cdef double FIND_MORE
cdef Py_ssize_t POOR
cdef Py_ssize_t TRIAL
cdef double KEEP
cdef double FADES
cdef Py_ssize_t LOST
cdef double CHEAPER
cdef Py_ssize_t JUDGED
cdef Py_ssize_t LEASE
cdef Py_ssize_t FIRST_BACKOFF
cdef Py_ssize_t LONGEST_BACKOFF
cdef Py_ssize_t LONGEST_LARGE


@cython.final
cdef class _Usual:
    cdef double rate
    cdef double size
    cdef double cost
    cdef bint is_large


@cython.final
cdef class _Counts:
    cdef Py_ssize_t now
    cdef Py_ssize_t cpu
    cdef Py_ssize_t rounds
    cdef Py_ssize_t reads
    cdef Py_ssize_t size
    cdef Py_ssize_t room

    cdef int begin(self, Py_ssize_t now, Py_ssize_t cpu) except -1


@cython.final
cdef class Moderation:
    cdef public bint is_off
    cdef public bint pausing
    cdef public bint counting
    cdef _Usual _usual
    cdef double _missing
    cdef Py_ssize_t _poor
    cdef Py_ssize_t _lease
    cdef bint _is_kept
    cdef Py_ssize_t _unseen
    cdef Py_ssize_t _last
    cdef _Counts _began
    cdef Py_ssize_t _next_try
    cdef Py_ssize_t _backoff

    cpdef bint wants_look(self, Py_ssize_t reads) except? -1
    cpdef bint look(
        self, Py_ssize_t now, Py_ssize_t cpu, Py_ssize_t reads, Py_ssize_t size, Py_ssize_t room
    ) except? -1
    cdef int _judge_usual(self, Py_ssize_t now, Py_ssize_t cpu) except -1
    cdef int _judge_pauses(self, Py_ssize_t now, Py_ssize_t cpu, Py_ssize_t size) except -1
    cdef int _stop(self, Py_ssize_t now, Py_ssize_t cpu) except -1
