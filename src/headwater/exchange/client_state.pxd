cimport cython
from headwater.authorization.guard cimport Guard
from headwater.exchange.router cimport Router


@cython.final
cdef class Login:
    cdef public object gate
    cdef public str connection_type
    cdef public str nonce
    cdef public object pending
    cdef public str refused_user
    cdef public bint accepted


@cython.final
cdef class Membership:
    cdef public Router router
    cdef public object account
    cdef public object identity
    cdef public Guard guard
    cdef public object mappings
    cdef public Py_ssize_t max_subscriptions


@cython.final
cdef class Terms:
    cdef public bint verbose
    cdef public bint pedantic
    cdef public bint no_responders
    cdef public int protocol
    cdef public str name
    cdef public str lang
    cdef public str version


@cython.final
cdef class Traffic:
    cdef public Py_ssize_t reads
    cdef public Py_ssize_t ops
    cdef public Py_ssize_t messages
    cdef public Py_ssize_t bytes


@cython.final
cdef class Heartbeat:
    cdef public Py_ssize_t unanswered
    cdef public double sent_at
    cdef public double round_trip
